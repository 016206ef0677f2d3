#include "runtime/base/lock.h"

#include "runtime/base/compiler.h"

/// A line each, so that neighbours do not slow each other down.
typedef struct lock_line {
    _Alignas(MEMRT__CACHE_LINE) pthread_mutex_t mutex;
} lock_line_t;

/// They are held for shorter than it takes to sleep and wake up, so who waits tries again first,
/// where the C library has such mutexes.
#ifdef PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP
#define MUTEX_TYPE PTHREAD_MUTEX_ADAPTIVE_NP
#define MUTEX_INITIALIZER PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP
#else
#define MUTEX_TYPE PTHREAD_MUTEX_DEFAULT
#define MUTEX_INITIALIZER PTHREAD_MUTEX_INITIALIZER
#endif

static lock_line_t locks[MEMRT__RANKS] = {
    [0 ... MEMRT__RANKS - 1] = {.mutex = MUTEX_INITIALIZER},
};

void memrt__lock(memrt__rank_t rank)
{
    pthread_mutex_lock(&locks[rank].mutex);
}

void memrt__unlock(memrt__rank_t rank)
{
    pthread_mutex_unlock(&locks[rank].mutex);
}

int memrt__lock_wait(memrt__rank_t rank, pthread_cond_t *condition, const struct timespec *until)
{
    return pthread_cond_timedwait(condition, &locks[rank].mutex, until);
}

void memrt__lock_all(void)
{
    for (int rank = 0; rank < MEMRT__RANKS; rank++) {
        memrt__lock((memrt__rank_t)rank);
    }
}

void memrt__unlock_all(void)
{
    for (int rank = MEMRT__RANKS - 1; rank >= 0; rank--) {
        memrt__unlock((memrt__rank_t)rank);
    }
}

void memrt__lock_renew_all(void)
{
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, MUTEX_TYPE);
    for (int rank = 0; rank < MEMRT__RANKS; rank++) {
        pthread_mutex_init(&locks[rank].mutex, &attributes);
    }
    pthread_mutexattr_destroy(&attributes);
}
