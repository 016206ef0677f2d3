#include "runtime/alloc/heap/pages/unit_bits.h"

#include "runtime/base/check.h"
#include "runtime/base/size.h"

size_t memrt__unit_bits_find(const memrt__unit_bits_t *bits, size_t from, bool set)
{
    while (from < MEMRT__SEGMENT_UNITS) {
        uint64_t word = set ? bits->word[from / 64] : ~bits->word[from / 64];
        word &= ~(uint64_t)0 << (from % 64);
        if (word != 0) {
            return (from & ~(size_t)63) + (size_t)__builtin_ctzll(word);
        }
        from = (from & ~(size_t)63) + 64;
    }
    return MEMRT__SEGMENT_UNITS;
}

/// Return the bits of a run of units that lie in one word.
static uint64_t get_run_mask(size_t word, size_t from, size_t count)
{
    size_t first = word * 64;
    MEMRT__ASSERT(from < first + 64 && from + count > first); /* the run has a bit in the word */
    uint64_t mask = ~(uint64_t)0;
    if (from > first) {
        mask &= ~(uint64_t)0 << (from - first);
    }
    if (from + count < first + 64) {
        mask &= ~(~(uint64_t)0 << (from + count - first));
    }
    return mask;
}

void memrt__unit_bits_set_run(memrt__unit_bits_t *bits, size_t from, size_t count)
{
    MEMRT__ASSERT(count != 0 && from + count <= MEMRT__SEGMENT_UNITS);
    for (size_t word = from / 64; word <= (from + count - 1) / 64; word++) {
        bits->word[word] |= get_run_mask(word, from, count);
    }
}

void memrt__unit_bits_clear_run(memrt__unit_bits_t *bits, size_t from, size_t count)
{
    MEMRT__ASSERT(count != 0 && from + count <= MEMRT__SEGMENT_UNITS);
    for (size_t word = from / 64; word <= (from + count - 1) / 64; word++) {
        bits->word[word] &= ~get_run_mask(word, from, count);
    }
}

size_t memrt__unit_bits_count_run(const memrt__unit_bits_t *bits, size_t from, size_t count)
{
    MEMRT__ASSERT(count != 0 && from + count <= MEMRT__SEGMENT_UNITS);
    size_t sum = 0;
    for (size_t word = from / 64; word <= (from + count - 1) / 64; word++) {
        sum += (size_t)__builtin_popcountll(bits->word[word] & get_run_mask(word, from, count));
    }
    return sum;
}

size_t memrt__unit_bits_count(const memrt__unit_bits_t *bits)
{
    return memrt__unit_bits_count_run(bits, 0, MEMRT__SEGMENT_UNITS);
}

/// Return the number of set bits directly before `unit`. The bit of unit 0 is clear.
static size_t count_before(const memrt__unit_bits_t *bits, size_t unit)
{
    size_t start = unit; /* the bits from `start` on are set */
    uint64_t clear;
    do {
        MEMRT__ASSERT(start != 0);
        size_t last = start - 1;
        clear = ~bits->word[last / 64] << (63 - last % 64);
        start = clear == 0 ? last / 64 * 64 : start - (size_t)__builtin_clzll(clear);
    } while (clear == 0);
    return unit - start;
}

size_t memrt__unit_bits_run_at(const memrt__unit_bits_t *bits, size_t unit)
{
    MEMRT__ASSERT(memrt__unit_bits_is_set(bits, unit));
    return memrt__unit_bits_find(bits, unit, false) - unit + count_before(bits, unit);
}

size_t memrt__unit_bits_find_run(const memrt__unit_bits_t *bits, size_t count, size_t *longest)
{
    *longest = 0;
    size_t start = memrt__unit_bits_find(bits, 0, true);
    while (start < MEMRT__SEGMENT_UNITS) {
        size_t end = memrt__unit_bits_find(bits, start, false);
        MEMRT__ASSERT(end > start && end <= MEMRT__SEGMENT_UNITS);
        if (end - start >= count) {
            return start;
        }
        *longest = memrt__size_max(*longest, end - start);
        start = memrt__unit_bits_find(bits, end, true);
    }
    return MEMRT__SEGMENT_UNITS;
}
