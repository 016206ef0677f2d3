#ifndef MEMRT_TESTS_SUPPORT_BOOKS_H
#define MEMRT_TESTS_SUPPORT_BOOKS_H

#include "support/suite.h"

/// Everything that memrt keeps account of, at one moment.
typedef struct books {
    memrt_stats_t stats; ///< of the process
    size_t listed;       ///< keys in the live set
    size_t policies;     ///< that are live, after those that can go are gone
    int tracking;
} books_t;

books_t books_now(void);

/// Everything made since is gone again: live figures are as they were. Fails the test if not.
void books_expect_no_leak(const books_t *before);

/// Nothing happened since but refused requests: all figures but `failed` are as they were.
void books_expect_unchanged(const books_t *before);

/// The account of `policy`, NULL: the process.
memrt_stats_t stats_of(const memrt_policy_t *policy);

#endif
