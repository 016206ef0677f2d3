/// Conformance clauses on `realloc`: contents, alignment, equal sizes and failed requests.

#include <stdint.h>

#include "conformance/clauses.h"
#include "conformance/pattern.h"

#define MIB ((size_t)1 << 20)
#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))
#define HAS_REALLOC(trial)                                                                         \
    APPLIES(trial, (trial)->allocator->realloc != NULL,                                            \
            "the table has no `realloc`: memrt copies to a new block")

static const size_t steps[] = {2, 100, 70000, MIB, MIB + 1, 5 * MIB};

typedef void (*step_fn)(trial_t *trial, size_t from, size_t to);

/// Call `step` for every pair of different sizes, until the trial has a verdict.
static void walk(trial_t *trial, step_fn step)
{
    for (size_t from = 0; from < COUNT_OF(steps); from++) {
        for (size_t to = 0; to < COUNT_OF(steps); to++) {
            if (from != to && trial_goes_on(trial)) {
                step(trial, steps[from], steps[to]);
            }
        }
    }
}

static void expect_contents(trial_t *trial, size_t from, size_t to)
{
    void *ptr = trial_alloc(trial, from, 16);
    EXPECT(trial, ptr != NULL, "%zu bytes were refused", from);
    pattern_write(ptr, from, (unsigned)to);
    void *moved = trial_realloc(trial, ptr, from, to, 16);
    EXPECT(trial, moved != NULL, "resizing %zu to %zu bytes was refused", from, to);
    EXPECT(trial, pattern_holds(moved, from < to ? from : to, (unsigned)to),
           "resizing %zu to %zu bytes changed the contents", from, to);
    pattern_write(moved, to, 1);
    trial_free(trial, moved, to, 16);
}

void clause_realloc_contents(trial_t *trial)
{
    HAS_REALLOC(trial);
    walk(trial, expect_contents);
}

static void expect_alignment(trial_t *trial, size_t from, size_t to)
{
    static const size_t aligns[] = {64, 4096, 2 * MIB};
    size_t align = aligns[(from + to) % COUNT_OF(aligns)];
    void *ptr = trial_alloc(trial, from, align);
    EXPECT(trial, ptr != NULL, "%zu bytes aligned to %zu were refused", from, align);
    APPLIES(trial, trial_is_aligned(ptr, align), "`alloc` does not align");
    void *moved = trial_realloc(trial, ptr, from, to, align);
    EXPECT(trial, moved != NULL, "resizing %zu to %zu bytes was refused", from, to);
    EXPECT(trial, trial_is_aligned(moved, align),
           "resizing %zu to %zu bytes aligned to %zu moved the block to %p", from, to, align,
           moved);
    trial_free(trial, moved, to, align);
}

void clause_realloc_alignment(trial_t *trial)
{
    HAS_REALLOC(trial);
    walk(trial, expect_alignment);
}

static void expect_live(trial_t *trial, size_t size)
{
    void *ptr = trial_alloc(trial, size, 16);
    EXPECT(trial, ptr != NULL, "%zu bytes were refused", size);
    pattern_write(ptr, size, 1);
    void *same = trial_realloc(trial, ptr, size, size, 16);
    EXPECT(trial, same != NULL, "resizing %zu bytes to the same size was refused", size);
    void *other = trial_alloc(trial, size, 16);
    EXPECT(trial, other != NULL, "%zu bytes were refused", size);
    EXPECT(trial, other != same,
           "a block of %zu bytes resized to the same size was allocated again", size);
    pattern_write(other, size, 2);
    EXPECT(trial, pattern_holds(same, size, 1),
           "a block of %zu bytes resized to the same size changed", size);
    trial_free(trial, same, size, 16);
    trial_free(trial, other, size, 16);
}

void clause_realloc_same_size(trial_t *trial)
{
    HAS_REALLOC(trial);
    for (size_t s = 0; s < COUNT_OF(steps) && trial_goes_on(trial); s++) {
        expect_live(trial, steps[s]);
    }
}

static void expect_old_block(trial_t *trial, size_t size)
{
    static const size_t huge[] = {(size_t)PTRDIFF_MAX - 4096, SIZE_MAX - 64, SIZE_MAX};
    void *ptr = trial_alloc(trial, size, 16);
    EXPECT(trial, ptr != NULL, "%zu bytes were refused", size);
    pattern_write(ptr, size, 3);
    for (size_t i = 0; i < COUNT_OF(huge); i++) {
        EXPECT(trial, trial_realloc(trial, ptr, size, huge[i], 16) == NULL,
               "resizing %zu to %zu bytes must return NULL", size, huge[i]);
        EXPECT(trial, pattern_holds(ptr, size, 3),
               "a block of %zu bytes changed in a failed realloc", size);
    }
    trial_free(trial, ptr, size, 16);
}

void clause_realloc_refusal(trial_t *trial)
{
    HAS_REALLOC(trial);
    for (size_t s = 0; s < COUNT_OF(steps) && trial_goes_on(trial); s++) {
        expect_old_block(trial, steps[s]);
    }
}
