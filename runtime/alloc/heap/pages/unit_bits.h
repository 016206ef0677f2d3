#ifndef MEMRT_ALLOC_HEAP_PAGES_UNIT_BITS_H
#define MEMRT_ALLOC_HEAP_PAGES_UNIT_BITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/alloc/heap/span.h"

/// Bitmaps of the units of a segment, and runs of units in a bitmap. A unit is MEMRT__UNIT bytes; a
/// run is a range of adjacent units.
///
/// Invariant: units and runs lie within the segment. The functions take no lock; the caller holds
/// the lock that protects the bitmap.

#define MEMRT__SEGMENT_UNITS (MEMRT__SEGMENT / MEMRT__UNIT)
#define MEMRT__SEGMENT_WORDS (MEMRT__SEGMENT_UNITS / 64)

/// One bit per unit.
typedef struct memrt__unit_bits {
    uint64_t word[MEMRT__SEGMENT_WORDS];
} memrt__unit_bits_t;

/// Return the first unit at or after `from` whose bit is set, or with `set` false is clear. Returns
/// MEMRT__SEGMENT_UNITS if no unit matches.
size_t memrt__unit_bits_find(const memrt__unit_bits_t *bits, size_t from, bool set);

/// Set the bit of a unit.
static inline void memrt__unit_bits_set(memrt__unit_bits_t *bits, size_t unit)
{
    bits->word[unit / 64] |= (uint64_t)1 << unit % 64;
}

/// Clear the bit of a unit.
static inline void memrt__unit_bits_clear(memrt__unit_bits_t *bits, size_t unit)
{
    bits->word[unit / 64] &= ~((uint64_t)1 << unit % 64);
}

/// Return whether the bit of a unit is set.
static inline bool memrt__unit_bits_is_set(const memrt__unit_bits_t *bits, size_t unit)
{
    return (bits->word[unit / 64] >> unit % 64 & 1) != 0;
}

/// Set or clear the bits of `count` units from `from` on.
void memrt__unit_bits_set_run(memrt__unit_bits_t *bits, size_t from, size_t count);
void memrt__unit_bits_clear_run(memrt__unit_bits_t *bits, size_t from, size_t count);

/// Return the number of set bits in a run of units, and in a whole bitmap.
size_t memrt__unit_bits_count_run(const memrt__unit_bits_t *bits, size_t from, size_t count);
size_t memrt__unit_bits_count(const memrt__unit_bits_t *bits);

/// Return the length of the longest run of set bits that contains `unit`, whose bit is set. The bit
/// of unit 0 must be clear, because the search backwards ends at a clear bit.
size_t memrt__unit_bits_run_at(const memrt__unit_bits_t *bits, size_t unit);

/// Return the first unit of the first run of `count` set bits. If all runs of set
/// bits are shorter, return MEMRT__SEGMENT_UNITS and set `*longest` to the longest length.
size_t memrt__unit_bits_find_run(const memrt__unit_bits_t *bits, size_t count, size_t *longest);

#endif
