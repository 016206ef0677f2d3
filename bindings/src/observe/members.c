/// Resolve the chains of all links by memoization: each chain is followed once, and all rows on it
/// get the key of its end.

#include "observe/members.h"

#include "support/ndarray.h"

#define FIRST_ROWS 1024u

/// Key of a row that is not resolved yet.
#define UNKNOWN UINTPTR_MAX

/* --- All links. --- */

static int append_row(memrt_members_t *members, size_t *capacity, const memrt_member_t *row)
{
    if (members->count == *capacity) {
        size_t wanted = *capacity == 0 ? FIRST_ROWS : *capacity * 2;
        memrt_member_t *rows = PyMem_RawRealloc(members->rows, wanted * sizeof(*rows));
        if (rows == NULL) {
            PyErr_NoMemory();
            return -1;
        }
        members->rows = rows;
        *capacity = wanted;
    }
    members->rows[members->count++] = *row;
    return 0;
}

/// List one row per link. The label of a node is the number of its row, from 1.
static int list_links(memrt_graph_t *graph, memrt_members_t *members)
{
    size_t capacity = 0;
    for (uint32_t i = 0; i < graph->count; i++) {
        memrt_graph_node_t *node = &graph->nodes[i];
        if (memrt__object_graph_step(graph)) {
            return -1;
        }
        if (node->kind != MEMRT_NODE_OBJECT || !memrt__link_maybe(node->object)) {
            continue;
        }
        memrt_member_t row = {UNKNOWN, i, 0, 0, memrt__link_of(node->object)};
        if (append_row(members, &capacity, &row) < 0) {
            return -1;
        }
        node->label = (unsigned)members->count & MEMRT_LABEL_MOST;
    }
    return 0;
}

/// Connect each row to the next row of its chain. Until rows have groups, `group` is the number of
/// the next row, from 1, or 0 at the end of a chain. The last row of a chain gets its key at once.
static int connect_rows(memrt_graph_t *graph, memrt_members_t *members)
{
    for (size_t i = 0; i < members->count; i++) {
        memrt_member_t *row = &members->rows[i];
        PyObject *object = graph->nodes[row->node].object, *next = memrt__link_next(object);
        uint32_t to = next != NULL ? memrt__object_graph_find(graph, next) : MEMRT_GRAPH_NONE;
        if (memrt__object_graph_step(graph)) {
            return -1;
        }
        row->group = to != MEMRT_GRAPH_NONE ? graph->nodes[to].label : 0;
        if (row->group != 0) {
            members->rows[row->group - 1].links++;
        } else {
            row->key = memrt__base_chain_key(object);
        }
    }
    return 0;
}

static int clear_labels(memrt_graph_t *graph, const memrt_members_t *members)
{
    for (size_t i = 0; i < members->count; i++) {
        graph->nodes[members->rows[i].node].label = 0;
        if (memrt__object_graph_step(graph)) {
            return -1;
        }
    }
    return 0;
}

/* --- Keys. --- */

/// Find the key at the end of a chain and store the key in all rows of the chain. A circular chain
/// has no end and gets key 0.
static int follow_chain(memrt_graph_t *graph, memrt_members_t *members, size_t row)
{
    memrt_member_t *rows = members->rows;
    size_t end = row, steps = 0;
    while (rows[end].key == UNKNOWN && steps++ <= members->count) {
        end = rows[end].group - 1;
        if (memrt__object_graph_step(graph)) {
            return -1;
        }
    }
    memrt_buffer_key_t key = rows[end].key != UNKNOWN ? rows[end].key : 0;
    while (rows[row].key == UNKNOWN) {
        rows[row].key = key;
        row = rows[row].group - 1;
    }
    return 0;
}

static int find_keys(memrt_graph_t *graph, memrt_members_t *members)
{
    for (size_t i = 0; i < members->count; i++) {
        if (memrt__object_graph_step(graph) || follow_chain(graph, members, i) < 0) {
            return -1;
        }
    }
    return 0;
}

