#include "runtime/alloc/adaptors/adaptor.h"

#include <stdlib.h>
#include <string.h>

#include <memrt/meminfo.h>

#include "runtime/alloc/adaptors/adaptor_functions.h"
#include "runtime/alloc/adaptors/arena.h"
#include "runtime/alloc/file_backed.h"
#include "runtime/base/size.h"
#include "runtime/config/fault_injection.h"

static void adaptor_free(void *ctx, void *ptr, size_t size, size_t align)
{
    memrt__allocator_free(&((memrt__adaptor_t *)ctx)->upstream, ptr, size, align);
}

static size_t adaptor_release_unused(void *ctx)
{
    return memrt__allocator_release_unused(&((memrt__adaptor_t *)ctx)->upstream);
}

static void adaptor_usage(void *ctx, memrt_allocator_usage_t *out)
{
    out->cached = memrt__allocator_cached(&((memrt__adaptor_t *)ctx)->upstream);
}

static size_t adaptor_usable_size(void *ctx, const void *ptr, size_t size, size_t align)
{
    const memrt__adaptor_t *adaptor = ctx;
    return memrt__allocator_usable_size(&adaptor->upstream, ptr, size, align);
}

static size_t adaptor_good_size(void *ctx, size_t size, size_t align)
{
    const memrt__adaptor_t *adaptor = ctx;
    return memrt__allocator_good_size(&adaptor->upstream, size, align);
}

static void adaptor_destroy(void *ctx)
{
    memrt__adaptor_t *adaptor = ctx;
    memrt__allocator_destroy(&adaptor->upstream);
    free(adaptor);
}

static const memrt__adaptor_functions_t *const functions_of_kinds[] = {
    [MEMRT_ADAPTOR_COUNTING] = &memrt__counting_functions,
    [MEMRT_ADAPTOR_LIMITING] = &memrt__limiting_functions,
    [MEMRT_ADAPTOR_ALIGNING] = &memrt__aligning_functions,
    [MEMRT_ADAPTOR_RETRYING] = &memrt__retrying_functions,
    [MEMRT_ADAPTOR_LOGGING] = &memrt__logging_functions,
    [MEMRT_ADAPTOR_THREAD_SAFE] = &memrt__thread_safe_functions,
    [MEMRT_ADAPTOR_PREFETCHING] = &memrt__prefetching_functions,
};

static bool has_settings(const memrt_adaptor_options_t *options)
{
    switch (options->kind) {
    case MEMRT_ADAPTOR_COUNTING:
        return options->counts != NULL;
    case MEMRT_ADAPTOR_LIMITING:
    case MEMRT_ADAPTOR_THREAD_SAFE:
    case MEMRT_ADAPTOR_PREFETCHING:
        return true;
    case MEMRT_ADAPTOR_ALIGNING:
        return options->amount >= sizeof(void *) && memrt__is_power_of_two(options->amount) &&
               options->amount <= MEMRT_ALIGN_MAX;
    case MEMRT_ADAPTOR_RETRYING:
        return options->failed != NULL;
    case MEMRT_ADAPTOR_LOGGING:
        return options->file >= 0;
    default:
        return false;
    }
}

memrt_status_t memrt__adaptor_new(const memrt_allocator_t *upstream,
                                  const memrt_adaptor_options_t *options, memrt_allocator_t *out)
{
    memrt__adaptor_t made = {0};
    if (options->struct_size < offsetof(memrt_adaptor_options_t, amount)) {
        return MEMRT_EINVAL;
    }
    memcpy(&made.options, options, memrt__size_min(options->struct_size, sizeof(made.options)));
    if (made.options.kind == MEMRT_ADAPTOR_ARENA) {
        return memrt__arena_new(upstream, made.options.amount, out);
    }
    if (!has_settings(&made.options) ||
        memrt__upstream_copy(upstream, &made.upstream) != MEMRT_OK) {
        return MEMRT_EINVAL;
    }
    memrt__adaptor_t *adaptor = memrt__fault_is_due() ? NULL : malloc(sizeof(*adaptor));
    if (adaptor == NULL) {
        return MEMRT_ENOMEM;
    }
    *adaptor = made;
    const memrt__adaptor_functions_t *functions = functions_of_kinds[made.options.kind];
    *out = (memrt_allocator_t){
        .struct_size = sizeof(*out),
        .version = MEMRT_ALLOCATOR_VERSION,
        .name = functions->name,
        .ctx = adaptor,
        .alloc = functions->alloc,
        .alloc_zeroed = functions->alloc_zeroed,
        .realloc = functions->realloc,
        .free = functions->free != NULL ? functions->free : adaptor_free,
        .release_unused =
            functions->release_unused != NULL ? functions->release_unused : adaptor_release_unused,
        .usage = functions->usage != NULL ? functions->usage : adaptor_usage,
        .destroy = adaptor_destroy,
        .try_expand = functions->try_expand,
        .usable_size =
            functions->usable_size != NULL ? functions->usable_size : adaptor_usable_size,
        .good_size = functions->good_size != NULL ? functions->good_size : adaptor_good_size,
    };
    return MEMRT_OK;
}
