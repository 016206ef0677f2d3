#ifndef MEMRT_BASE_PROBES_H
#define MEMRT_BASE_PROBES_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/base/compiler.h"

/// Static probes, for tools that look on from outside, like bpftrace, perf and gdb: at each stands
/// an instruction that does nothing, and a note in the file of the library says where it is and
/// in which registers its arguments are. There is no flag to test: arguments are values at hand.
///
///     birth   (data, size, account, kind)      a block is complete
///     death   (data, size, account, kind)      its memory went back
///     resize  (old data, data, old size, size)
///     failure (size, account)                  a request was refused
///
/// `account` is the index in the header of the block, `kind` a memrt_kind_t. A resizable buffer
/// shows as the block of its data. A tiny block that grows to another place is born there and dies
/// where it was.

#if MEMRT_PROBES
#if defined(__clang__)
#define STAP_SDT_ARG_CONSTRAINT nr /* else it stores values for a note that can name registers */
#endif
#include <sys/sdt.h>
#define MEMRT__PROBE2(name, a, b) DTRACE_PROBE2(memrt, name, a, b)
#define MEMRT__PROBE4(name, a, b, c, d) DTRACE_PROBE4(memrt, name, a, b, c, d)
#else
#define MEMRT__PROBE2(name, a, b) ((void)(a), (void)(b))
#define MEMRT__PROBE4(name, a, b, c, d) ((void)(a), (void)(b), (void)(c), (void)(d))
#endif

static MEMRT__INLINE void memrt__probe_birth(const void *data, size_t size, uint32_t account,
                                             unsigned kind)
{
    MEMRT__PROBE4(birth, data, size, account, kind);
}

static MEMRT__INLINE void memrt__probe_death(const void *data, size_t size, uint32_t account,
                                             unsigned kind)
{
    MEMRT__PROBE4(death, data, size, account, kind);
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
