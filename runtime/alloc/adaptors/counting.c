/// Counting adaptor: counts calls and bytes.

#include "runtime/alloc/adaptors/adaptor_functions.h"
#include "runtime/base/atomics.h"

static memrt_adaptor_counts_t *get_counts(void *ctx)
{
    return ((memrt__adaptor_t *)ctx)->options.counts;
}

/// Add to the bytes in use, and raise the peak. The counters of one call are not one step, so a
/// reading between two steps may show a peak below the bytes in use.
static void add_bytes(memrt_adaptor_counts_t *counts, size_t bytes)
{
    memrt__raise_release(&counts->peak, memrt__fetch_add_relaxed(&counts->in_use, bytes) + bytes);
}

static void *count_allocation(void *ctx, size_t size, size_t align, bool zeroed)
{
    memrt_adaptor_counts_t *counts = get_counts(ctx);
    void *ptr = memrt__allocator_alloc(&((memrt__adaptor_t *)ctx)->upstream, size, align, zeroed);
    if (ptr == NULL) {
        memrt__fetch_add_relaxed(&counts->refusals, 1);
    } else {
        memrt__fetch_add_relaxed(&counts->allocations, 1);
        add_bytes(counts, size);
    }
    return ptr;
}

static void *counting_alloc(void *ctx, size_t size, size_t align)
{
    return count_allocation(ctx, size, align, false);
}

static void *counting_alloc_zeroed(void *ctx, size_t size, size_t align)
{
    return count_allocation(ctx, size, align, true);
}

static void *counting_realloc(void *ctx, void *ptr, size_t old_size, size_t new_size, size_t align)
{
    memrt_adaptor_counts_t *counts = get_counts(ctx);
    void *moved = memrt__allocator_realloc(&((memrt__adaptor_t *)ctx)->upstream, ptr, old_size,
                                           new_size, align);
    if (moved == NULL) {
        memrt__fetch_add_relaxed(&counts->refusals, 1);
    } else {
        memrt__fetch_add_relaxed(&counts->resizes, 1);
        add_bytes(counts, new_size - old_size); /* wraps around for a smaller block */
    }
    return moved;
}

/// Growth without room does not count as a refusal: the caller allocates or resizes next.
static int counting_try_expand(void *ctx, void *ptr, size_t old_size, size_t new_size, size_t align)
{
    memrt_adaptor_counts_t *counts = get_counts(ctx);
    bool grew = memrt__allocator_try_expand(&((memrt__adaptor_t *)ctx)->upstream, ptr, old_size,
                                            new_size, align);
    if (grew) {
        memrt__fetch_add_relaxed(&counts->resizes, 1);
        add_bytes(counts, new_size - old_size);
    }
    return grew;
}

static void counting_free(void *ctx, void *ptr, size_t size, size_t align)
{
    memrt_adaptor_counts_t *counts = get_counts(ctx);
    memrt__fetch_add_relaxed(&counts->frees, 1);
    memrt__fetch_add_relaxed(&counts->in_use, 0 - size);
    memrt__allocator_free(&((memrt__adaptor_t *)ctx)->upstream, ptr, size, align);
}

const memrt__adaptor_functions_t memrt__counting_functions = {
    .name = "counting",
    .alloc = counting_alloc,
    .alloc_zeroed = counting_alloc_zeroed,
    .realloc = counting_realloc,
    .free = counting_free,
    .try_expand = counting_try_expand,
};
