/* Implement the functions of Numba's nrt.h on memrt's table. The file is linked with Numba's own
   _nrt_pythonmod.c in place of nrt.cpp, so that Numba's Python shim runs on memrt's core.

   No library replaces the file: Numba has no interface to exchange the core of the runtime. */

#include <memrt/memrt.h>

#include <string.h>

#include "nrt.h"

static const memrt_api_t *api;
static int shutting_down;
static int stats_on;
static memrt_stats_t left_out, when_off;

static memrt_meminfo_t *mine(NRT_MemInfo *mi)
{
    return (memrt_meminfo_t *)mi;
}

static NRT_MemInfo *numbas(memrt_meminfo_t *mi)
{
    return (NRT_MemInfo *)mi;
}

void NRT_MemSys_init(void)
{
    api = memrt_get_api(MEMRT_ABI_MAJOR, NULL);
}

void NRT_MemSys_shutdown(void)
{
    shutting_down = 1;
}

void NRT_MemSys_set_allocator(NRT_malloc_func a, NRT_realloc_func b, NRT_free_func c)
{
    (void)a;
    (void)b;
    (void)c; /* ignored: memrt's policies choose the allocator */
}

static memrt_stats_t counters(void)
{
    memrt_stats_t now = {.struct_size = sizeof(now)};
    if (api->stats_read(NULL, &now) != MEMRT_OK) {
        memset(&now, 0, sizeof(now));
    }
    return now;
}

void NRT_MemSys_enable_stats(void)
{
    memrt_stats_t now = counters();
    if (!stats_on) {
        left_out.alloc += now.alloc - when_off.alloc;
        left_out.free += now.free - when_off.free;
        left_out.mi_alloc += now.mi_alloc - when_off.mi_alloc;
        left_out.mi_free += now.mi_free - when_off.mi_free;
    }
    stats_on = 1;
}

void NRT_MemSys_disable_stats(void)
{
    if (stats_on) {
        when_off = counters();
    }
    stats_on = 0;
}

size_t NRT_MemSys_stats_enabled(void)
{
    return (size_t)stats_on;
}

size_t NRT_MemSys_get_stats_alloc(void)
{
    return counters().alloc - left_out.alloc;
}

size_t NRT_MemSys_get_stats_free(void)
{
    return counters().free - left_out.free;
}

size_t NRT_MemSys_get_stats_mi_alloc(void)
{
    return counters().mi_alloc - left_out.mi_alloc;
}

size_t NRT_MemSys_get_stats_mi_free(void)
{
    return counters().mi_free - left_out.mi_free;
}

/* --- Destructors: none runs after the shutdown. --- */

static void run(void *data, size_t size, void *info)
{
    NRT_dtor_function dtor;
    memcpy(&dtor, &info, sizeof(dtor));
    if (dtor != NULL && !shutting_down) {
        dtor(data, size, NULL);
    }
}

static void run_and_mark(void *data, size_t size, void *info)
{
    run(data, size, info);
    memset(data, 0xDE, size);
}

/* --- MemInfos. --- */

NRT_MemInfo *NRT_MemInfo_new(void *data, size_t size, NRT_dtor_function dtor, void *dtor_info)
{
    memrt_meminfo_t *mi;
    memrt_new_options_t options = {
        .struct_size = sizeof(options), .dtor = dtor, .dtor_info = dtor_info};
    return api->meminfo_adopt(data, data == NULL ? 0 : size, &options, &mi) == MEMRT_OK ? numbas(mi)
                                                                                        : NULL;
}

static memrt_meminfo_t *make(size_t size, unsigned align, memrt_dtor_fn dtor, void *info,
                             NRT_ExternalAllocator *external)
{
    memrt_meminfo_t *mi;
    memrt_new_options_t options = {.struct_size = sizeof(options),
                                   .dtor = dtor,
                                   .dtor_info = info,
                                   .external = (memrt_external_allocator_t *)external};
    for (options.alignment = MEMRT_ALIGN_MIN; options.alignment < align;) {
        options.alignment *= 2;
    }
    return api->meminfo_new(size, &options, &mi) == MEMRT_OK ? mi : NULL;
}

static NRT_MemInfo *make_marked(size_t size, unsigned align, void *info,
                                NRT_ExternalAllocator *external)
{
    memrt_meminfo_t *mi = make(size, align, run_and_mark, info, external);
    if (mi != NULL) {
        memset(api->get_data(mi), 0xCB, size);
    }
    return numbas(mi);
}

