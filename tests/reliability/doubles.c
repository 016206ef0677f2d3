/* Test doubles for the conformance kit. The allocators `right` and `growing` meet every clause.
   Each wrong_NAME breaks only the clause NAME. A double has the functions of `right`, except for
   the functions named in the TABLE line.

   No library has the doubles: each double breaks exactly one clause of memrt's own kit. */

#include <malloc.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <memrt/allocator.h>

/* --- The right allocator: memory of the C library, with a cache of 1 block. --- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *kept; /* under the lock */
static size_t kept_size, kept_align;

static void *take_kept(size_t size, size_t align)
{
    void *ptr = NULL;
    pthread_mutex_lock(&lock);
    if (kept != NULL && kept_size == size && kept_align == align) {
        ptr = kept;
        kept = NULL;
    }
    pthread_mutex_unlock(&lock);
    return ptr;
}

static void *right_alloc(void *ctx, size_t size, size_t align)
{
    (void)ctx;
    void *ptr = take_kept(size, align);
    if (ptr != NULL || size > PTRDIFF_MAX - 2 * align) {
        return ptr;
    }
    align = align < sizeof(void *) ? sizeof(void *) : align;
    return posix_memalign(&ptr, align, size) == 0 ? ptr : NULL;
}

static void *right_alloc_zeroed(void *ctx, size_t size, size_t align)
{
    void *ptr = right_alloc(ctx, size, align);
    return ptr == NULL ? NULL : memset(ptr, 0, size);
}

static void right_free(void *ctx, void *ptr, size_t size, size_t align)
{
    (void)ctx;
    pthread_mutex_lock(&lock);
    void *other = kept;
    kept = ptr;
    kept_size = size;
    kept_align = align;
    pthread_mutex_unlock(&lock);
    free(other);
}

static void *right_realloc(void *ctx, void *ptr, size_t old_size, size_t new_size, size_t align)
{
    void *moved = right_alloc(ctx, new_size, align);
    if (moved != NULL) {
        memcpy(moved, ptr, old_size < new_size ? old_size : new_size);
        right_free(ctx, ptr, old_size, align);
    }
    return moved;
}

static size_t right_release_unused(void *ctx)
{
    (void)ctx;
    pthread_mutex_lock(&lock);
    size_t size = kept == NULL ? 0 : kept_size;
    free(kept);
    kept = NULL;
    pthread_mutex_unlock(&lock);
    return size;
}

static void right_usage(void *ctx, memrt_allocator_usage_t *out)
{
    (void)ctx;
    pthread_mutex_lock(&lock);
    out->cached = kept == NULL ? 0 : kept_size;
    pthread_mutex_unlock(&lock);
}

static void right_destroy(void *ctx)
{
    right_release_unused(ctx);
}

/* Define a table with the functions of `right`, except for the fields given as arguments. */
#define TABLE(table, ...)                                                                          \
    _Pragma("GCC diagnostic push") _Pragma("GCC diagnostic ignored \"-Woverride-init\"")           \
        const memrt_allocator_t table = {.struct_size = sizeof(memrt_allocator_t),                 \
                                         .version = MEMRT_ALLOCATOR_VERSION,                       \
                                         .name = #table,                                           \
                                         .alloc = right_alloc,                                     \
                                         .alloc_zeroed = right_alloc_zeroed,                       \
                                         .realloc = right_realloc,                                 \
                                         .free = right_free,                                       \
                                         .release_unused = right_release_unused,                   \
                                         .usage = right_usage,                                     \
                                         .destroy = right_destroy,                                 \
                                         __VA_ARGS__};                                             \
    _Pragma("GCC diagnostic pop")

TABLE(right, .reserved = 0)
TABLE(memrt_allocator, .reserved = 0)

/* An allocator with the mandatory members only. */
const memrt_allocator_t least = {.struct_size = sizeof(memrt_allocator_t),
                                 .version = MEMRT_ALLOCATOR_VERSION,
                                 .alloc = right_alloc,
                                 .free = right_free};

/* --- The wrong allocators. --- */

TABLE(wrong_table, .reserved = 1)

static void *malloc_alloc(void *ctx, size_t size, size_t align)
{
    (void)ctx, (void)align;
    return malloc(size);
}
static void *malloc_alloc_zeroed(void *ctx, size_t size, size_t align)
{
    (void)ctx, (void)align;
    return calloc(1, size);
}
TABLE(wrong_alignment, .alloc = malloc_alloc, .alloc_zeroed = malloc_alloc_zeroed)

