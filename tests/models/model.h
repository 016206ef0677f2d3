#ifndef MEMRT_TESTS_MODELS_MODEL_H
#define MEMRT_TESTS_MODELS_MODEL_H

/// What every model begins with. A model is memrt's own source, as it stands, with what lies below
/// it replaced by a few lines, and a main that a checker of weak memory explores in every order.
///
/// Blocks are statics. Deleting one writes over all of it without any order, so that whatever
/// touches it before or after, and is not ordered, is a race that the checker reports.

#include <assert.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The checker's interpreter knows no arithmetic with overflow; here nothing is that large. */
#define __builtin_add_overflow(a, b, out) (*(out) = (a) + (b), false)
#define __builtin_mul_overflow(a, b, out) (*(out) = (a) * (b), false)

typedef int pthread_cond_t; /* the checker has none, and nothing here waits */

#include "runtime/base/atomics.h"
#include "runtime/stats/shard.h"

/* A checker's time goes with the size of memory. */
#undef MEMRT__ACCOUNTS
#define MEMRT__ACCOUNTS 16u

/* For the sources with one order taken away, where the runtime has no operation without it. */
#define memrt__fetch_sub1_relaxed(p) memrt__fetch_add_relaxed((p), (size_t)-1)
#define memrt__own_add_relaxed(p, value) memrt__own_add((p), (value))

static inline void memrt__raise_relaxed(size_t *p, size_t value)
{
    if ((ptrdiff_t)memrt__load_relaxed(p) < (ptrdiff_t)value) {
        memrt__store_relaxed(p, value); /* here one thread alone raises */
    }
}

static inline pthread_t model_thread(void *(*act)(void *), void *context)
{
    pthread_t thread;
    pthread_create(&thread, NULL, act, context);
    return thread;
}

static inline void model_join(pthread_t thread)
{
    pthread_join(thread, NULL);
}

#endif
