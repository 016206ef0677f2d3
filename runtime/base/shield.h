#ifndef MEMRT_BASE_SHIELD_H
#define MEMRT_BASE_SHIELD_H

#include <errno.h>
#include <pthread.h>

/// Guards that hide system calls of memrt from the calling thread. Each guard is the first line of
/// a function and acts until that function returns.
///
/// Allocation, free and fork keep `errno` and are not cancellation points, including when the
/// system refuses a call. A thread cancelled inside memrt would leave a lock held and statistics
/// wrong.

/// Restore `errno` when the function returns: for functions that call the C library or the system.
#define MEMRT__KEEP_ERRNO                                                                          \
    const int memrt__kept_errno __attribute__((cleanup(memrt__errno_restore), unused)) = errno

/// Disable cancellation, and restore `errno` when the function returns: for functions that wait, or
/// open, read or write files.
#define MEMRT__SHIELD                                                                              \
    const memrt__shield_t memrt__shield __attribute__((cleanup(memrt__shield_lower), unused)) =    \
        memrt__shield_raise()

typedef struct memrt__shield {
    int error;  ///< `errno` of the caller
    int cancel; ///< cancellation state of the caller
} memrt__shield_t;

static inline void memrt__errno_restore(const int *kept)
{
    errno = *kept;
}

static inline memrt__shield_t memrt__shield_raise(void)
{
    memrt__shield_t shield = {.error = errno};
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &shield.cancel);
    return shield;
}

static inline void memrt__shield_lower(const memrt__shield_t *shield)
{
    int ignored;
    pthread_setcancelstate(shield->cancel, &ignored);
    errno = shield->error;
}

#endif