NRT_MemInfo *NRT_MemInfo_alloc(size_t size)
{
    return numbas(api->allocate(size));
}

NRT_MemInfo *NRT_MemInfo_alloc_external(size_t size, NRT_ExternalAllocator *allocator)
{
    return numbas(api->allocate_external(size, (memrt_external_allocator_t *)allocator));
}

NRT_MemInfo *NRT_MemInfo_alloc_safe(size_t size)
{
    return make_marked(size, 0, NULL, NULL);
}

NRT_MemInfo *NRT_MemInfo_alloc_dtor_safe(size_t size, NRT_dtor_function dtor)
{
    return make_marked(size, 0, (void *)dtor, NULL);
}

NRT_MemInfo *NRT_MemInfo_alloc_dtor(size_t size, NRT_dtor_function dtor)
{
    return numbas(make(size, 0, run, (void *)dtor, NULL));
}

NRT_MemInfo *NRT_MemInfo_alloc_aligned(size_t size, unsigned align)
{
    return numbas(make(size, align, NULL, NULL, NULL));
}

NRT_MemInfo *NRT_MemInfo_alloc_safe_aligned(size_t size, unsigned align)
{
    return make_marked(size, align, NULL, NULL);
}

NRT_MemInfo *NRT_MemInfo_alloc_safe_aligned_external(size_t size, unsigned align,
                                                     NRT_ExternalAllocator *allocator)
{
    return make_marked(size, align, NULL, allocator);
}

size_t NRT_MemInfo_refcount(NRT_MemInfo *mi)
{
    return mi != NULL && api->get_data(mine(mi)) != NULL ? api->refcount(mine(mi)) : (size_t)-1;
}

void NRT_MemInfo_acquire(NRT_MemInfo *mi)
{
    api->acquire(mine(mi));
}

void NRT_MemInfo_release(NRT_MemInfo *mi)
{
    api->release(mine(mi));
}

void NRT_MemInfo_call_dtor(NRT_MemInfo *mi)
{
    api->call_dtor(mine(mi));
}

void *NRT_MemInfo_data(NRT_MemInfo *mi)
{
    return api->get_data(mine(mi));
}

size_t NRT_MemInfo_size(NRT_MemInfo *mi)
{
    return api->size(mine(mi));
}

void *NRT_MemInfo_external_allocator(NRT_MemInfo *mi)
{
    return api->external_allocator(mine(mi));
}

void *NRT_MemInfo_parent(NRT_MemInfo *mi)
{
    return api->dtor_info(mine(mi));
}

/* --- Resizable MemInfos. --- */

NRT_MemInfo *NRT_MemInfo_new_varsize_dtor(size_t size, NRT_dtor_function dtor)
{
    memrt_meminfo_t *mi;
    memrt_new_options_t options = {
        .struct_size = sizeof(options), .dtor = run, .dtor_info = (void *)dtor};
    return api->resizable_new(size, &options, &mi) == MEMRT_OK ? numbas(mi) : NULL;
}

NRT_MemInfo *NRT_MemInfo_new_varsize(size_t size)
{
    return NRT_MemInfo_new_varsize_dtor(size, NULL);
}

void *NRT_MemInfo_varsize_alloc(NRT_MemInfo *mi, size_t size)
{
    return api->resizable_alloc(mine(mi), size);
}

void *NRT_MemInfo_varsize_realloc(NRT_MemInfo *mi, size_t size)
{
    return api->resizable_realloc(mine(mi), size);
}

void NRT_MemInfo_varsize_free(NRT_MemInfo *mi, void *ptr)
{
    api->resizable_free(mine(mi), ptr);
}

/* --- Blocks without a MemInfo. --- */

void *NRT_Allocate(size_t size)
{
    return api->block_alloc(NULL, size);
}

void NRT_Free(void *ptr)
{
    api->block_free(NULL, ptr, 0);
}

const NRT_api_functions *NRT_get_api(void)
{
    return (const NRT_api_functions *)api;
}

static void *sample_malloc(size_t size, void *opaque)
{
    (void)opaque;
    return malloc(size);
}

static void *sample_realloc(void *ptr, size_t size, void *opaque)
{
    (void)opaque;
    return realloc(ptr, size);
}

static void sample_free(void *ptr, void *opaque)
{
    (void)opaque;
    free(ptr);
}

NRT_ExternalAllocator *_nrt_get_sample_external_allocator(void)
{
    static NRT_ExternalAllocator sample = {sample_malloc, sample_realloc, sample_free, &sample};
    return &sample;
}
