#ifndef MEMRT_OS_UNWIND_H
#define MEMRT_OS_UNWIND_H

#include <stdbool.h>
#include <stddef.h>

/// Write up to `max` return addresses of the calling thread's call stack, starting with the caller,
/// innermost first. Returns the number of addresses. Returns less than 0 when the unwinder fails,
/// and 0 without an unwinder.
///
/// Walks the stack by cached frame layouts on Linux on x86-64 (frame_walk.h). The first walk
/// through a function finds the layout of the function. Other call stacks go to the unwinder:
/// libunwind where installed, otherwise the C library, if the C library can unwind. While a fork
/// takes long, returns 0 for call stacks with a missing layout, and for call stacks of the
/// unwinder. The first call of a process loads the unwinder.
int memrt__unwind(void **frames, int max);

/// Like memrt__unwind(), but always with the unwinder. Returns the same frames.
int memrt__unwind_by_library(void **frames, int max);

/// Keep threads out of the unwinder around fork, with all locks held. The unwinder has locks of its
/// own that a child cannot reinitialize.
///
/// memrt__unwind_pause() waits up to one second until no other thread is inside the unwinder, and
/// keeps threads out. memrt__unwind_resume() admits threads again in the parent,
/// memrt__unwind_forked() in the child.
void memrt__unwind_pause(void);
void memrt__unwind_resume(void);
void memrt__unwind_forked(void);

/// Return whether libunwind is the unwinder in use; for reports.
bool memrt__unwind_is_fast(void);

/// Return how many of the innermost frames are calls inside libmemrt.
size_t memrt__unwind_own(void *const *frames, size_t count);

#endif
