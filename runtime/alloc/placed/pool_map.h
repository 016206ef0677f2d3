#ifndef MEMRT_ALLOC_PLACED_POOL_MAP_H
#define MEMRT_ALLOC_PLACED_POOL_MAP_H

#include <stdbool.h>
#include <stddef.h>

#include "runtime/alloc/placed/node_text.h"
#include "runtime/alloc/placed/page_ladder.h"

/// Replace the start of a fresh mapping by pages of the pool, by the rungs of a ladder. The pages
/// lie on the nodes and have memory. Records refusals. Returns false without pages that the ladder
/// demands.
bool memrt__pool_map(memrt__page_ladder_t *ladder, const memrt__nodes_t *nodes, char *mapping,
                     size_t bytes);

#endif
