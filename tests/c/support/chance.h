#ifndef MEMRT_TESTS_SUPPORT_CHANCE_H
#define MEMRT_TESTS_SUPPORT_CHANCE_H

#include <stddef.h>
#include <stdint.h>

/// Pseudo-random generator for one thread. Equal seeds give equal sequences.
typedef struct chance {
    uint64_t state; ///< never 0
} chance_t;

/// Create a generator. Any seed is valid; different seeds start different sequences.
chance_t chance_from(uint64_t seed);

/// Return the next number, from 0 to limit - 1; `limit` is at least 1.
size_t chance_below(chance_t *chance, size_t limit);

#endif
