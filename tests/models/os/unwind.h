#ifndef MEMRT_TESTS_MODELS_UNWIND_H
#define MEMRT_TESTS_MODELS_UNWIND_H

/// Run the runtime's unwinder in a model, with stubs for the libraries that find frames.

#include "tests/models/model.h"

/* The checker lacks once-functions and keys of threads. */
#define pthread_key_t unsigned
#define pthread_once_t size_t
#undef PTHREAD_ONCE_INIT
#define PTHREAD_ONCE_INIT 0

static pthread_mutex_t once_mutex = PTHREAD_MUTEX_INITIALIZER;

static inline int model_once(pthread_once_t *once, void (*act)(void))
{
    pthread_mutex_lock(&once_mutex);
    if (*once == 0) {
        *once = 1;
        act();
    }
    pthread_mutex_unlock(&once_mutex);
    return 0;
}

#define pthread_once model_once

#include "runtime/base/shield.h"
#include "runtime/os/frame_walk.h"

/* The checker lacks registers, and refuses the copies of a shield. */
#undef MEMRT__SHIELD
#define MEMRT__SHIELD (void)0
#undef MEMRT__FRAME_CAPTURE
#define MEMRT__FRAME_CAPTURE(registers) ((registers).pc = (registers).rsp = (registers).rbp = 0)

#include "runtime/os/unwind.c"

uint64_t memrt__os_now_ns(void)
{
    return 0;
}

int sched_yield(void)
{
    return 0;
}

bool memrt__lock_is_mine(void)
{
    return false;
}

/// Fail to enter, as in a slow fork.
bool memrt__lock_or_fork(memrt__rank_t rank)
{
    return false;
}

void memrt__unlock(memrt__rank_t rank)
{
    (void)rank;
}

#endif
