/* NEP 49's secret_data_allocator in C: a header before each block, checked when the block ends.

   cc -shared -fPIC -I"$(python -c 'import memrt; print(memrt.get_include())')" secret_data.c \
       -o secret_data.so

   The table is for memrt.Policy(allocator="./secret_data.so:secret_data"), and for the command
   python -m memrt check-allocator ./secret_data.so:secret_data. */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <memrt/allocator.h>

#define HEADER 64 /* bytes of the text before a block */

/* Number of freed blocks whose header did not fit. */
unsigned long secret_data_unmatched;

static size_t gap_before(size_t align)
{
    return align > HEADER ? align : HEADER;
}

static void *secret_alloc(void *ctx, size_t size, size_t align)
{
    size_t gap = gap_before(align);
    (void)ctx;
    if (size > PTRDIFF_MAX - 2 * gap) {
        return NULL;
    }
    char *start = aligned_alloc(gap, (gap + size + gap - 1) / gap * gap);
    if (start == NULL) {
        return NULL;
    }
    snprintf(start + gap - HEADER, HEADER, "originally allocated %zu", size);
    return start + gap;
}

static void secret_free(void *ctx, void *ptr, size_t size, size_t align)
{
    char expected[HEADER];
    (void)ctx;
    snprintf(expected, sizeof(expected), "originally allocated %zu", size);
    if (strcmp((char *)ptr - HEADER, expected) != 0) {
        __atomic_fetch_add(&secret_data_unmatched, 1, __ATOMIC_RELAXED);
        return;
    }
    free((char *)ptr - gap_before(align));
}

const memrt_allocator_t secret_data = {
    .struct_size = sizeof(memrt_allocator_t),
    .version = MEMRT_ALLOCATOR_VERSION,
    .name = "secret_data",
    .alloc = secret_alloc,
    .free = secret_free,
};