/* Blocks of 100 to 163 bytes overlap: they are 96 bytes apart in the arena. */
static _Alignas(64) char arena[64 * 96 + 256];
static size_t arena_used;

static void *overlapping_alloc(void *ctx, size_t size, size_t align)
{
    if (size < 100 || size >= 164 || align > 32) {
        return right_alloc(ctx, size, align);
    }
    return &arena[96 * (arena_used++ % 64)];
}
static void arena_free(void *ctx, void *ptr, size_t size, size_t align)
{
    if ((char *)ptr < arena || (char *)ptr >= arena + sizeof(arena)) {
        right_free(ctx, ptr, size, align);
    }
}
TABLE(wrong_blocks, .alloc = overlapping_alloc, .realloc = NULL, .free = arena_free)

/* All blocks of 1 byte have the same address. */
static void *sharing_alloc(void *ctx, size_t size, size_t align)
{
    return size == 1 && align <= 64 ? arena : right_alloc(ctx, size, align);
}
TABLE(wrong_smallest, .alloc = sharing_alloc, .free = arena_free)

TABLE(wrong_zeroed, .alloc_zeroed = right_alloc)

static void *clamping_alloc(void *ctx, size_t size, size_t align)
{
    return right_alloc(ctx, size > PTRDIFF_MAX ? 64 : size, align);
}
TABLE(wrong_refusal, .alloc = clamping_alloc)

static void *forgetting_realloc(void *ctx, void *ptr, size_t old_size, size_t new_size,
                                size_t align)
{
    if (old_size == new_size) {
        return ptr;
    }
    void *moved = right_alloc(ctx, new_size, align);
    if (moved != NULL) {
        memset(moved, 0, new_size);
        right_free(ctx, ptr, old_size, align);
    }
    return moved;
}
TABLE(wrong_realloc_contents, .realloc = forgetting_realloc)

static void *unaligned_realloc(void *ctx, void *ptr, size_t old_size, size_t new_size, size_t align)
{
    (void)ctx, (void)old_size, (void)align;
    return realloc(ptr, new_size);
}
TABLE(wrong_realloc_alignment, .realloc = unaligned_realloc)

static void *freeing_realloc(void *ctx, void *ptr, size_t old_size, size_t new_size, size_t align)
{
    if (old_size == new_size) {
        right_free(ctx, ptr, old_size, align);
        return ptr;
    }
    return right_realloc(ctx, ptr, old_size, new_size, align);
}
TABLE(wrong_realloc_same_size, .realloc = freeing_realloc)

static void *losing_realloc(void *ctx, void *ptr, size_t old_size, size_t new_size, size_t align)
{
    void *moved = right_realloc(ctx, ptr, old_size, new_size, align);
    if (moved == NULL) {
        memset(ptr, 0xDD, old_size); /* the old block is destroyed, as after a free */
    }
    return moved;
}
TABLE(wrong_realloc_refusal, .realloc = losing_realloc)

/* The last word of a block names the allocating thread. A free on any other thread aborts. */
static void *bound_alloc(void *ctx, size_t size, size_t align)
{
    pthread_t self = pthread_self();
    if (size > PTRDIFF_MAX - sizeof(self)) {
        return NULL;
    }
    char *ptr = right_alloc(ctx, size + sizeof(self), align);
    return ptr == NULL ? NULL : (memcpy(ptr + size, &self, sizeof(self)), ptr);
}
static void bound_free(void *ctx, void *ptr, size_t size, size_t align)
{
    pthread_t maker;
    memcpy(&maker, (char *)ptr + size, sizeof(maker));
    if (!pthread_equal(maker, pthread_self())) {
        abort();
    }
    right_free(ctx, ptr, size + sizeof(maker), align);
}
TABLE(wrong_free_elsewhere, .alloc = bound_alloc, .alloc_zeroed = NULL, .realloc = NULL,
      .free = bound_free)

/* An allocation writes the address of its block into the previous block, if another thread
   allocated the previous block. The write corrupts the data of the user. */
static void *last; /* the last block and its thread: under the lock */
static pthread_t last_thread;

