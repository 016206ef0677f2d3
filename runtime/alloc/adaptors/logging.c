/// Logging adaptor: writes a line for each call.

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "runtime/alloc/adaptors/adaptor_functions.h"
#include "runtime/base/shield.h"
#include "runtime/os/os.h"

#define LINE_MAX_BYTES 160 /* four numbers of 20 digits, a word, an id and commas */

/// Write a line in one call, so that lines of threads and processes do not mix.
static void write_line(const memrt__adaptor_t *adaptor, const char *call, const void *ptr,
                       size_t size, size_t align, const void *before)
{
    MEMRT__SHIELD;
    char line[LINE_MAX_BYTES];
    int length =
        snprintf(line, sizeof(line), "%s,%" PRIu64 ",%#" PRIxPTR ",%zu,%zu,%#" PRIxPTR "\n", call,
                 memrt__os_thread_id(), (uintptr_t)ptr, size, align, (uintptr_t)before);
    (void)!write(adaptor->options.file, line, (size_t)length);
}

static void *logging_alloc(void *ctx, size_t size, size_t align)
{
    const memrt__adaptor_t *adaptor = ctx;
    void *ptr = memrt__allocator_alloc(&adaptor->upstream, size, align, false);
    write_line(adaptor, "alloc", ptr, size, align, NULL);
    return ptr;
}

static void *logging_alloc_zeroed(void *ctx, size_t size, size_t align)
{
    const memrt__adaptor_t *adaptor = ctx;
    void *ptr = memrt__allocator_alloc(&adaptor->upstream, size, align, true);
    write_line(adaptor, "alloc", ptr, size, align, NULL);
    return ptr;
}

static void *logging_realloc(void *ctx, void *ptr, size_t old_size, size_t new_size, size_t align)
{
    const memrt__adaptor_t *adaptor = ctx;
    uintptr_t before = (uintptr_t)ptr; /* the pointer is invalid after the call */
    void *moved = memrt__allocator_realloc(&adaptor->upstream, ptr, old_size, new_size, align);
    write_line(adaptor, "realloc", moved, new_size, align, (const void *)before);
    return moved;
}

/// Write the line of a resize, if the block grew: the addresses before and after are equal.
static int logging_try_expand(void *ctx, void *ptr, size_t old_size, size_t new_size, size_t align)
{
    const memrt__adaptor_t *adaptor = ctx;
    bool grew = memrt__allocator_try_expand(&adaptor->upstream, ptr, old_size, new_size, align);
    if (grew) {
        write_line(adaptor, "realloc", ptr, new_size, align, ptr);
    }
    return grew;
}

/// Write the line before the free, because another thread may get the address at once.
static void logging_free(void *ctx, void *ptr, size_t size, size_t align)
{
    const memrt__adaptor_t *adaptor = ctx;
    write_line(adaptor, "free", ptr, size, align, NULL);
    memrt__allocator_free(&adaptor->upstream, ptr, size, align);
}

const memrt__adaptor_functions_t memrt__logging_functions = {
    .name = "logging",
    .alloc = logging_alloc,
    .alloc_zeroed = logging_alloc_zeroed,
    .realloc = logging_realloc,
    .free = logging_free,
    .try_expand = logging_try_expand,
};
