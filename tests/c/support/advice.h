#ifndef MEMRT_TESTS_SUPPORT_ADVICE_H
#define MEMRT_TESTS_SUPPORT_ADVICE_H

#include <stdbool.h>
#include <stddef.h>

/// What the system was advised about huge pages at an address, as it says itself.
typedef enum advice {
    ADVICE_NONE,
    ADVICE_HUGE,
    ADVICE_SMALL,
} advice_t;

/// Of the mapping that `address` lies in.
advice_t advice_at(const void *address);

/// Mappings of this process that have the advice for huge pages.
size_t advice_count_huge(void);

/// Whether the system has huge pages at all.
bool advice_is_taken(void);

#endif
