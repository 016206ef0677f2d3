#ifndef MEMRT_ALLOC_HEAP_PAGE_DETOUR_H
#define MEMRT_ALLOC_HEAP_PAGE_DETOUR_H

#include <stdbool.h>
#include <stddef.h>

#include "runtime/alloc/heap/span.h"

/// Page detour: spans for threads that do not wait while a fork takes long, from separate segments.
/// The page heap adopts the segments after the fork.

/// Take a span while a fork is in progress, from separate segments. Under the lock of rank DETOUR.
/// Failure: returns NULL when out of memory.
memrt__span_t *memrt__page_detour_take(size_t units);

/// Move the segments of memrt__page_detour_take() to the other segments, and call `each` with each
/// span. Under the lock of rank DETOUR.
void memrt__page_detour_join(void (*each)(memrt__span_t *span));

/// Forget the segments of memrt__page_detour_take() in a forked child, because other threads may
/// have been changing the segments.
void memrt__page_detour_forget(void);

#if MEMRT_DEBUG
/// Return whether the invariants of the page detour hold. Under the lock of rank DETOUR.
bool memrt__page_detour_is_valid(void);
#endif

#endif
