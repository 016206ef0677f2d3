#ifndef MEMRT_OS_PLACEMENT_H
#define MEMRT_OS_PLACEMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/// Placement of pages: NUMA nodes, huge pages and locks of a range of memory. Ranges are whole
/// pages of mappings of this process.
///
/// A function that returns `int` returns 0, or the error number of the system.

/// Maximum number of NUMA nodes; the nodes of a set are the bits of a word.
#define MEMRT__NODES 64u

/// Way in which pages are placed on a set of nodes.
typedef enum memrt__node_mode {
    MEMRT__NODE_ANY,        ///< the policy of the thread that touches a page first
    MEMRT__NODE_PREFER,     ///< one node; other nodes once the node is full
    MEMRT__NODE_BIND,       ///< only nodes of the set
    MEMRT__NODE_INTERLEAVE, ///< pages in turn over the nodes of the set
    MEMRT__NODE_WEIGHTED,   ///< as MEMRT__NODE_INTERLEAVE, by the system's weights; Linux 6.9
    MEMRT__NODE_SPLIT,      ///< parts of a range, by weights; not for memrt__os_place()
} memrt__node_mode_t;

/// Place the pages of a range on nodes, at least one, in any mode but MEMRT__NODE_ANY and
/// MEMRT__NODE_SPLIT. Pages that have memory move.
int memrt__os_place(void *address, size_t size, memrt__node_mode_t mode, uint64_t nodes);

/// Prefer a node for the pages of a range that memrt__os_place() has placed on several nodes by
/// MEMRT__NODE_BIND. For pages that get memory later. Linux 5.17.
int memrt__os_prefer_home(void *address, size_t size, unsigned node);

/// Return the node of the processor of this thread, or 0 where the system does not know nodes.
unsigned memrt__os_node(void);

/// Let this thread run only on processors of nodes. Does nothing where the system refuses.
void memrt__os_run_on_nodes(uint64_t nodes);

/// Lock a range in memory. All pages of the range have memory afterwards.
int memrt__os_lock_pages(void *address, size_t size);

/// Replace the pages of a range by huge pages. The range begins and ends at a multiple of
/// MEMRT__HUGE_PAGE. 0: all pages of the range are huge.
int memrt__os_collapse(void *address, size_t size);

/// Give memory to all pages of a range. A shortage is an error here, and no signal at a later
/// write.
int memrt__os_populate_all(void *address, size_t size);

/// Huge pages that the system has in a pool for this use (hugetlb): pages of MEMRT__HUGE_PAGE or of
/// MEMRT__GIANT_PAGE.
#define MEMRT__GIANT_PAGE ((size_t)1 << 30)

/// Map pages of the pool, `size` a multiple of `page`. The system reserves the pages, but may still
/// lack pages on the nodes of memrt__os_place(), until memrt__os_populate_all(). Failure: returns
/// NULL with an error number. Not in the mapping table.
void *memrt__os_map_pool(size_t size, size_t page, int *error);

/// Leave a range out of forked children: the addresses are free there.
int memrt__os_hide_from_child(void *address, size_t size);

/// Move a mapping to the place of a part of another mapping, and keep the rest of the other
/// mapping. Failure: returns the error number with both unchanged.
int memrt__os_move(void *from, size_t size, void *to);

/// Map fresh small pages at free addresses. Returns false if an address is in use.
bool memrt__os_map_at(void *address, size_t size);

/// Pages of a range, in bytes.
typedef struct memrt__page_facts {
    uint64_t resident, huge, swapped, locked;
    uint64_t by_node[MEMRT__NODES]; ///< resident bytes
    bool knows_huge, knows_nodes;   ///< the system reports `huge`, and `by_node`
} memrt__page_facts_t;

/// Open the page map of this process, for memrt__os_huge_part(), then memrt__os_file_close().
/// Returns -1 where the system refuses.
int memrt__os_page_map_open(void);

/// Add the bytes of a range that are in huge pages. Returns false, possibly with a part added,
/// where the system does not report huge pages.
bool memrt__os_huge_part(int page_map, uintptr_t address, size_t size, uint64_t *huge);

/// Read the facts about a range. Other threads may change the pages meanwhile.
int memrt__os_page_facts(uintptr_t address, size_t size, memrt__page_facts_t *out);

#endif
