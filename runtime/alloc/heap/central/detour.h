#ifndef MEMRT_ALLOC_HEAP_DETOUR_H
#define MEMRT_ALLOC_HEAP_DETOUR_H

#include <stdbool.h>
#include <stddef.h>

#include "runtime/alloc/heap/span.h"
#include "runtime/thread/bin_layout.h"

/// Detour: blocks for threads that do not wait while a fork takes long. A thread forks and holds
/// all locks, while a fork handler of another library waits, possibly for such a thread. Blocks
/// then come from separate spans of separate segments, and freed blocks wait in lists.

/// Take up to `most` blocks as a list linked by memrt__block_next() and ending in NULL. `*taken` is
/// the number of blocks, 0 when out of memory. Blocks are fresh, so their reference counts are 0.
///
/// Failure: returns false if the fork is over.
bool memrt__detour_take(unsigned class, size_t most, void **list, size_t *taken);

/// Keep the blocks of a list until the end of the fork. Failure: returns false if the fork is over.
bool memrt__detour_defer(unsigned class, void *list);

/// End the detour: move the segments to the page heap, call `each` with each span, and store the
/// list of kept blocks of each class. From then on all threads wait for locks again.
///
/// Threads: the forking thread at the end of the fork, with all locks held.
void memrt__detour_end(void (*each)(memrt__span_t *span), void *lists[MEMRT__CLASSES]);

/// Forget spans and kept blocks in a forked child, because other threads may have been changing the
/// lists. Blocks from the spans stay usable; their memory is lost when they are freed.
void memrt__detour_forget(void);

#if MEMRT_DEBUG
/// Return whether the invariants of the detour hold: without a fork in progress, the detour is
/// empty. Takes the lock of rank DETOUR.
bool memrt__detour_is_valid(void);
#endif

#endif
