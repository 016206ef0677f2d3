#ifndef MEMRT_ALLOC_HEAP_CENTRAL_LIST_H
#define MEMRT_ALLOC_HEAP_CENTRAL_LIST_H

#include <stdbool.h>
#include <stddef.h>

#include "runtime/base/check.h"

/// Central lists: blocks of each size class for all threads. Blocks are cut from spans, and are
/// taken and given back in linked lists. Each lock guards a few classes.

/// Take up to `most` blocks as a list linked by memrt__block_next() and ending in NULL. Of
/// medium blocks, only the first may take pages that are not in memory.
/// `*taken` is the number of blocks. Failure: returns NULL when out of memory.
void *memrt__central_list_take(unsigned class, size_t most, size_t *taken);

/// Take one block. `*clean` is true if the block is known to be zero after the first
/// MEMRT_HEADER_SIZE bytes. Failure: returns NULL when out of memory.
void *memrt__central_list_take_one(unsigned class, bool *clean);

/// Give the blocks of a list back, with the words of memrt__cached_header_write().
void memrt__central_list_give(unsigned class, void *list);

/// Move a block in use to another class, at the same address: its span takes free units after its
/// end, or gives units back. Failure: returns false, with nothing changed, if the units are in use,
/// if blocks of one of the classes share spans, or while a fork takes long.
bool memrt__central_list_resize(void *block, unsigned old_class, unsigned new_class);

/// Take in the spans made, and blocks freed, by threads that did not wait for a fork. From then on
/// all threads wait for locks again.
///
/// Threads: the forking thread at the end of the fork, with all locks held.
void memrt__central_list_settle(void);

/// Return the bytes of blocks given back to the central lists, for all classes.
size_t memrt__central_list_cached(void);

/// Return the bytes of blocks in use or cached by threads, for all classes. Blocks that threads
/// took during a slow fork are missing until the end of the fork.
size_t memrt__central_list_taken(void);

#if MEMRT_DEBUG
/// Return whether the invariants of the central lists and of all spans hold. Takes the locks of all
/// classes and the locks of ranks PAGE_HEAP and DETOUR.
bool memrt__central_list_is_valid(void);
#endif

#endif
