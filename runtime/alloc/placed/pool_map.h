#ifndef MEMRT_ALLOC_PLACED_POOL_MAP_H
#define MEMRT_ALLOC_PLACED_POOL_MAP_H

#include <stdbool.h>
#include <stddef.h>

#include "runtime/alloc/placed/node_text.h"
#include "runtime/alloc/placed/page_ladder.h"

/// Settings for pages of the pool.
typedef struct memrt__pool_map {
    memrt__page_ladder_t *ladder; ///< gets refusals
    memrt__nodes_t *nodes;        ///< gets refusals
    unsigned threads;             ///< that give memory to the pages
} memrt__pool_map_t;

/// Replace the start of a fresh mapping by pages of the pool, by the rungs of a ladder. The pages
/// lie on the nodes and have memory. Returns false without pages that the ladder demands, and when
/// the system refuses to undo a failed rung.
bool memrt__pool_map(const memrt__pool_map_t *map, char *mapping, size_t bytes);

#endif
