#ifndef MEMRT_TESTS_SUPPORT_BOOKS_H
#define MEMRT_TESTS_SUPPORT_BOOKS_H

#include <stdbool.h>

#include "support/suite.h"

/// Snapshot of all accounts of memrt.
typedef struct books {
    memrt_stats_t stats; ///< of the process
    size_t listed;       ///< keys in the live set
    size_t policies;     ///< live policies, after unused policies were destroyed
    int tracking;
} books_t;

books_t books_now(void);

/// Fail the test unless all live figures are as in `before`: later allocations were freed.
void books_expect_no_leak(const books_t *before);

/// Fail the test unless all figures except `failed` are as in `before`: since then, memrt only
/// refused requests.
void books_expect_unchanged(const books_t *before);

/// Return the statistics of `policy`; NULL: of the process.
memrt_stats_t stats_of(const memrt_policy_t *policy);

/// Return the number of records of threads, which ended threads leave for later threads.
/// `in_use_only`: only of threads that have not ended.
size_t count_thread_records(bool in_use_only);

#endif
