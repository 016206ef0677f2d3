#ifndef MEMRT_TESTS_MODELS_PEAK_H
#define MEMRT_TESTS_MODELS_PEAK_H

/// One thread's gauge, and who reads the peak of its policy.

#include "tests/models/sums.h"

static memrt__thread_t record;

memrt__thread_t *memrt__thread_first(void)
{
    return &record;
}

enum { MUCH = MEMRT__GAUGE_FALL + 1 };

/// As memrt__stats_read() takes it, before it adds up the sums.
static inline size_t peak_now(void)
{
    static walk_t walk; /* most of it is not used: that it is zero takes no steps */
    walk.level = &level;
    first_account = &account;
    read_peak(&walk);
    return walk.peak;
}

#endif
