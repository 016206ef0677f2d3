#ifndef MEMRT_ALLOC_PLACED_NODE_TEXT_H
#define MEMRT_ALLOC_PLACED_NODE_TEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/alloc/placed/refusal.h"
#include "runtime/os/placement.h"

/// Bytes for a text of nodes, NUL included: longer texts are refused.
#define MEMRT__NODE_TEXT 208

/// Nodes for the pages of a mapping. All members but refusals are fixed.
typedef struct memrt__nodes {
    memrt__node_mode_t mode;
    uint64_t set;
    bool local;                    ///< the node of the thread that allocates, in place of `set`
    bool has_home;                 ///< `home` is set; only with MEMRT__NODE_BIND
    unsigned home;                 ///< node of the set that gets pages first
    uint8_t weights[MEMRT__NODES]; ///< parts of a mapping, with MEMRT__NODE_SPLIT
    memrt__refusal_t refused, home_refused;
} memrt__nodes_t;

/// Read a text of memrt_placement_options_t.node. NULL: the system decides. Returns false for any
/// other text.
bool memrt__node_text_read(const char *text, memrt__nodes_t *out);

#endif
