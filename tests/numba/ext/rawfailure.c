/* Make Python's raw allocator fail in malloc and realloc of one size. The tests use this failure to
   run stock Numba out of memory. */

#include <Python.h>

static PyMemAllocatorEx upstream;
static size_t unlucky;

static void *failing_malloc(void *ctx, size_t size)
{
    (void)ctx;
    return size == unlucky ? NULL : upstream.malloc(upstream.ctx, size);
}

static void *failing_calloc(void *ctx, size_t count, size_t size)
{
    (void)ctx;
    return upstream.calloc(upstream.ctx, count, size);
}

static void *failing_realloc(void *ctx, void *data, size_t size)
{
    (void)ctx;
    return size == unlucky ? NULL : upstream.realloc(upstream.ctx, data, size);
}

static void plain_free(void *ctx, void *data)
{
    (void)ctx;
    upstream.free(upstream.ctx, data);
}

void start_failing(size_t size)
{
    PyMemAllocatorEx failing = {NULL, failing_malloc, failing_calloc, failing_realloc, plain_free};
    unlucky = size;
    PyMem_GetAllocator(PYMEM_DOMAIN_RAW, &upstream);
    PyMem_SetAllocator(PYMEM_DOMAIN_RAW, &failing);
}

void stop_failing(void)
{
    PyMem_SetAllocator(PYMEM_DOMAIN_RAW, &upstream);
}
