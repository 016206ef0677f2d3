#include "numba/alloc.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "numba/host.h"

/// Byte patterns that NRT's "safe" functions write into new and freed memory.
#define FRESH 0xCB
#define DEAD 0xDE

static atomic_int shutting_down;

void memrt__nrt_shutdown(void)
{
    atomic_store_explicit(&shutting_down, 1, memory_order_relaxed);
}

/* --- Destructors. --- */

static memrt_dtor_fn convert_to_dtor(void *info)
{
    memrt_dtor_fn dtor;
    memcpy(&dtor, &info, sizeof(dtor));
    return dtor;
}

static void *convert_to_info(memrt_dtor_fn dtor)
{
    void *info;
    memcpy(&info, &dtor, sizeof(info));
    return info;
}

/// Run the destructor of compiled code, unless `info` is NULL or compiled code was shut down.
static void run_compiled_dtor(void *data, size_t size, void *info)
{
    if (info != NULL && !atomic_load_explicit(&shutting_down, memory_order_relaxed)) {
        convert_to_dtor(info)(data, size, NULL);
    }
}

/// Run the destructor, then fill the data with DEAD.
static void run_dtor_and_mark(void *data, size_t size, void *info)
{
    run_compiled_dtor(data, size, info);
    memset(data, DEAD, size);
}

/* --- MemInfos with inline data. --- */

/// Track a new MemInfo. Returns NULL if allocation failed, or if tracking failed and `mi` was
/// released.
static memrt_meminfo_t *track_meminfo(memrt_meminfo_t *mi)
{
    if (mi == NULL || memrt__host_track(mi)) {
        return mi;
    }
    memrt__host_api()->release(mi);
    return NULL;
}

/// Slow path of memrt__nrt_alloc(): the policy in force needs a lookup, or tracemalloc is on.
static __attribute__((noinline)) memrt_meminfo_t *allocate_slow(size_t size)
{
    return track_meminfo(memrt__host_api()->allocate_from(size, memrt__host_policy()));
}

/// Allocate with options. The caller sets options->policy.
static memrt_meminfo_t *allocate_with_options(size_t size, memrt_new_options_t *options)
{
    memrt_meminfo_t *mi;
    options->struct_size = sizeof(*options);
    return memrt__host_api()->meminfo_new(size, options, &mi) == MEMRT_OK ? track_meminfo(mi)
                                                                          : NULL;
}

/// Allocate, fill the data with FRESH, and fill it with DEAD on destruction.
static memrt_meminfo_t *allocate_marked_meminfo(size_t size, memrt_new_options_t *options)
{
    options->dtor = run_dtor_and_mark;
    options->policy = memrt__host_policy();
    memrt_meminfo_t *mi = allocate_with_options(size, options);
    if (mi != NULL) {
        memset(mi->data, FRESH, size);
    }
    return mi;
}

/// Round an alignment up to a power of two that memrt accepts. An alignment above the maximum
/// yields a value that memrt refuses.
static size_t round_up_alignment(unsigned align)
{
    size_t power = MEMRT_ALIGN_MIN;
    while (power < align) {
        power *= 2;
    }
    return power;
}

memrt_meminfo_t *memrt__nrt_alloc(size_t size)
{
    memrt_policy_t *policy;
    if (memrt__host_may_trace()) {
        return allocate_slow(size);
    }
    if (memrt__host_has_default_policy()) {
        return memrt__host_api()->allocate(size);
    }
    return memrt__host_read_policy(&policy) ? memrt__host_api()->allocate_from(size, policy)
                                            : allocate_slow(size);
}

memrt_meminfo_t *memrt__nrt_alloc_aligned(size_t size, unsigned align)
{
    if (align <= MEMRT_ALIGN_MIN) {
        return memrt__nrt_alloc(size);
    }
    memrt_new_options_t options = {.policy = memrt__host_policy(),
                                   .alignment = round_up_alignment(align)};
    return allocate_with_options(size, &options);
}

memrt_meminfo_t *memrt__nrt_alloc_safe(size_t size)
{
    return memrt__nrt_alloc_dtor_safe(size, NULL);
}

memrt_meminfo_t *memrt__nrt_alloc_safe_aligned(size_t size, unsigned align)
{
    return memrt__nrt_alloc_safe_aligned_external(size, align, NULL);
}

memrt_meminfo_t *memrt__nrt_alloc_safe_aligned_external(size_t size, unsigned align,
                                                        memrt_external_allocator_t *allocator)
{
    memrt_new_options_t options = {.alignment = round_up_alignment(align), .external = allocator};
    return allocate_marked_meminfo(size, &options);
}

memrt_meminfo_t *memrt__nrt_alloc_dtor(size_t size, memrt_dtor_fn dtor)
{
    memrt_meminfo_t *mi = memrt__nrt_alloc(size);
    if (mi != NULL) {
        mi->dtor = run_compiled_dtor;
        mi->dtor_info = convert_to_info(dtor);
    }
    return mi;
}

memrt_meminfo_t *memrt__nrt_alloc_dtor_safe(size_t size, memrt_dtor_fn dtor)
{
    memrt_new_options_t options = {.dtor_info = convert_to_info(dtor)};
    return allocate_marked_meminfo(size, &options);
}

/* --- MemInfos whose data may move. --- */

memrt_meminfo_t *memrt__nrt_new_varsize(size_t size)
{
    return memrt__nrt_new_varsize_dtor(size, NULL);
}

memrt_meminfo_t *memrt__nrt_new_varsize_dtor(size_t size, memrt_dtor_fn dtor)
{
    memrt_meminfo_t *mi;
    memrt_new_options_t options = {.struct_size = sizeof(options),
                                   .policy = memrt__host_policy(),
                                   .dtor = dtor != NULL ? run_compiled_dtor : NULL,
                                   .dtor_info = convert_to_info(dtor)};
    return memrt__host_api()->resizable_new(size, &options, &mi) == MEMRT_OK ? track_meminfo(mi)
                                                                             : NULL;
}

/* --- Plain memory. --- */

void *memrt__nrt_allocate(size_t size)
{
    return memrt__host_api()->block_alloc(NULL, size);
}

void memrt__nrt_free(void *data)
{
    memrt__host_api()->block_free(NULL, data, 0);
}

static char sample_mark;

static void *sample_malloc(size_t size, void *opaque)
{
    return opaque == &sample_mark ? malloc(size) : NULL;
}

static void *sample_realloc(void *data, size_t size, void *opaque)
{
    return opaque == &sample_mark ? realloc(data, size) : NULL;
}

static void sample_free(void *data, void *opaque)
{
    (void)opaque;
    free(data);
}

memrt_external_allocator_t *memrt__nrt_sample_external_allocator(void)
{
    static memrt_external_allocator_t sample = {sample_malloc, sample_realloc, sample_free,
                                                &sample_mark};
    return &sample;
}
