#ifndef MEMRT_BINDINGS_CORE_TRACEMALLOC_H
#define MEMRT_BINDINGS_CORE_TRACEMALLOC_H

#include "core/cpython_layout.h"
#include "support/binding.h"

#include <memrt/import.h>

/// Show memrt's memory in tracemalloc. memrt_tracemalloc_register() of memrt/import.h tracks a
/// MemInfo. This file untracks a freed MemInfo, and moves the entry of a resized MemInfo.

/// Register the callbacks that report resizes and frees to tracemalloc. Call once, before the first
/// MemInfo is tracked.
///
/// A release or resize on a thread without the GIL only records the address to untrack:
/// PyTraceMalloc_Untrack may wait for the GIL. The next thread with the GIL that tracks memory,
/// calls memrt__owner_drain() or runs pending calls untracks the address.
void memrt__tracemalloc_setup(void);

/// Untrack the recorded addresses, if this thread has the GIL. Cheap when none is recorded.
void memrt__tracemalloc_drain(void);

/// Return whether tracemalloc is certainly off. Needs no GIL and calls no function of CPython.
static inline int memrt__tracemalloc_is_off(void)
{
    return __atomic_load_n(memrt__tracemalloc_switch, __ATOMIC_RELAXED) == 0;
}

/// Track a new `mi` of compiled code. Without the GIL nothing is tracked: `mi` is tracked once it
/// reaches Python. Returns 0, without an exception, if tracemalloc has no memory.
int memrt__tracemalloc_compiled(memrt_meminfo_t *mi);

/// Track adopted memory that no other library tracks, if tracemalloc has memory.
void memrt__tracemalloc_adopted(memrt_meminfo_t *mi);

#endif
