#ifndef MEMRT_BINDINGS_CORE_TRACEMALLOC_H
#define MEMRT_BINDINGS_CORE_TRACEMALLOC_H

#include "core/cpython_layout.h"
#include "support/binding.h"

#include <memrt/import.h>

/// Show the memory of MemInfos in tracemalloc, under the address of the data.
/// memrt_tracemalloc_register() of memrt/import.h tracks a new MemInfo. The callbacks of this file
/// untrack a freed MemInfo, and move the entry of a resized MemInfo.
///
/// Invariant: no callback waits for the GIL. PyTraceMalloc_Untrack may wait, so a free or resize on
/// a thread without the GIL only records the address. The next thread with the GIL that tracks
/// memory, calls memrt__owner_drain() or runs pending calls untracks the recorded addresses.

/// Register the callbacks. Call once, before the first MemInfo is tracked.
void memrt__tracemalloc_setup(void);

/// Untrack the recorded addresses, if this thread has the GIL. Costs one load without recorded
/// addresses.
void memrt__tracemalloc_drain(void);

/// Return whether tracemalloc is certainly off. Needs no GIL and calls no function of CPython.
static inline int memrt__tracemalloc_is_off(void)
{
    return __atomic_load_n(memrt__tracemalloc_switch, __ATOMIC_RELAXED) == 0;
}

/// Track a new MemInfo of compiled code. Without the GIL, the MemInfo is tracked later, when it
/// reaches Python. Returns 1, or 0 without an exception if tracemalloc has no memory.
int memrt__tracemalloc_track_compiled(memrt_meminfo_t *mi);

/// Track adopted memory that no other library tracks. No effect, and no exception, if tracemalloc
/// has no memory. With the GIL.
void memrt__tracemalloc_track_adopted(memrt_meminfo_t *mi);

#endif
