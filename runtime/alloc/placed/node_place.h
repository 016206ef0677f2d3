#ifndef MEMRT_ALLOC_PLACED_NODE_PLACE_H
#define MEMRT_ALLOC_PLACED_NODE_PLACE_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/alloc/placed/node_text.h"

/// Return the set of nodes; for the local node, the node of the calling thread.
uint64_t memrt__node_place_set(const memrt__nodes_t *nodes);

/// Place the pages of a range, and record refusals. Without the system's weights, weighted pages
/// are interleaved; without a home node, the pages lie on the other nodes, too. A split range has
/// parts of whole `unit` bytes, a page size. Returns 0, or the error number of the system.
int memrt__node_place(memrt__nodes_t *nodes, void *mapping, size_t bytes, size_t unit);

/// Return the error of the system for the first refused node, or 0. The kernel ignores missing
/// nodes in a set, so the function tries each node with a mapping of one page. Without memory for
/// the page, the nodes are accepted.
int memrt__node_place_try(const memrt__nodes_t *nodes);

#endif
