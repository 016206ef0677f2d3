#ifndef MEMRT_BINDINGS_OBSERVE_MEMBERS_H
#define MEMRT_BINDINGS_OBSERVE_MEMBERS_H

#include "observe/base_chain.h"
#include "observe/object_graph.h"

/// Find the objects of an open object graph that keep buffers alive, grouped by buffer. Each object
/// is visited a fixed number of times, whatever the length of the chains.

typedef struct memrt_member {
    memrt_buffer_key_t key;
    uint32_t node;
    uint32_t group; ///< number of the buffer's group
    uint32_t links; ///< references to this member from the next-outer links of chains
    memrt_link_t link;
} memrt_member_t;

/// The members of one buffer: `count` rows starting at `first`, in the order of the object graph.
typedef struct memrt_buffer_group {
    memrt_buffer_key_t key;
    size_t first, count;
} memrt_buffer_group_t;

typedef struct memrt_members {
    memrt_member_t *rows; ///< sorted by group
    size_t count;
    memrt_buffer_group_t *groups; ///< in the order of their first members
    uint32_t group_count;
    uint32_t *slots; ///< open addressing by key: number of a group from 1, or 0
    size_t slot_count;
} memrt_members_t;

/// Find the members of the buffer `only`, or of all buffers for 0. Labels of the graph must be 0
/// before, and are 0 after success. Call memrt__members_end() in each case.
/// Failure: -1 with an exception, or without one if interrupted.
int memrt__members_find(memrt_graph_t *graph, memrt_buffer_key_t only, memrt_members_t *out);
void memrt__members_end(memrt_members_t *members);

/// Return the group of a buffer, or NULL.
const memrt_buffer_group_t *memrt__members_of(const memrt_members_t *members,
                                              memrt_buffer_key_t key);

#endif
