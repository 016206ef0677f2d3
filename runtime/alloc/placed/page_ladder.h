#ifndef MEMRT_ALLOC_PLACED_PAGE_LADDER_H
#define MEMRT_ALLOC_PLACED_PAGE_LADDER_H

#include <stdbool.h>
#include <stddef.h>

#include "runtime/alloc/placed/refusal.h"

/// Page ladder: kinds of pages to try for each mapping, from large to small.

typedef enum memrt__rung {
    MEMRT__RUNG_1G,  ///< pages of 1 GiB of the pool
    MEMRT__RUNG_2M,  ///< pages of 2 MiB of the pool
    MEMRT__RUNG_THP, ///< transparent huge pages
    MEMRT__RUNG_4K,  ///< small pages
    MEMRT__RUNGS
} memrt__rung_t;

typedef struct memrt__page_ladder {
    bool has[MEMRT__RUNGS];
    size_t demanded; ///< bytes of the pages that a mapping must have; 0: any pages
    memrt__refusal_t refused[MEMRT__RUNGS];
} memrt__page_ladder_t;

/// Bytes for a text of pages, NUL included.
#define MEMRT__PAGES_TEXT 16

/// Read a text of memrt_placement_options_t.pages. NULL: no rung. Returns false for any other text.
bool memrt__page_ladder_read(const char *text, memrt__page_ladder_t *out);

/// Return whether mappings may have pages of the pool.
bool memrt__page_ladder_has_pool(const memrt__page_ladder_t *ladder);

/// Compute the bytes of the mapping for a block, at least two pages. With pages of the pool, the
/// bytes are not rounded up for reuse, because no page of the pool may be in vain. Returns false if
/// the size overflows.
bool memrt__page_ladder_bytes(const memrt__page_ladder_t *ladder, size_t size, size_t *bytes);

/// Return the least alignment of a mapping: of its first page that a rung can give.
size_t memrt__page_ladder_align(const memrt__page_ladder_t *ladder, size_t bytes);

#endif
