#include "runtime/alloc/placed/node_place.h"

#include "runtime/os/os.h"
#include "runtime/os/placement.h"

uint64_t memrt__node_place_set(const memrt__nodes_t *nodes)
{
    return nodes->local ? (uint64_t)1 << memrt__os_node() : nodes->set;
}

/// Place parts of a range on the nodes with a weight, in the order of nodes.
static int split(const memrt__nodes_t *nodes, char *mapping, size_t bytes, size_t unit)
{
    size_t total = 0, sum = 0, begin = 0;
    int error = 0;
    for (unsigned node = 0; node < MEMRT__NODES; node++) {
        total += nodes->weights[node];
    }
    for (unsigned node = 0; node < MEMRT__NODES && error == 0; node++) {
        sum += nodes->weights[node];
        size_t end = sum == total ? bytes : bytes / total * sum / unit * unit;
        if (end > begin) {
            error = memrt__os_place(mapping + begin, end - begin, MEMRT__NODE_PREFER,
                                    (uint64_t)1 << node);
        }
        begin = end;
    }
    return error;
}

static int place_weighted(memrt__nodes_t *nodes, void *mapping, size_t bytes)
{
    int error = memrt__os_place(mapping, bytes, MEMRT__NODE_WEIGHTED, nodes->set);
    return memrt__refusal_note(&nodes->refused, error)
               ? 0
               : memrt__os_place(mapping, bytes, MEMRT__NODE_INTERLEAVE, nodes->set);
}

static int place_plain(memrt__nodes_t *nodes, void *mapping, size_t bytes)
{
    int error = memrt__os_place(mapping, bytes, nodes->mode, memrt__node_place_set(nodes));
    if (error == 0 && nodes->has_home) {
        (void)memrt__refusal_note(&nodes->home_refused,
                                  memrt__os_prefer_home(mapping, bytes, nodes->home));
    }
    return error;
}

static int place_by_mode(memrt__nodes_t *nodes, void *mapping, size_t bytes, size_t unit)
{
    switch (nodes->mode) {
    case MEMRT__NODE_ANY:
        return 0;
    case MEMRT__NODE_SPLIT:
        return split(nodes, mapping, bytes, unit);
    case MEMRT__NODE_WEIGHTED:
        return place_weighted(nodes, mapping, bytes);
    default:
        return place_plain(nodes, mapping, bytes);
    }
}

int memrt__node_place(memrt__nodes_t *nodes, void *mapping, size_t bytes, size_t unit)
{
    int error = place_by_mode(nodes, mapping, bytes, unit);
    (void)memrt__refusal_note(&nodes->refused, error);
    return error;
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
