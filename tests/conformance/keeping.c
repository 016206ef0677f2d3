/// Conformance clauses on cached memory: `usage` and `release_unused`.

#include <stdint.h>

#include "conformance/clauses.h"

/// Return the cached bytes from `usage`. Return `otherwise` if the allocator lacks `usage`, or if
/// `usage` leaves the field unset.
static size_t cached(const trial_t *trial, size_t otherwise)
{
    memrt_allocator_usage_t usage = {otherwise};
    if (trial->allocator->usage != NULL) {
        trial->allocator->usage(trial->allocator->ctx, &usage);
    }
    return usage.cached;
}

/// Allocate and free some blocks, so that the allocator may cache memory.
static void use(trial_t *trial)
{
    static const size_t sizes[] = {100, 5000, (size_t)2 << 20};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        void *ptr = trial_alloc(trial, sizes[i], 16);
        EXPECT(trial, ptr != NULL, "%zu bytes were refused", sizes[i]);
        trial_free(trial, ptr, sizes[i], 16);
    }
}

void clause_usage(trial_t *trial)
{
    APPLIES(trial, trial->allocator->usage != NULL,
            "the table has no `usage`: no bytes count as cached");
    use(trial);
    if (!trial_goes_on(trial)) {
        return;
    }
    EXPECT(trial, cached(trial, SIZE_MAX) != SIZE_MAX, "`usage` left `cached` unset");
    EXPECT(trial, cached(trial, SIZE_MAX) < SIZE_MAX / 2,
           "`cached` must be below SIZE_MAX / 2, got %zu", cached(trial, SIZE_MAX));
}

void clause_release_unused(trial_t *trial)
{
    const memrt_allocator_t *allocator = trial->allocator;
    APPLIES(trial, allocator->release_unused != NULL, "the table has no `release_unused`");
    use(trial);
    size_t before = cached(trial, 0);
    size_t released = allocator->release_unused(allocator->ctx);
    EXPECT(trial, released >= before,
           "`release_unused` must give back at least %zu cached bytes, got %zu", before, released);
    size_t after = cached(trial, 0);
    EXPECT(trial, after == 0, "%zu bytes are still cached", after);
    size_t again = allocator->release_unused(allocator->ctx);
    EXPECT(trial, again == 0, "a second call gave back %zu bytes", again);
    use(trial);
}
