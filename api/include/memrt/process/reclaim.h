#ifndef MEMRT_RECLAIM_H
#define MEMRT_RECLAIM_H

/// Reclaim callbacks, which free memory before memrt refuses an allocation.

#include <stddef.h>
#include <stdint.h>

#include <memrt/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Maximum of registered callbacks.
#define MEMRT_RECLAIM_MAX 64

/// Result of a callback that freed nothing.
#define MEMRT_RECLAIM_NOTHING SIZE_MAX

/// Free memory, because an allocation of `wanted` bytes, or a resize by `wanted` bytes, is about to
/// be refused. Returns the freed bytes as far as known, or MEMRT_RECLAIM_NOTHING. The number is a
/// hint: memrt repeats the allocation after any result but MEMRT_RECLAIM_NOTHING.
///
/// Callbacks also run when the use of a soft limit rises above the soft limit (limit_set_soft), on
/// a thread of memrt. `wanted` then is the excess over 95 % of the soft limit.
///
/// For an allocation, a callback runs on the thread of the allocation, inside of the allocation,
/// without a lock of memrt. Several threads may run the same callback at once. A callback may
/// allocate, free, resize other blocks, set limits, add and remove callbacks, and fork. An
/// allocation that is refused inside of a callback is refused at once, without further callbacks.
///
/// A callback must return, and leaves the thread in the scope of the call. A callback must not free
/// or resize a block that the thread is resizing. `errno` is kept, and the thread cannot be
/// cancelled during the callback.
typedef size_t (*memrt_reclaim_fn)(void *context, size_t wanted);

/// Add a callback. Before an allocation or a resize is refused because of a limit or for lack of
/// memory, memrt runs one round of callbacks: each callback at most once, lower priorities first,
/// callbacks of equal priority in the order of addition. After a callback memrt repeats the
/// allocation, and the round ends when the allocation succeeds. A round leaves out callbacks that
/// are added during the round. For lack of memory, memrt gives cached memory back first.
///
/// A failure by fault injection also starts a round, and each repetition is a further request. No
/// round starts for a request of 2^56 bytes or more, for the header of adopted memory, for CUDA
/// memory, and on a thread that holds the locks of memrt for a fork.
///
/// Ownership: `context` must stay valid until reclaim_remove() returned MEMRT_OK.
/// Failure:   MEMRT_EINVAL if `function` is NULL, or the pair of function and context exists;
///            MEMRT_ELIMIT with MEMRT_RECLAIM_MAX callbacks.
typedef memrt_status_t (*memrt_reclaim_add_fn)(memrt_reclaim_fn function, void *context,
                                               int priority);

/// Remove a callback. After MEMRT_OK no other thread runs the callback, and no thread runs the
/// callback again.
///
/// Outside of callbacks, the call waits for the end of runs in other threads. The caller must not
/// hold a lock that the callback takes. A callback may remove itself. In a forked child, runs of
/// threads of the parent have ended.
///
/// Failure: MEMRT_ENOENT without the pair of function and context; MEMRT_EBUSY inside of a callback
///          while another thread runs the removed callback. The callback then stays.
typedef memrt_status_t (*memrt_reclaim_remove_fn)(memrt_reclaim_fn function, void *context);

#ifdef __cplusplus
}
#endif

#endif
