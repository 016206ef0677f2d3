#ifndef MEMRT_BASE_UNWIND_H
#define MEMRT_BASE_UNWIND_H

#include <stdbool.h>
#include <stddef.h>

/// Write the return addresses of the calls that led here, innermost first, from the caller's on, up
/// to `max` of them; returns how many, or less than 0 when it cannot tell. By libunwind where it is
/// installed, which takes about 10 ns for each; else by the C library, which takes about 200 ns, or
/// not at all where it has none. The first call of a process loads either.
int memrt__unwind(void **frames, int max);

/// Around fork, with all locks held: wait until no other thread is inside of the unwinder, for a
/// second at most, and keep all out of it; let them in again in the parent; in the child. The
/// unwinder has locks of its own that it does not make anew in a child.
void memrt__unwind_pause(void);
void memrt__unwind_resume(void);
void memrt__unwind_forked(void);

/// Whether libunwind is what unwinds; for reports.
bool memrt__unwind_is_fast(void);

/// How many of the innermost frames are calls inside of libmemrt.
size_t memrt__unwind_own(void *const *frames, size_t count);

#endif
