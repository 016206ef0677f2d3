#ifndef MEMRT_OS_LOCK_H
#define MEMRT_OS_LOCK_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/check.h"

/// All locks of memrt, in the order in which one thread may take several.
///
/// The locks are in one table, so that fork can hold all of them. The table has fewer than 64
/// locks, the number that ThreadSanitizer lets one thread hold. No lock is held while code outside
/// memrt runs: destructors, allocators of other libraries, callbacks. The lock of thread-safe
/// adaptors (runtime/alloc/adaptors/thread_safe.h) is not in the table, because upstreams run under
/// the lock; a thread takes the lock before all locks of the table.
typedef enum memrt__rank {
    MEMRT__RANK_OPTIONS,    ///< setting an option, with its consequences
    MEMRT__RANK_STATS_PAGE, ///< the statistics page and its thread
    MEMRT__RANK_POLICIES,   ///< table of policies, and the reclaim callbacks
    MEMRT__RANK_THREADS,    ///< list of thread records
    MEMRT__RANK_LIVE,       ///< first lock of the live set, one lock per partition
    MEMRT__RANK_LIVE_LAST = MEMRT__RANK_LIVE + 31,
    MEMRT__RANK_NAMED_REFS, ///< named references
    MEMRT__RANK_SYMBOLS,    ///< slots of symbols
    MEMRT__RANK_INTERNED,   ///< interned values: sites and frames
    MEMRT__RANK_CLASS,      ///< first lock of the size classes; each lock serves a few classes
    MEMRT__RANK_CLASS_LAST = MEMRT__RANK_CLASS + 15,
    MEMRT__RANK_PAGE_HEAP,   ///< segments and their tables
    MEMRT__RANK_LARGE_CACHE, ///< large-object caches, and the cache of pinned memory
    MEMRT__RANK_PURGER,      ///< purger; pressure thread and its callbacks
    MEMRT__RANK_QUARANTINE,  ///< freed blocks that guards keep
    MEMRT__RANK_DETOUR,      ///< blocks for threads that do not wait for a fork
    MEMRT__RANK_TRACE,       ///< the event trace being recorded, and its file
    MEMRT__RANK_FAULT,       ///< fault injection plan; any thread with a lock may request memory
    MEMRT__RANK_UNWIND,      ///< held by a forking thread: whether threads may unwind
    MEMRT__RANKS
} memrt__rank_t;
_Static_assert(MEMRT__RANKS < 64, "ThreadSanitizer allows fewer than 64 locks per thread");

/// Take or release a lock. The first lock in a forked child repairs the child first; see
/// memrt__lock_at_fork(). Both functions do nothing on a forking thread that already holds the
/// lock.
void memrt__lock(memrt__rank_t rank);
void memrt__unlock(memrt__rank_t rank);

/// Make a condition for memrt__lock_wait().
void memrt__lock_condition(pthread_cond_t *condition);

/// Wait for `condition` until the time `until` of memrt__os_now_ns(). The lock is released during
/// the wait. Returns 0, or ETIMEDOUT after that time.
int memrt__lock_wait(memrt__rank_t rank, pthread_cond_t *condition, uint64_t until);

/// Take a lock that each allocation and free may need. Returns false when another thread forks and
/// the fork takes long, for example because a handler of another library waits for the calling
/// thread. The lock is then not taken, and the caller continues without the lock. A caller that
/// holds a lock of a lower rank always gets the lock, if forks take the lock of the lower rank too.
bool memrt__lock_or_fork(memrt__rank_t rank) __attribute__((warn_unused_result));

/// Begin and end work in steps under a lock. A step is short enough for a fork to wait.
void memrt__lock_begin_steps(memrt__rank_t rank);
void memrt__lock_end_steps(memrt__rank_t rank);

/// Between two steps, let a waiting thread take the lock, then take the lock again as
/// memrt__lock_or_fork() does.
bool memrt__lock_pass(memrt__rank_t rank) __attribute__((warn_unused_result));

#if MEMRT_DEBUG
/// Return whether the calling thread holds a lock.
bool memrt__lock_is_held(memrt__rank_t rank);
#endif

/// Check that the calling thread holds a lock.
#define MEMRT__ASSERT_HELD(rank) MEMRT__ASSERT(memrt__lock_is_held(rank))

/// Return whether a fork is in progress, from memrt's prepare handler to memrt's handler in parent
/// or child. Handlers of other libraries may run before and after these two handlers.
bool memrt__lock_is_forking(void);

/// Return whether the calling thread is the forking thread, which may take every lock.
bool memrt__lock_is_mine(void);

/// Hold locks around fork. memrt__lock_all() takes all locks before the fork, except the locks of
/// the live set, of named references and of the detour, which other threads continue to use.
/// memrt__unlock_all() releases the locks in the parent. memrt__lock_renew_all() releases the locks
/// in the child, and initializes the other locks anew.
void memrt__lock_all(void);
void memrt__unlock_all(void);
void memrt__lock_renew_all(void);

/// Mark the fork as finished: from now on all threads wait for locks again. Called by the forking
/// thread, with all locks held.
void memrt__lock_end_fork(void);

/// Register `child`, to be called when a child uses memrt before memrt's own handler runs there.
/// The locks that a fork does not hold are initialized first, because other threads may have been
/// changing the data under these locks.
void memrt__lock_at_fork(void (*child)(void));

#endif
