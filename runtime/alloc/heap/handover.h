#ifndef MEMRT_ALLOC_HEAP_HANDOVER_H
#define MEMRT_ALLOC_HEAP_HANDOVER_H

#include <stdbool.h>
#include <stddef.h>

#include "runtime/base/check.h"

/// Handover: batches of free blocks on the way from one thread cache to another.
///
/// Where one thread allocates and another thread frees, the thread cache of the second thread
/// pushes whole batches, and the thread cache of the first thread pops them. No lock is taken, and
/// the blocks stay out of the central list: in their spans, the blocks count as used. A thread that
/// frees its own blocks pushes nothing.
///
/// Each class has a few slots for one batch each. A batch that stays in its slot from one purge to
/// the next goes back to the central list.

/// Add the handover to the caches of the purger. Called once, at the start of the runtime.
void memrt__handover_start(void);

/// Slots of a class, and the maximum number of blocks in a slot.
#define MEMRT__HANDOVER_SLOTS 4u
#define MEMRT__HANDOVER_BLOCKS 32u

/// Push a batch: a list of `count` blocks, linked by memrt__block_next() and ending in NULL.
/// Returns false, with nothing changed, if no other thread needs blocks of the class, or if the
/// slots have no room.
bool memrt__handover_push(unsigned class, void *list, size_t count);

/// Pop at most `most` blocks as a list. `*taken` is the number of blocks. Returns NULL if the slots
/// have no batch. The calling thread counts as a thread that needs blocks of the class.
void *memrt__handover_pop(unsigned class, size_t most, size_t *taken);

/// Give batches back to the central list: all batches, or batches that the previous call has seen.
void memrt__handover_purge(bool all);

/// Return the bytes of the blocks in all slots.
size_t memrt__handover_cached(void);

/// Clear the slots that other threads were changing at a fork. Their blocks are lost, as are the
/// blocks in the thread caches of these threads.
void memrt__handover_forked(void);

#if MEMRT_DEBUG
/// Return whether the invariants of all slots hold. Threads: no other thread uses the heap.
bool memrt__handover_is_valid(void);
#endif

#endif
