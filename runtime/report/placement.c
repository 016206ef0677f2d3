#include "runtime/report/placement.h"

#include <string.h>

#include "runtime/base/size.h"
#include "runtime/os/os.h"
#include "runtime/os/placement.h"

_Static_assert(MEMRT_NODES == MEMRT__NODES, "the table has room for the nodes of the system");

/// Compute the pages that contain a range. Returns false for a range past the address space.
static bool compute_pages(uintptr_t address, size_t size, uintptr_t *start, size_t *bytes)
{
    size_t page = memrt__os_page_size(), lead = address & (page - 1);
    *start = address - lead;
    return memrt__size_add(size, lead, bytes) && memrt__size_round_up(*bytes, page, bytes) &&
           *bytes <= UINTPTR_MAX - *start;
}

memrt_status_t memrt__placement_read(const void *address, size_t size, memrt_placement_t *out)
{
    uintptr_t start;
    size_t bytes;
    memrt__page_facts_t facts;
    if (out->struct_size < sizeof(*out) ||
        !compute_pages((uintptr_t)address, size, &start, &bytes)) {
        return MEMRT_EINVAL;
    }
    if (memrt__os_page_facts(start, bytes, &facts) != 0) {
        return MEMRT_ENOTSUP;
    }
    *out = (memrt_placement_t){
        .struct_size = out->struct_size,
        .bytes = bytes,
        .resident = facts.resident,
        .huge = facts.knows_huge ? facts.huge : MEMRT_PLACEMENT_UNKNOWN,
        .locked = facts.locked,
        .swapped = facts.swapped,
    };
    memcpy(out->by_node, facts.by_node, sizeof(out->by_node));
    if (!facts.knows_nodes) {
        out->by_node[0] = MEMRT_PLACEMENT_UNKNOWN;
    }
    return MEMRT_OK;
}
