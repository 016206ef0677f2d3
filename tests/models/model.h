#ifndef MEMRT_TESTS_MODELS_MODEL_H
#define MEMRT_TESTS_MODELS_MODEL_H

/// Common declarations of all weak-memory models. A model includes unchanged sources of memrt, with
/// short stubs for the lower layers. The checker explores the model's `main` in every execution
/// that the memory model allows.
///
/// Blocks are static variables. A free overwrites the whole block with plain stores. The checker
/// therefore reports each unordered access, before or after the free, as a race.

#include <assert.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The checker's interpreter lacks overflow builtins. Numbers in models are too small for overflow,
   so the macros never report one. */
#define __builtin_add_overflow(a, b, out) (*(out) = (a) + (b), false)
#define __builtin_mul_overflow(a, b, out) (*(out) = (a) * (b), false)

#define double long /* the checker cannot set a double to zero, and no model reads a time */

#ifndef MODEL_HAS_CONDITIONS
typedef int pthread_cond_t; /* the checker lacks condition variables, and no model waits */
#endif

#ifndef PTHREAD_CANCEL_DISABLE /* the checker lacks cancellation */
#define PTHREAD_CANCEL_DISABLE 1

static inline int pthread_setcancelstate(int state, int *before)
{
    *before = state;
    return 0;
}
#endif

#include "runtime/base/atomics.h"

/* Weaker operations for sources with one order removed, where the runtime itself lacks a weaker
   form. */
#define memrt__fetch_sub1_relaxed(p) memrt__fetch_add_relaxed((p), (size_t)-1)

static inline bool memrt__own_take(size_t *p, size_t value)
{
    size_t left = memrt__load_relaxed(p) - value;
    if ((ptrdiff_t)left >= 0) {
        memrt__store_relaxed(p, left);
    }
    return (ptrdiff_t)left >= 0;
}

static inline void memrt__raise_relaxed(size_t *p, size_t value)
{
    if ((ptrdiff_t)memrt__load_relaxed(p) < (ptrdiff_t)value) {
        memrt__store_relaxed(p, value); /* correct because a single thread raises */
    }
}

#include "runtime/stats/shard.h"

/* The run time of the checker grows with the size of memory. */
#undef MEMRT__ACCOUNTS
#define MEMRT__ACCOUNTS 16u

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
