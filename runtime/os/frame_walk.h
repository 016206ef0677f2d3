#ifndef MEMRT_OS_FRAME_WALK_H
#define MEMRT_OS_FRAME_WALK_H

#include <stdbool.h>
#include <stdint.h>

/// Walk of the call stack by frame layouts, on Linux on x86-64 with glibc. A table of the process
/// maps return addresses to layouts, so that a walk reads two words of the stack per frame and
/// takes no lock.

#if defined(__x86_64__) && defined(__linux__) && defined(__GLIBC__)
#define MEMRT__FRAME_WALK 1
#else
#define MEMRT__FRAME_WALK 0
#endif

/// Registers of a function. `pc` is the address behind an instruction of the function.
typedef struct memrt__frame_registers {
    uintptr_t pc, rsp, rbp;
} memrt__frame_registers_t;

#if MEMRT__FRAME_WALK

/// Store the registers of the calling function.
#define MEMRT__FRAME_CAPTURE(registers)                                                            \
    __asm__ volatile("leaq 0f(%%rip), %0\n0:\tmovq %%rsp, %1\n\tmovq %%rbp, %2"                    \
                     : "=&r"((registers).pc), "=m"((registers).rsp), "=m"((registers).rbp))

/// Write up to `max` addresses: `from->pc`, then the return addresses of the callers, innermost
/// first. Returns the number of addresses.
///
/// Returns -1 where the walk does not know the complete call stack: on another stack than the
/// thread's own, above a signal handler, and above code without common unwind information. With
/// `may_find`, the walk finds missing layouts and takes a lock of the loader for that. Otherwise a
/// missing layout returns -1, and the walk takes no lock and is usable while the process forks.
int memrt__frame_walk(const memrt__frame_registers_t *from, void **frames, int max, bool may_find);

/// Prepare walks. Must come before memrt__frame_walk().
void memrt__frame_walk_start(void);

#endif

#endif