/// Drop rows without a buffer, and if `only` is not 0 also rows of all other buffers.
static void drop_other_buffers(memrt_members_t *members, memrt_buffer_key_t only)
{
    size_t count = 0;
    for (size_t i = 0; i < members->count; i++) {
        memrt_buffer_key_t key = members->rows[i].key;
        if (key != 0 && (only == 0 || key == only)) {
            members->rows[count++] = members->rows[i];
        }
    }
    members->count = count;
}

/* --- Groups. --- */

/// Return the slot of a key, or the empty slot for it.
static uint32_t *find_slot(const memrt_members_t *members, memrt_buffer_key_t key)
{
    uint64_t hash = (uint64_t)key * MEMRT_HASH_FACTOR;
    size_t slot = (size_t)(hash >> 20) & (members->slot_count - 1);
    while (members->slots[slot] != 0 && members->groups[members->slots[slot] - 1].key != key) {
        slot = (slot + 1) & (members->slot_count - 1);
    }
    return &members->slots[slot];
}

static int allocate_tables(memrt_members_t *members)
{
    members->slot_count = 16;
    while (members->slot_count < members->count * 2) {
        members->slot_count *= 2;
    }
    members->slots = PyMem_RawCalloc(members->slot_count, sizeof(*members->slots));
    members->groups = PyMem_RawCalloc(members->count + 1, sizeof(*members->groups));
    if (members->slots == NULL || members->groups == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    return 0;
}

/// Assign each row to a group, and count the members of each group.
static int assign_groups(memrt_graph_t *graph, memrt_members_t *members)
{
    for (size_t i = 0; i < members->count; i++) {
        memrt_member_t *row = &members->rows[i];
        uint32_t *slot = find_slot(members, row->key);
        if (*slot == 0) {
            members->groups[members->group_count] = (memrt_buffer_group_t){row->key, 0, 0};
            *slot = ++members->group_count;
        }
        row->group = *slot - 1;
        members->groups[row->group].count++;
        if (memrt__object_graph_step(graph)) {
            return -1;
        }
    }
    return 0;
}

/// Sort the rows by group, with stable order within each group.
static int sort_rows(memrt_graph_t *graph, memrt_members_t *members)
{
    memrt_member_t *sorted = PyMem_RawCalloc(members->count + 1, sizeof(*sorted));
    if (sorted == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    size_t first = 0;
    for (uint32_t i = 0; i < members->group_count; i++) {
        members->groups[i].first = first;
        first += members->groups[i].count;
        members->groups[i].count = 0;
    }
    for (size_t i = 0; i < members->count && !memrt__object_graph_step(graph); i++) {
        memrt_buffer_group_t *group = &members->groups[members->rows[i].group];
        sorted[group->first + group->count++] = members->rows[i];
    }
    PyMem_RawFree(members->rows);
    members->rows = sorted;
    return graph->interrupted ? -1 : 0;
}

int memrt__members_find(memrt_graph_t *graph, memrt_buffer_key_t only, memrt_members_t *out)
{
    *out = (memrt_members_t){0};
    if (list_links(graph, out) < 0 || connect_rows(graph, out) < 0 ||
        clear_labels(graph, out) < 0 || find_keys(graph, out) < 0) {
        return -1;
    }
    drop_other_buffers(out, only);
    return allocate_tables(out) < 0 || assign_groups(graph, out) < 0 ? -1 : sort_rows(graph, out);
}

void memrt__members_end(memrt_members_t *members)
{
    PyMem_RawFree(members->rows);
    PyMem_RawFree(members->groups);
    PyMem_RawFree(members->slots);
}

const memrt_buffer_group_t *memrt__members_of(const memrt_members_t *members,
                                              memrt_buffer_key_t key)
{
    uint32_t number = *find_slot(members, key);
    return number != 0 ? &members->groups[number - 1] : NULL;
}
