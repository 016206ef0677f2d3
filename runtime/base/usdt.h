#ifndef MEMRT_BASE_USDT_H
#define MEMRT_BASE_USDT_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/base/compiler.h"

/// Static probes for external tools such as bpftrace, perf and gdb. A probe is a no-op instruction.
/// A note in the library's file records the address of the instruction and the registers of its
/// arguments. The code tests no flag; all arguments are values at hand.
///
///     `alloc`   (data, size, account, kind)      a block is complete
///     `free`    (data, size, account, kind)      the block's memory was freed
///     `resize`  (old data, data, old size, size)
///     `failure` (size, account)                  a request was refused
///
/// `account` is the index in the block's header, `kind` a memrt_kind_t. A resizable buffer appears
/// as its data block. When a tiny block moves as it grows, `alloc` fires at the new address and
/// `free` at the old address.

#if MEMRT_PROBES
#if defined(__clang__)
#define STAP_SDT_ARG_CONSTRAINT nr /* clang would spill each value to memory with the default */
#endif
#include <sys/sdt.h>
#define MEMRT__PROBE2(name, a, b) DTRACE_PROBE2(memrt, name, a, b)
#define MEMRT__PROBE4(name, a, b, c, d) DTRACE_PROBE4(memrt, name, a, b, c, d)
#else
#define MEMRT__PROBE2(name, a, b) ((void)(a), (void)(b))
#define MEMRT__PROBE4(name, a, b, c, d) ((void)(a), (void)(b), (void)(c), (void)(d))
#endif

static MEMRT__INLINE void memrt__probe_alloc(const void *data, size_t size, uint32_t account,
                                             unsigned kind)
{
    MEMRT__PROBE4(alloc, data, size, account, kind);
}

static MEMRT__INLINE void memrt__probe_free(const void *data, size_t size, uint32_t account,
                                            unsigned kind)
{
    MEMRT__PROBE4(free, data, size, account, kind);
}

static MEMRT__INLINE void memrt__probe_resize(const void *old_data, const void *data,
                                              size_t old_size, size_t size)
{
    MEMRT__PROBE4(resize, old_data, data, old_size, size);
}

static MEMRT__INLINE void memrt__probe_failure(size_t size, uint32_t account)
{
    MEMRT__PROBE2(failure, size, account);
}

#endif
