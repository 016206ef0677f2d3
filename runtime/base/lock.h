#ifndef MEMRT_BASE_LOCK_H
#define MEMRT_BASE_LOCK_H

#include <pthread.h>
#include <time.h>

/// Every lock of memrt, in the order in which one thread may take several.
///
/// They stand in one table so that fork can hold them all: fewer than 64, which is as many as
/// ThreadSanitizer lets one thread hold. None is held while code outside memrt
/// runs (destructors, allocators of others, callbacks).
typedef enum memrt__rank {
    MEMRT__RANK_OPTIONS,  ///< setting an option, with what follows from it
    MEMRT__RANK_SHARE,    ///< whether the statistics are shared
    MEMRT__RANK_POLICIES, ///< the table of policies
    MEMRT__RANK_THREADS,  ///< the list of thread records
    MEMRT__RANK_LIVE,     ///< first of the live set's, one a part
    MEMRT__RANK_LIVE_LAST = MEMRT__RANK_LIVE + 31,
    MEMRT__RANK_HOLDERS,  ///< who holds what under a name
    MEMRT__RANK_SYMBOLS,  ///< slots of symbols
    MEMRT__RANK_INTERNED, ///< what is told apart once: sites and frames
    MEMRT__RANK_FAILURE,  ///< the failure plan
    MEMRT__RANK_CLASS,    ///< first of those of size classes, one for each few
    MEMRT__RANK_CLASS_LAST = MEMRT__RANK_CLASS + 15,
    MEMRT__RANK_PAGES,      ///< segments and their tables
    MEMRT__RANK_WARM,       ///< large mappings kept for reuse
    MEMRT__RANK_PURGER,     ///< whether the purger runs
    MEMRT__RANK_QUARANTINE, ///< freed blocks that guards keep
    MEMRT__RANK_TRACE,      ///< the trace that is recorded, and its file
    MEMRT__RANK_UNWIND,     ///< only who forks has it: whether threads may unwind
    MEMRT__RANKS
} memrt__rank_t;
_Static_assert(MEMRT__RANKS < 64, "ThreadSanitizer lets one thread hold them all");

void memrt__lock(memrt__rank_t rank);
void memrt__unlock(memrt__rank_t rank);

/// Wait for `condition`, of the clock that only runs forward, until a time on it, with the lock let
/// go meanwhile. Returns 0, or ETIMEDOUT when the time has come.
int memrt__lock_wait(memrt__rank_t rank, pthread_cond_t *condition, const struct timespec *until);

/// Around fork: hold all; let go in the parent; make anew in the child.
void memrt__lock_all(void);
void memrt__unlock_all(void);
void memrt__lock_renew_all(void);

#endif
