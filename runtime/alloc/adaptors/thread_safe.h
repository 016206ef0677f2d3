#ifndef MEMRT_ALLOC_ADAPTORS_THREAD_SAFE_H
#define MEMRT_ALLOC_ADAPTORS_THREAD_SAFE_H

/// Hold the lock of all thread-safe adaptors around a fork, so that no upstream is in a call of
/// another thread at the fork.
///
/// The lock comes before all locks of memrt, because upstreams may take these locks. So
/// memrt__thread_safe_hold() runs before memrt__lock_all(), and memrt__thread_safe_release() runs
/// in parent and child after memrt__unlock_all() or memrt__lock_renew_all().
void memrt__thread_safe_hold(void);
void memrt__thread_safe_release(void);

#endif