static void *linking_alloc(void *ctx, size_t size, size_t align)
{
    char *ptr = right_alloc(ctx, size, align);
    pthread_mutex_lock(&lock);
    if (last != NULL && !pthread_equal(last_thread, pthread_self())) {
        memcpy(last, &ptr, sizeof(ptr));
    }
    last = size < sizeof(ptr) ? NULL : ptr;
    last_thread = pthread_self();
    pthread_mutex_unlock(&lock);
    return ptr;
}
static void linking_free(void *ctx, void *ptr, size_t size, size_t align)
{
    pthread_mutex_lock(&lock);
    last = last == ptr ? NULL : last;
    pthread_mutex_unlock(&lock);
    right_free(ctx, ptr, size, align);
}
TABLE(wrong_threads, .alloc = linking_alloc, .alloc_zeroed = NULL, .realloc = NULL,
      .free = linking_free)

static pid_t home;
__attribute__((constructor)) static void settle(void)
{
    home = getpid();
}
static void *homesick_alloc(void *ctx, size_t size, size_t align)
{
    return getpid() == home ? right_alloc(ctx, size, align) : NULL;
}
TABLE(wrong_fork, .alloc = homesick_alloc)

static void silent_usage(void *ctx, memrt_allocator_usage_t *out)
{
    (void)ctx, (void)out;
}
TABLE(wrong_usage, .usage = silent_usage)

static size_t keeping_release_unused(void *ctx)
{
    (void)ctx;
    return 0;
}
TABLE(wrong_release_unused, .release_unused = keeping_release_unused)

static void crashing_destroy(void *ctx)
{
    (void)ctx;
    abort();
}
TABLE(wrong_destroy, .destroy = crashing_destroy)

/* Growth in place, in memory for twice the size. */
static void *roomy_alloc(void *ctx, size_t size, size_t align)
{
    return size > PTRDIFF_MAX / 4 ? NULL : right_alloc(ctx, 2 * size, align);
}
static void roomy_free(void *ctx, void *ptr, size_t size, size_t align)
{
    (void)ctx, (void)size, (void)align;
    free(ptr);
}
static int roomy_try_expand(void *ctx, void *ptr, size_t old_size, size_t new_size, size_t align)
{
    (void)ctx, (void)old_size, (void)align;
    return new_size <= malloc_usable_size(ptr);
}
static size_t roomy_usable_size(void *ctx, const void *ptr, size_t size, size_t align)
{
    (void)ctx, (void)size, (void)align;
    return malloc_usable_size((void *)ptr);
}
static size_t same_good_size(void *ctx, size_t size, size_t align)
{
    (void)ctx, (void)align;
    return size;
}
#define ROOMY(table, ...)                                                                          \
    TABLE(table, .alloc = roomy_alloc, .alloc_zeroed = NULL, .realloc = NULL, .free = roomy_free,  \
          .release_unused = NULL, .usage = NULL, .destroy = NULL, .try_expand = roomy_try_expand,  \
          .usable_size = roomy_usable_size, .good_size = same_good_size, __VA_ARGS__)
ROOMY(growing, .reserved = 0)

static int clearing_try_expand(void *ctx, void *ptr, size_t old_size, size_t new_size, size_t align)
{
    int grew = roomy_try_expand(ctx, ptr, old_size, new_size, align);
    if (!grew) {
        memset(ptr, 0, old_size);
    }
    return grew;
}
ROOMY(wrong_try_expand, .try_expand = clearing_try_expand)

static size_t optimistic_usable_size(void *ctx, const void *ptr, size_t size, size_t align)
{
    return roomy_usable_size(ctx, ptr, size, align) + 1;
}
ROOMY(wrong_usable_size, .usable_size = optimistic_usable_size)

static size_t rounding_good_size(void *ctx, size_t size, size_t align)
{
    (void)ctx, (void)align;
    return (size + 63) & ~(size_t)63; /* 0 for the largest sizes */
}
ROOMY(wrong_good_size, .good_size = rounding_good_size)

/* --- Allocators that never return. --- */

static void *hanging_alloc_zeroed(void *ctx, size_t size, size_t align)
{
    while (size < SIZE_MAX / 4) {
        pause();
    }
    return right_alloc_zeroed(ctx, size, align);
}
TABLE(hanging, .alloc_zeroed = hanging_alloc_zeroed)

static void *exiting_alloc_zeroed(void *ctx, size_t size, size_t align)
{
    if (size < SIZE_MAX / 4) {
        _exit(0);
    }
    return right_alloc_zeroed(ctx, size, align);
}
TABLE(exiting, .alloc_zeroed = exiting_alloc_zeroed)
