#ifndef MEMRT_BASE_LOCK_H
#define MEMRT_BASE_LOCK_H

/// Every lock of memrt, in the order in which one thread may take several.
///
/// They stand in one table so that fork can hold them all: fewer than 64, which is as many as
/// ThreadSanitizer lets one thread hold. None is held while code outside memrt
/// runs (destructors, allocators of others, callbacks).
typedef enum memrt__rank {
    MEMRT__RANK_POLICIES, ///< the table of policies
    MEMRT__RANK_THREADS,  ///< the list of thread records
    MEMRT__RANK_LIVE,     ///< first of the live set's, one a part
    MEMRT__RANK_LIVE_LAST = MEMRT__RANK_LIVE + 31,
    MEMRT__RANK_FAILURE, ///< the failure plan
    MEMRT__RANKS
} memrt__rank_t;
_Static_assert(MEMRT__RANKS < 64, "ThreadSanitizer lets one thread hold them all");

void memrt__lock(memrt__rank_t rank);
void memrt__unlock(memrt__rank_t rank);

/// Around fork: hold all; let go in the parent; make anew in the child.
void memrt__lock_all(void);
void memrt__unlock_all(void);
void memrt__lock_renew_all(void);

#endif
