/// Limiting adaptor: refuses requests above a number of bytes in use.

#include "runtime/alloc/adaptors/adaptor_functions.h"
#include "runtime/base/atomics.h"

/// Reserve bytes under the limit. Threads that reserve at once never exceed the limit together, so
/// the bytes in use are at most the limit.
static bool reserve(memrt__adaptor_t *adaptor, size_t bytes)
{
    size_t before;
    do {
        before = memrt__load_relaxed(&adaptor->in_use);
        if (bytes > adaptor->options.amount - before) {
            return false;
        }
    } while (!memrt__cas_relaxed(&adaptor->in_use, before, before + bytes));
    return true;
}

static void give_back(memrt__adaptor_t *adaptor, size_t bytes)
{
    memrt__fetch_add_relaxed(&adaptor->in_use, 0 - bytes);
}

static void *alloc_reserved(memrt__adaptor_t *adaptor, size_t size, size_t align, bool zeroed)
{
    if (!reserve(adaptor, size)) {
        return NULL;
    }
    void *ptr = memrt__allocator_alloc(&adaptor->upstream, size, align, zeroed);
    if (ptr == NULL) {
        give_back(adaptor, size);
    }
    return ptr;
}

static void *limiting_alloc(void *ctx, size_t size, size_t align)
{
    return alloc_reserved(ctx, size, align, false);
}

static void *limiting_alloc_zeroed(void *ctx, size_t size, size_t align)
{
    return alloc_reserved(ctx, size, align, true);
}

static void *limiting_realloc(void *ctx, void *ptr, size_t old_size, size_t new_size, size_t align)
{
    memrt__adaptor_t *adaptor = ctx;
    size_t growth = new_size > old_size ? new_size - old_size : 0;
    if (!reserve(adaptor, growth)) {
        return NULL;
    }
    void *moved = memrt__allocator_realloc(&adaptor->upstream, ptr, old_size, new_size, align);
    if (moved == NULL) {
        give_back(adaptor, growth);
    } else if (new_size < old_size) {
        give_back(adaptor, old_size - new_size);
    }
    return moved;
}

static int limiting_try_expand(void *ctx, void *ptr, size_t old_size, size_t new_size, size_t align)
{
    memrt__adaptor_t *adaptor = ctx;
    if (!reserve(adaptor, new_size - old_size)) {
        return 0;
    }
    bool grew = memrt__allocator_try_expand(&adaptor->upstream, ptr, old_size, new_size, align);
    if (!grew) {
        give_back(adaptor, new_size - old_size);
    }
    return grew;
}

static void limiting_free(void *ctx, void *ptr, size_t size, size_t align)
{
    memrt__adaptor_t *adaptor = ctx;
    memrt__allocator_free(&adaptor->upstream, ptr, size, align);
    give_back(adaptor, size);
}

const memrt__adaptor_functions_t memrt__limiting_functions = {
    .name = "limiting",
    .alloc = limiting_alloc,
    .alloc_zeroed = limiting_alloc_zeroed,
    .realloc = limiting_realloc,
    .free = limiting_free,
    .try_expand = limiting_try_expand,
};
