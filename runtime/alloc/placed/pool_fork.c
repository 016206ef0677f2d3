#include "runtime/alloc/placed/pool_fork.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/atomics.h"
#include "runtime/base/size.h"
#include "runtime/os/crash_text.h"
#include "runtime/os/mapping_table.h"
#include "runtime/os/os.h"
#include "runtime/os/placement.h"

/// Record of a copy, in the page behind the copy.
typedef struct copy {
    struct copy *next;
    char *address; ///< of the pages of the pool
    char *pages;   ///< copy, at the start of the mapping with this record
    size_t bytes;
} copy_t;

static size_t is_used;                   ///< relaxed; 1: the process had pages of the pool
static copy_t *first_copy;               ///< the forking thread
static size_t lost_mappings, lost_bytes; ///< the forking thread; mappings without a copy
static bool is_child_due;                ///< the forking thread; the child must do its part
#define STEP ((size_t)64 << 20)          /* bytes of each read */
#define SPARE_PART 16u                   /* part of a limit that copies leave free */

void memrt__pool_fork_note(void)
{
    memrt__store_relaxed(&is_used, 1);
}

/// Return whether the limits of the system leave memory for a copy.
static bool has_memory(size_t bytes)
{
    memrt__os_limit_t limits[MEMRT__OS_LIMITS];
    size_t count = memrt__os_limits(limits), i = 0;
    while (i < count && limits[i].used + bytes <= limits[i].bytes - limits[i].bytes / SPARE_PART) {
        i++;
    }
    return i == count;
}

/// Copy without a fault: another thread may free the mapping meanwhile.
static bool read_all(char *to, const char *from, size_t bytes)
{
    bool read = true;
    for (size_t done = 0; read && done < bytes; done += STEP) {
        read = memrt__os_read(from + done, to + done, memrt__size_min(STEP, bytes - done));
    }
    return read;
}

static void drop_copy(copy_t *copy)
{
    (void)memrt__os_unmap(copy->pages, copy->bytes + memrt__os_page_size());
}

static bool make_copy(char *address, size_t bytes)
{
    char *pages = has_memory(bytes)
                      ? memrt__os_map(bytes + memrt__os_page_size(), 0, memrt__os_page_size())
                      : NULL;
    if (pages == NULL) {
        return false;
    }
    copy_t *copy = (copy_t *)(pages + bytes);
    *copy = (copy_t){.next = first_copy, .address = address, .pages = pages, .bytes = bytes};
    if (!read_all(pages, address, bytes)) {
        drop_copy(copy);
        return false;
    }
    first_copy = copy;
    return true;
}

static void copy_mapping(void *context, uintptr_t address, size_t bytes, memrt__mapping_use_t use)
{
    char *start = (char *)address;
    size_t pool = memrt__mapping_table_pool(start);
    (void)context;
    (void)bytes;
    (void)use;
    if (pool != 0 && !make_copy(start, pool) && memrt__mapping_table_pool(start) == pool) {
        lost_mappings++;
        lost_bytes += pool;
    }
}

void memrt__pool_fork_prepare(void)
{
    lost_mappings = lost_bytes = 0;
    is_child_due = memrt__load_relaxed(&is_used) != 0;
    if (is_child_due) {
        memrt__mapping_table_visit(copy_mapping, NULL);
    }
}

void memrt__pool_fork_in_parent(void)
{
    is_child_due = false;
    while (first_copy != NULL) {
        copy_t *copy = first_copy;
        first_copy = copy->next;
        drop_copy(copy);
    }
}

/// Move a copy to the place of its original, unless another thread freed the original.
static void place_copy(copy_t *copy)
{
    char *address = copy->address, *pages = copy->pages;
    size_t bytes = copy->bytes, page = memrt__os_page_size();
    bool is_live = memrt__mapping_table_pool(address) == bytes;
    if (is_live && memrt__os_map_at(address, bytes) && memrt__os_move(pages, bytes, address) == 0) {
        (void)memrt__mapping_table_remove(pages);
        (void)memrt__mapping_table_set_pool(address, 0);
        (void)memrt__os_unmap(pages + bytes, page);
        return;
    }
    lost_mappings += is_live;
    lost_bytes += is_live ? bytes : 0;
    drop_copy(copy);
}

/// Give zeros to a mapping that another thread made during the fork.
static void replace_mapping(void *context, uintptr_t address, size_t bytes,
                            memrt__mapping_use_t use)
{
    char *start = (char *)address;
    size_t pool = memrt__mapping_table_pool(start);
    (void)context;
    (void)bytes;
    (void)use;
    if (pool != 0 && lost_mappings == 0) {
        (void)memrt__os_map_at(start, pool);
    }
    (void)memrt__mapping_table_set_pool(start, 0);
}

void memrt__pool_fork_in_child(void)
{
    if (!is_child_due) {
        return;
    }
    is_child_due = false;
    while (first_copy != NULL) {
        copy_t *copy = first_copy;
        first_copy = copy->next;
        place_copy(copy);
    }
    memrt__mapping_table_visit(replace_mapping, NULL);
    memrt__store_relaxed(&is_used, 0);
    if (lost_mappings != 0) {
        memrt__crash_number("memrt: this forked child lacks ", lost_bytes,
                            " bytes of arrays in pages of the pool: the system had no memory to "
                            "copy the pages before the fork, and an access ends in SIGSEGV\n");
    }
}
