#ifndef MEMRT_TESTS_ABI_EXPECT_H
#define MEMRT_TESTS_ABI_EXPECT_H

#include <stdio.h>
#include <stdlib.h>

/// Check a condition without a test library, as in a program of a user. On failure, print the
/// condition and exit with EXIT_FAILURE.
#define EXPECT(condition)                                                                          \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: expected: %s\n", __FILE__, __LINE__, #condition);              \
            exit(EXIT_FAILURE);                                                                    \
        }                                                                                          \
    } while (0)

#endif
