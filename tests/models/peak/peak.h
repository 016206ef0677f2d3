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

static memrt__peak_t found;

/// Read the peak of the policy into `found`, and return the bytes.
static inline size_t peak_now(void)
{
    first_account = &account;
    memrt__peak_read(&level, &found);
    return found.bytes;
}

#endif
