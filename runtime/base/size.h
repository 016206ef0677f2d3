#ifndef MEMRT_BASE_SIZE_H
#define MEMRT_BASE_SIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/check.h"

/// Size arithmetic that reports overflow. All size arithmetic of memrt uses the
/// functions of the file. Each function returns false on overflow.

static inline bool memrt__size_add(size_t a, size_t b, size_t *out)
{
    return !__builtin_add_overflow(a, b, out);
}

static inline bool memrt__size_mul(size_t a, size_t b, size_t *out)
{
    return !__builtin_mul_overflow(a, b, out);
}

static inline bool memrt__is_power_of_two(size_t n)
{
    return n != 0 && (n & (n - 1)) == 0;
}

/// Round `n` up to a multiple of `align`, a power of two. Returns false on overflow.
static inline bool memrt__size_round_up(size_t n, size_t align, size_t *out)
{
    MEMRT__ASSERT(memrt__is_power_of_two(align));
    if (!memrt__size_add(n, align - 1, out)) {
        return false;
    }
    *out &= ~(align - 1);
    return true;
}

/// Factor of Fibonacci hashing: 2 to the power of 64 divided by the golden ratio, odd. The product
/// with the factor spreads near numbers over the high bits.
#define MEMRT__HASH_FACTOR ((uint64_t)0x9E3779B97F4A7C15u)

static inline unsigned memrt__log2(size_t power_of_two)
{
    MEMRT__ASSERT(memrt__is_power_of_two(power_of_two));
    return (unsigned)__builtin_ctzll(power_of_two);
}

/// Return the position of the highest set bit of `n`. `n` must not be 0.
static inline unsigned memrt__floor_log2(size_t n)
{
    MEMRT__ASSERT(n != 0);
    return 63u - (unsigned)__builtin_clzll(n);
}

static inline size_t memrt__size_min(size_t a, size_t b)
{
    return a < b ? a : b;
}

static inline size_t memrt__size_max(size_t a, size_t b)
{
    return a > b ? a : b;
}

/// Return a signed difference of counters, or 0 for a negative difference. Counters that change
/// during the reading may make the difference negative.
static inline uint64_t memrt__size_at_least_zero(size_t difference)
{
    return (ptrdiff_t)difference > 0 ? difference : 0;
}

#endif
