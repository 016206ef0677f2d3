#ifndef MEMRT_STUBS_H
#define MEMRT_STUBS_H

#include <stddef.h>
#include <stdint.h>

#include <memrt/symbol.h>

/// Functions to call in place of symbols that are not defined: each knows its symbol, so that the
/// call can say which it was, though it has no argument that would tell.

/// What runs in a stub, on the thread of the call; gets the symbol's number, 0: not known. What it
/// returns the stub does.
intptr_t memrt__stub_called(uint32_t symbol);

/// A stub for the symbol of that number; one that knows none when all are in use. Needs the lock of
/// symbols. Of those that were given up the one that has been so for longest, so that who is on the
/// way to another finds its own symbol there.
memrt_function_t *memrt__stub_take(uint32_t symbol);

/// Give up a stub, of which there is one that knows none. It goes on working. Needs the lock.
void memrt__stub_give_up(memrt_function_t *stub);

#endif
