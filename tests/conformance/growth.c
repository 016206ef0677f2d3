/// Conformance clauses on growth in place: `try_expand`, `usable_size` and `good_size`.

#include <stdint.h>

#include "conformance/clauses.h"
#include "conformance/pattern.h"

#define MIB ((size_t)1 << 20)
#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

static const size_t sizes[] = {2, 100, 70000, MIB, MIB + 1, 5 * MIB};

/// Grow a block at its address, and return whether the block grew. A neighbour shows writes past
/// the end of the room.
static bool expect_growth(trial_t *trial, void *ptr, size_t from, size_t to, size_t align)
{
    const memrt_allocator_t *table = trial->allocator;
    pattern_write(ptr, from, 5);
    bool grew = table->try_expand(table->ctx, ptr, from, to, align) != 0;
    if (!pattern_holds(ptr, from, 5)) {
        trial_conclude(trial, VERDICT_FAIL, "growth from %zu to %zu bytes changed the contents",
                       from, to);
    }
    if (grew) {
        pattern_write(ptr, to, 6);
    }
    return grew;
}

static void expect_room(trial_t *trial, size_t from, size_t to, size_t align)
{
    void *ptr = trial_alloc(trial, from, align), *other = trial_alloc(trial, from, align);
    EXPECT(trial, ptr != NULL && other != NULL, "%zu bytes were refused", from);
    pattern_write(other, from, 7);
    bool grew = expect_growth(trial, ptr, from, to, align);
    EXPECT(trial, pattern_holds(other, from, 7),
           "a block that grew from %zu to %zu bytes overlaps another block", from, to);
    trial_free(trial, other, from, align);
    trial_free(trial, ptr, grew ? to : from, align);
}

void clause_try_expand(trial_t *trial)
{
    static const size_t aligns[] = {8, 64, 4096};
    APPLIES(trial, trial->allocator->try_expand != NULL,
            "the table has no `try_expand`: no block grows in place");
    for (size_t s = 0; s < COUNT_OF(sizes) && trial_goes_on(trial); s++) {
        for (size_t a = 0; a < COUNT_OF(aligns) && trial_goes_on(trial); a++) {
            expect_room(trial, sizes[s], sizes[s] + 1, aligns[a]);
            expect_room(trial, sizes[s], 3 * sizes[s], aligns[a]);
        }
    }
}

static void expect_usable(trial_t *trial, size_t size, size_t align)
{
    const memrt_allocator_t *table = trial->allocator;
    void *ptr = trial_alloc(trial, size, align);
    EXPECT(trial, ptr != NULL, "%zu bytes were refused", size);
    size_t usable = table->usable_size(table->ctx, ptr, size, align);
    EXPECT(trial, usable >= size, "%zu bytes of a block of %zu bytes are usable", usable, size);
    bool grew = table->try_expand != NULL && usable > size;
    EXPECT(trial, !grew || expect_growth(trial, ptr, size, usable, align),
           "a block of %zu bytes did not grow to the usable size of %zu bytes", size, usable);
    trial_free(trial, ptr, grew ? usable : size, align);
}

void clause_usable_size(trial_t *trial)
{
    APPLIES(trial, trial->allocator->usable_size != NULL,
            "the table has no `usable_size`: the usable size is the size");
    for (size_t s = 0; s < COUNT_OF(sizes) && trial_goes_on(trial); s++) {
        expect_usable(trial, sizes[s], 16);
        expect_usable(trial, sizes[s], 4096);
    }
}

void clause_good_size(trial_t *trial)
{
    static const size_t requests[] = {1, 100, 70000, MIB, 5 * MIB, (size_t)PTRDIFF_MAX, SIZE_MAX};
    const memrt_allocator_t *table = trial->allocator;
    APPLIES(trial, table->good_size != NULL,
            "the table has no `good_size`: each size is a good size");
    for (size_t s = 0; s < COUNT_OF(requests) && trial_goes_on(trial); s++) {
        size_t good = table->good_size(table->ctx, requests[s], 64);
        EXPECT(trial, good >= requests[s], "the good size for %zu bytes is %zu", requests[s], good);
        EXPECT(trial, table->good_size(table->ctx, good, 64) == good,
               "the good size %zu for %zu bytes has another good size", good, requests[s]);
    }
}
