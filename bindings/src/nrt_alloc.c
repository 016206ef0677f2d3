#include "nrt_alloc.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "handler.h"
#include "scope.h"
#include "trace.h"

/// What NRT's "safe" functions write into fresh and into dead memory.
#define FRESH 0xCB
#define DEAD 0xDE

static atomic_int shutting_down;
static atomic_int entered;

void memrt__nrt_shutdown(void)
{
    atomic_store_explicit(&shutting_down, 1, memory_order_relaxed);
}

void memrt__nrt_policies_entered(int change)
{
    atomic_fetch_add_explicit(&entered, change, memory_order_relaxed);
}

/// Whether every context has the default policy, and none is in a scope.
static int is_default_everywhere(void)
{
    return atomic_load_explicit(&entered, memory_order_relaxed) == 0 && !memrt__scope_is_used();
}

/// The policy in force, or NULL for the default one. NumPy keeps it in a context variable, which
/// takes the GIL to read: code that runs without gets the default.
static memrt_policy_t *policy_now(void)
{
    return is_default_everywhere() || !PyGILState_Check() ? NULL : memrt__handler_policy_in_force();
}

/* --- Destructors. --- */

static memrt_dtor_fn as_dtor(void *info)
{
    memrt_dtor_fn dtor;
    memcpy(&dtor, &info, sizeof(dtor));
    return dtor;
}

static void *as_info(memrt_dtor_fn dtor)
{
    void *info;
    memcpy(&info, &dtor, sizeof(info));
    return info;
}

/// `info` is the destructor of compiled code, or NULL.
static void run_compiled(void *data, size_t size, void *info)
{
    if (info != NULL && !atomic_load_explicit(&shutting_down, memory_order_relaxed)) {
        as_dtor(info)(data, size, NULL);
    }
}

static void run_compiled_and_mark(void *data, size_t size, void *info)
{
    run_compiled(data, size, info);
    memset(data, DEAD, size);
}

/* --- MemInfos with inline data. --- */

/// tracemalloc has no room for the block, or no block was made: NULL either way.
static memrt_meminfo_t *shown(memrt_meminfo_t *mi)
{
    if (mi == NULL || memrt__trace_compiled(mi)) {
        return mi;
    }
    memrt__api()->release(mi);
    return NULL;
}

static memrt_meminfo_t *make_plain(size_t size, const memrt_new_options_t *options)
{
    memrt_meminfo_t *mi = memrt__api()->allocate(size);
    if (mi != NULL) {
        mi->dtor = options->dtor;
        mi->dtor_info = options->dtor_info;
    }
    return shown(mi);
}

static memrt_meminfo_t *make(size_t size, memrt_new_options_t *options)
{
    memrt_meminfo_t *mi;
    if (is_default_everywhere() && options->alignment <= MEMRT_ALIGN_MIN &&
        options->external == NULL) {
        return make_plain(size, options);
    }
    options->struct_size = sizeof(*options);
    options->policy = policy_now();
    return memrt__api()->meminfo_new(size, options, &mi) == MEMRT_OK ? shown(mi) : NULL;
}

static memrt_meminfo_t *make_marked(size_t size, memrt_new_options_t *options)
{
    options->dtor = run_compiled_and_mark;
    memrt_meminfo_t *mi = make(size, options);
    if (mi != NULL) {
        memset(mi->data, FRESH, size);
    }
    return mi;
}

/// The alignment that memrt knows for any that compiled code may ask for; above the largest one the
/// number itself, which memrt refuses.
static size_t power_of_two(unsigned align)
{
    size_t power = MEMRT_ALIGN_MIN;
    while (power < align) {
        power *= 2;
    }
    return power;
}

memrt_meminfo_t *memrt__nrt_alloc(size_t size)
{
    memrt_new_options_t options = {0};
    return make(size, &options);
}

memrt_meminfo_t *memrt__nrt_alloc_aligned(size_t size, unsigned align)
{
    if (align <= MEMRT_ALIGN_MIN) {
        return memrt__nrt_alloc(size);
    }
    memrt_new_options_t options = {.alignment = power_of_two(align)};
    return make(size, &options);
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
    memrt_new_options_t options = {.alignment = power_of_two(align), .external = allocator};
    return make_marked(size, &options);
}

memrt_meminfo_t *memrt__nrt_alloc_dtor(size_t size, memrt_dtor_fn dtor)
{
    memrt_new_options_t options = {.dtor = run_compiled, .dtor_info = as_info(dtor)};
    return make(size, &options);
}

memrt_meminfo_t *memrt__nrt_alloc_dtor_safe(size_t size, memrt_dtor_fn dtor)
{
    memrt_new_options_t options = {.dtor_info = as_info(dtor)};
    return make_marked(size, &options);
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
                                   .policy = policy_now(),
                                   .dtor = dtor != NULL ? run_compiled : NULL,
                                   .dtor_info = as_info(dtor)};
    return memrt__api()->resizable_new(size, &options, &mi) == MEMRT_OK ? shown(mi) : NULL;
}

/* --- Plain memory. --- */

void *memrt__nrt_allocate(size_t size)
{
    return memrt__api()->block_alloc(NULL, size);
}

void memrt__nrt_free(void *data)
{
    memrt__api()->block_free(NULL, data, 0);
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
