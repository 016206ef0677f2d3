#include "runtime/alloc/placed/node_place.h"

#include "runtime/os/os.h"
#include "runtime/os/placement.h"

uint64_t memrt__node_place_set(const memrt__nodes_t *nodes)
{
    return nodes->local ? (uint64_t)1 << memrt__os_node() : nodes->set;
}

int memrt__node_place(const memrt__nodes_t *nodes, void *mapping, size_t bytes)
{
    return nodes->mode == MEMRT__NODE_ANY
               ? 0
               : memrt__os_place(mapping, bytes, nodes->mode, memrt__node_place_set(nodes));
}

int memrt__node_place_try(const memrt__nodes_t *nodes)
{
    size_t page = memrt__os_page_size();
    uint64_t rest = memrt__node_place_set(nodes);
    void *mapping = rest == 0 ? NULL : memrt__os_map(page, 0, page);
    int error = 0;
    for (; mapping != NULL && error == 0 && rest != 0; rest &= rest - 1) {
        error = memrt__os_place(mapping, page, MEMRT__NODE_BIND, rest & (0 - rest));
    }
    if (mapping != NULL) {
        (void)memrt__os_unmap(mapping, page);
    }
    return error;
}
