/// Conformance clauses on allocation: alignment, distinct blocks, zeroed memory, impossible sizes.

#include <stdint.h>
#include <string.h>

#include "conformance/clauses.h"
#include "conformance/pattern.h"

#define MIB ((size_t)1 << 20)
#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* Sizes near the limits of size classes, pages and large blocks. */
static const size_t sizes[] = {1,     7,   64,      1024,    1025,    4095,    4097,
                               65536, MIB, MIB + 1, MIB + 2, 4 * MIB, 10 * MIB};

static const size_t aligns[] = {
    1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, (size_t)64 << 10, 2 * MIB};

/// Write the first and the last byte of a block. A block of wrong size loses its edges first, and
/// writing only the edges is fast.
static void mark_edges(unsigned char *ptr, size_t size)
{
    ptr[0] = 0x11;
    ptr[size - 1] = 0x77;
}

static void expect_aligned(trial_t *trial, size_t size, size_t align)
{
    void *ptr = trial_alloc(trial, size, align);
    EXPECT(trial, ptr != NULL, "%zu bytes aligned to %zu were refused", size, align);
    EXPECT(trial, trial_is_aligned(ptr, align), "%zu bytes aligned to %zu are at %p", size, align,
           ptr);
    mark_edges(ptr, size);
    trial_free(trial, ptr, size, align);
}

void clause_alignment(trial_t *trial)
{
    for (size_t s = 0; s < COUNT_OF(sizes); s++) {
        for (size_t a = 0; a < COUNT_OF(aligns) && trial_goes_on(trial); a++) {
            expect_aligned(trial, sizes[s], aligns[a]);
        }
    }
}

#define BLOCKS 64

void clause_blocks(trial_t *trial)
{
    void *blocks[BLOCKS];
    for (unsigned i = 0; i < BLOCKS; i++) {
        blocks[i] = trial_alloc(trial, 100 + i, 16);
        EXPECT(trial, blocks[i] != NULL, "%u bytes were refused", 100 + i);
        pattern_write(blocks[i], 100 + i, i);
    }
    for (unsigned i = 0; i < BLOCKS; i++) {
        EXPECT(trial, pattern_holds(blocks[i], 100 + i, i),
               "a block of %u bytes changed while other blocks were written", 100 + i);
    }
    for (unsigned i = 0; i < BLOCKS; i++) {
        trial_free(trial, blocks[i], 100 + i, 16);
    }
}

void clause_smallest(trial_t *trial)
{
    char *blocks[BLOCKS];
    for (size_t i = 0; i < BLOCKS; i++) {
        blocks[i] = trial_alloc(trial, 1, 1);
        EXPECT(trial, blocks[i] != NULL, "1 byte was refused");
        for (size_t j = 0; j < i; j++) {
            EXPECT(trial, blocks[i] != blocks[j], "two live blocks are at %p", (void *)blocks[i]);
        }
    }
    for (size_t i = 0; i < BLOCKS; i++) {
        trial_free(trial, blocks[i], 1, 1);
    }
}

static void expect_zero(trial_t *trial, size_t size)
{
    const memrt_allocator_t *allocator = trial->allocator;
    void *ptr = allocator->alloc_zeroed(allocator->ctx, size, 16);
    EXPECT(trial, ptr != NULL, "%zu bytes were refused", size);
    EXPECT(trial, pattern_is_zero(ptr, size), "%zu bytes are not all zero", size);
    memset(ptr, 0xEE, size);
    trial_free(trial, ptr, size, 16);
}

void clause_zeroed(trial_t *trial)
{
    APPLIES(trial, trial->allocator->alloc_zeroed != NULL,
            "the table has no `alloc_zeroed`: memrt clears blocks of `alloc`");
    for (size_t s = 0; s < COUNT_OF(sizes); s++) {
        for (int round = 0; round < 3 && trial_goes_on(trial); round++) {
            expect_zero(trial, sizes[s]);
        }
    }
}

static void expect_refused(trial_t *trial, size_t size, size_t align)
{
    const memrt_allocator_t *allocator = trial->allocator;
    EXPECT(trial, trial_alloc(trial, size, align) == NULL,
           "`alloc` of %zu bytes aligned to %zu must return NULL", size, align);
    EXPECT(trial,
           allocator->alloc_zeroed == NULL ||
               allocator->alloc_zeroed(allocator->ctx, size, align) == NULL,
           "`alloc_zeroed` of %zu bytes aligned to %zu must return NULL", size, align);
}

void clause_refusal(trial_t *trial)
{
    static const size_t huge[] = {(size_t)PTRDIFF_MAX - 4096,
                                  (size_t)PTRDIFF_MAX,
                                  SIZE_MAX / 2 + 1,
                                  SIZE_MAX - 4096,
                                  SIZE_MAX - 64,
                                  SIZE_MAX};
    void *other = trial_alloc(trial, 5000, 16);
    EXPECT(trial, other != NULL, "5000 bytes were refused");
    pattern_write(other, 5000, 1);
    for (size_t i = 0; i < COUNT_OF(huge); i++) {
        for (size_t a = 0; a < COUNT_OF(aligns) && trial_goes_on(trial); a++) {
            expect_refused(trial, huge[i], aligns[a]);
        }
    }
    if (!trial_goes_on(trial)) {
        return;
    }
    EXPECT(trial, pattern_holds(other, 5000, 1), "another block changed");
    trial_free(trial, other, 5000, 16);
    other = trial_alloc(trial, 5000, 16);
    EXPECT(trial, other != NULL, "5000 bytes were refused afterwards");
    trial_free(trial, other, 5000, 16);
}
