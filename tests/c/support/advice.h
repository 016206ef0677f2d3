#ifndef MEMRT_TESTS_SUPPORT_ADVICE_H
#define MEMRT_TESTS_SUPPORT_ADVICE_H

#include <stdbool.h>
#include <stddef.h>

/// Advice about huge pages for a mapping, as the system reports it in /proc/self/smaps.
typedef enum advice {
    ADVICE_NONE,
    ADVICE_HUGE,
    ADVICE_SMALL,
} advice_t;

/// Return the advice of the mapping that contains `address`; ADVICE_NONE when there is no mapping.
advice_t advice_at(const void *address);

/// Count the mappings of this process with advice for huge pages.
size_t advice_count_huge(void);

/// Return true when the system supports huge pages.
bool advice_is_taken(void);

#endif
