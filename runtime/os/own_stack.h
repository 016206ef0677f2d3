#ifndef MEMRT_OS_OWN_STACK_H
#define MEMRT_OS_OWN_STACK_H

#include <stdbool.h>
#include <stdint.h>

/// Return the end of the calling thread's stack, if `address` is on the stack: all words from a
/// stack pointer up to the end can be read. Returns 0 for other addresses, for example on an
/// alternate signal stack or on the stack of a coroutine.
///
/// The bounds of a thread are found once. Without bounds, the function finds the bounds if
/// `may_find` is true, and returns 0 otherwise. The C library allocates memory meanwhile. Returns 0
/// without memory, and in a child forked by a thread without bounds.
uintptr_t memrt__own_stack_end(uintptr_t address, bool may_find);

/// Find the stack of the main thread. Must come before memrt__own_stack_end().
void memrt__own_stack_start(void);

#endif
