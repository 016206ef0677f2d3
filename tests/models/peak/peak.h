#ifndef MEMRT_TESTS_MODELS_PEAK_H
#define MEMRT_TESTS_MODELS_PEAK_H

/// Common part of the peak models: the gauge of one thread, and a reader of the policy's peak.

#include "tests/models/stats/sums.h"

static memrt__thread_t record;

memrt__thread_t *memrt__thread_first(void)
{
    return &record;
}

enum { MUCH = MEMRT__GAUGE_FALL + 1 };

/// Read the peak in the same way as memrt__stats_read(), before any sums.
static inline size_t peak_now(void)
{
    static walk_t walk; /* static, because zeroing a local variable would add steps to the model */
    walk.level = &level;
    first_account = &account;
    read_peak(&walk);
    return walk.peak;
}

#endif
