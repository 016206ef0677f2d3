#ifndef MEMRT_TESTS_ABI_EXPECT_H
#define MEMRT_TESTS_ABI_EXPECT_H

#include <stdio.h>
#include <stdlib.h>

/// Programs of users have no test library: what does not hold ends them with a line that says so.
#define EXPECT(condition)                                                                          \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: expected: %s\n", __FILE__, __LINE__, #condition);              \
            exit(EXIT_FAILURE);                                                                    \
        }                                                                                          \
    } while (0)

#endif
