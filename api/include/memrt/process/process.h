#ifndef MEMRT_PROCESS_H
#define MEMRT_PROCESS_H

/// Functions for the whole process.

#include <stddef.h>

#include <memrt/policy.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Give cached memory of all policies back; return the number of bytes. Another thread empties
/// its thread cache later: when the thread next frees a block, or runs out of blocks of a size
/// class.
typedef size_t (*memrt_release_unused_fn)(void);

/// Write an out-of-memory report: likely reasons why `policy` (NULL: the default one) refused
/// `size` bytes (0: any size), in a few lines for people.
///
/// The report has live and cached bytes, the limits of memrt that apply to the calling thread, and
/// the system limits in force. As far as allocations
/// were tracked, the report also has the allocation sites that hold most. Last come the largest
/// live buffers that have a name or a named reference.
///
/// Write at most `length` bytes with the closing zero; return the length of the whole text
/// without the zero. The call allocates no memory.
typedef size_t (*memrt_explain_shortage_fn)(const memrt_policy_t *policy, size_t size, char *text,
                                            size_t length);

/// Stop running destructors: from now on, a release only frees memory. Use the slot at the end
/// of a process, when the code of destructors, or their interpreter, goes away. Repeated calls
/// are allowed.
typedef void (*memrt_shutdown_fn)(void);

#ifdef __cplusplus
}
#endif

#endif
