#ifndef MEMRT_TESTS_SUPPORT_CHANCE_H
#define MEMRT_TESTS_SUPPORT_CHANCE_H

#include <stddef.h>
#include <stdint.h>

/// Numbers that look random and follow from a seed, for one thread.
typedef struct chance {
    uint64_t state; ///< never 0
} chance_t;

/// Any seed will do; different ones begin differently.
chance_t chance_from(uint64_t seed);

/// The next number, from 0 to limit - 1; `limit` is at least 1.
size_t chance_below(chance_t *chance, size_t limit);

#endif
