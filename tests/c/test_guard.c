#include "support/suite.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/alloc/allocator.h"
#include "runtime/alloc/guard.h"
#include "runtime/alloc/quarantine.h"
#include "runtime/base/place.h"
#include "runtime/base/size.h"
#include "support/child.h"
#include "support/counting.h"

static memrt_allocator_t make_guard(void)
{
    memrt_allocator_t guard;
    ck_assert_int_eq(memrt__guard_new(memrt__default_allocator(), &guard), MEMRT_OK);
    return guard;
}

typedef struct damage {
    ptrdiff_t offset; ///< from the start of a block of 100 bytes
    size_t align;
    bool by_realloc;
} damage_t;

static void write_outside(void *context)
{
    const damage_t *damage = context;
    memrt_allocator_t guard;
    REQUIRE(memrt__guard_new(memrt__default_allocator(), &guard) == MEMRT_OK);
    unsigned char *ptr = memrt__allocator_alloc(&guard, 100, damage->align, false);
    REQUIRE(ptr != NULL);
    ptr[damage->offset] ^= 1;
    if (damage->by_realloc) {
        ptr = memrt__allocator_realloc(&guard, ptr, 100, 50, damage->align);
    } else {
        memrt__allocator_free(&guard, ptr, 100, damage->align);
    }
}

TEST(a_write_past_the_end_is_found_at_free_with_its_distance)
{
    child_expect_abort(write_outside, &(damage_t){100, 64, false},
                       "of 100 bytes: a write 1 bytes past its end was found");
    child_expect_abort(write_outside, &(damage_t){163, 8, false},
                       "a write 64 bytes past its end was found");
}

TEST(a_write_before_the_start_is_found_at_free_with_its_distance)
{
    child_expect_abort(write_outside, &(damage_t){-1, 64, false},
                       "of 100 bytes: a write 1 bytes before the start of its block was found");
    child_expect_abort(write_outside, &(damage_t){-4096, 4096, false},
                       "a write 4096 bytes before the start of its block was found");
}

TEST(a_write_outside_is_found_at_realloc)
{
    child_expect_abort(write_outside, &(damage_t){100, 64, true}, "1 bytes past its end");
    child_expect_abort(write_outside, &(damage_t){-64, 16, true},
                       "64 bytes before the start of its block");
}

TEST(fresh_bytes_are_poisoned_and_zeroed_ones_are_not)
{
    memrt_allocator_t guard = make_guard();
    unsigned char *ptr = memrt__allocator_alloc(&guard, 10, 8, false);
    ck_assert_uint_eq(ptr[0], MEMRT_POISON_FRESH);
    ck_assert_uint_eq(ptr[9], MEMRT_POISON_FRESH);
    memrt__allocator_free(&guard, ptr, 10, 8);
    memrt__allocator_destroy(&guard);
}

static void *keep(void *ctx, size_t size, size_t align)
{
    (void)align;
    REQUIRE(size <= 1024);
    return ctx;
}

static void let_be(void *ctx, void *ptr, size_t size, size_t align)
{
    (void)ctx, (void)ptr, (void)size, (void)align;
}

TEST(a_guard_tells_where_a_block_was_made_and_where_it_was_freed)
{
    char text[MEMRT__PLACES_TEXT] = "";
    memrt_allocator_t guard = make_guard();
    void *ptr = memrt__allocator_alloc(&guard, 100, 64, false);
    memrt__guard_tell(ptr, text, sizeof(text));
    ck_assert_ptr_nonnull(strstr(text, "made at\n"));
    ck_assert_ptr_null(strstr(text, "freed at"));
    ck_assert_int_ne(text[strlen(text) - 1], '\n');
    memrt__allocator_free(&guard, ptr, 100, 64);
    ck_assert(memrt__guard_tell_dead(&guard, (uintptr_t)ptr + 50, text, sizeof(text)));
    ck_assert_ptr_nonnull(strstr(text, "made at\n"));
    ck_assert_ptr_nonnull(strstr(text, "freed at\n"));
    memrt__allocator_destroy(&guard);
}

TEST(freed_bytes_are_poisoned_before_the_upstream_gets_them)
{
    _Alignas(64) static unsigned char memory[1024];
    memrt_allocator_t guard, upstream = {.struct_size = sizeof(upstream),
                                         .version = MEMRT_ALLOCATOR_VERSION,
                                         .ctx = memory,
                                         .alloc = keep,
                                         .free = let_be};
    ck_assert_int_eq(memrt__guard_new(&upstream, &guard), MEMRT_OK);
    unsigned char *ptr = memrt__allocator_alloc(&guard, 10, 64, false);
    memset(ptr, 0, 10);
    memrt__allocator_free(&guard, ptr, 10, 64);
    ck_assert_uint_eq(ptr[0], MEMRT_POISON_FREED);
    ck_assert_uint_eq(ptr[9], MEMRT_POISON_FREED);
    memrt__allocator_destroy(&guard);
}

typedef struct misuse {
    void (*act)(memrt_allocator_t *guard, unsigned char *ptr); ///< of 100 bytes at 64
    const char *message;
} misuse_t;

static void free_twice(memrt_allocator_t *guard, unsigned char *ptr)
{
    memrt__allocator_free(guard, ptr, 100, 64);
    memrt__allocator_free(guard, ptr, 100, 64);
}

static void realloc_freed(memrt_allocator_t *guard, unsigned char *ptr)
{
    memrt__allocator_free(guard, ptr, 100, 64);
    REQUIRE(memrt__allocator_realloc(guard, ptr, 100, 50, 64) == NULL);
}

static void free_with_another_size(memrt_allocator_t *guard, unsigned char *ptr)
{
    memrt__allocator_free(guard, ptr, 99, 64);
}

static void free_with_another_alignment(memrt_allocator_t *guard, unsigned char *ptr)
{
    memrt__allocator_free(guard, ptr, 100, 32);
}

static void write_freed_and_release_unused(memrt_allocator_t *guard, unsigned char *ptr)
{
    memrt__allocator_free(guard, ptr, 100, 64);
    ptr[7] = 0x05;
    memrt__allocator_release_unused(guard);
}

static void clear_freed_and_destroy(memrt_allocator_t *guard, unsigned char *ptr, ptrdiff_t byte)
{
    memrt__allocator_free(guard, ptr, 100, 64);
    ptr[byte] = 0;
    memrt__allocator_destroy(guard);
}

static void write_freed_and_destroy(memrt_allocator_t *guard, unsigned char *ptr)
{
    clear_freed_and_destroy(guard, ptr, 99);
}

static void write_before_freed_and_destroy(memrt_allocator_t *guard, unsigned char *ptr)
{
    clear_freed_and_destroy(guard, ptr, -1);
}

static void write_past_freed_and_destroy(memrt_allocator_t *guard, unsigned char *ptr)
{
    clear_freed_and_destroy(guard, ptr, 100);
}

static void write_freed_and_free_many(memrt_allocator_t *guard, unsigned char *ptr)
{
    memrt__allocator_free(guard, ptr, 100, 64);
    ptr[0] = 0;
    for (unsigned i = 0; i < MEMRT__QUARANTINE_BLOCKS; i++) {
        void *other = memrt__allocator_alloc(guard, 100, 64, false);
        memrt__allocator_free(guard, other, 100, 64);
    }
}

static void write_far_before(memrt_allocator_t *guard, unsigned char *ptr)
{
    ptr[-100] ^= 1;
    memrt__allocator_free(guard, ptr, 100, 64);
}

static const misuse_t misuses[] = {
    {free_twice, "memrt: free of block at "},
    {free_twice, " of 100 bytes: it was freed already"},
    {free_twice, "  freed at\n"},
    {realloc_freed, "memrt: realloc of block at "},
    {free_with_another_size,
     ": it was said to have 99 bytes aligned to 64 and has 100 aligned to 64"},
    {free_with_another_alignment,
     ": it was said to have 100 bytes aligned to 32 and has 100 aligned to 64"},
    {write_freed_and_release_unused,
     " of 100 bytes: a write to byte 7 after it was freed was found, 0x5 in place of 0xdd"},
    {write_freed_and_destroy, "a write to byte 99 after it was freed was found"},
    {write_freed_and_destroy, "  freed at\n"},
    {write_before_freed_and_destroy, "a write 1 bytes before the start of its block was found"},
    {write_past_freed_and_destroy, "a write 1 bytes past its end was found"},
    {write_freed_and_free_many, "a write to byte 0 after it was freed was found"},
    {write_far_before, "bytes before the start of its block was found"},
};

static void commit(void *context)
{
    const misuse_t *misuse = context;
    memrt_allocator_t guard;
    REQUIRE(memrt__guard_new(memrt__default_allocator(), &guard) == MEMRT_OK);
    unsigned char *ptr = memrt__allocator_alloc(&guard, 100, 64, false);
    REQUIRE(ptr != NULL);
    misuse->act(&guard, ptr);
}

TEST_EACH(a_misuse_is_found_and_said, sizeof(misuses) / sizeof(misuses[0]))
{
    misuse_t misuse = misuses[index];
    child_expect_abort(commit, &misuse, misuse.message);
}

TEST(a_freed_block_is_not_used_again_while_the_guard_keeps_it)
{
    memrt_allocator_t guard = make_guard();
    void *ptr = memrt__allocator_alloc(&guard, 100, 64, false);
    uintptr_t stood = (uintptr_t)ptr;
    memrt__allocator_free(&guard, ptr, 100, 64);
    for (unsigned i = 1; i < MEMRT__QUARANTINE_BLOCKS; i++) {
        ptr = memrt__allocator_alloc(&guard, 100, 64, false);
        ck_assert_uint_ne((uintptr_t)ptr, stood);
        memrt__allocator_free(&guard, ptr, 100, 64);
    }
    memrt__allocator_destroy(&guard);
}

TEST(a_guard_keeps_no_more_than_it_has_room_for)
{
    memrt_allocator_t counting, guard;
    ck_assert_int_eq(counting_new(&memrt__system_allocator, &counting), MEMRT_OK);
    ck_assert_int_eq(memrt__guard_new(&counting, &guard), MEMRT_OK);
    static const size_t sizes[] = {100, MEMRT__QUARANTINE_BYTES / 3, MEMRT__QUARANTINE_BYTES + 1};
    for (size_t i = 0; i < 3 * 300; i++) {
        size_t size = sizes[i / 300];
        void *ptr = memrt__allocator_alloc(&guard, size, 64, true);
        ck_assert_ptr_nonnull(ptr);
        memrt__allocator_free(&guard, ptr, size, 64);
        ck_assert_uint_le(counting_read(&counting).bytes, MEMRT__QUARANTINE_BYTES + (1u << 20));
    }
    ck_assert_uint_eq(counting_read(&counting).bytes, 0); /* the last was too large to keep any */
    memrt__allocator_destroy(&guard);
}

TEST(realloc_always_moves)
{
    memrt_allocator_t guard = make_guard();
    void *ptr = memrt__allocator_alloc(&guard, 100, 64, false);
    uintptr_t stood = (uintptr_t)ptr;
    ptr = memrt__allocator_realloc(&guard, ptr, 100, 99, 64);
    ck_assert_uint_ne((uintptr_t)ptr, stood);
    memrt__allocator_free(&guard, ptr, 99, 64);
    memrt__allocator_destroy(&guard);
}

TEST(a_guard_over_a_bad_table_is_refused_and_out_stays_as_it_was)
{
    memrt_allocator_t bad = memrt__system_allocator, out = {.name = "untouched"};
    bad.free = NULL;
    ck_assert_int_eq(api->allocator_guard(&bad, &out), MEMRT_EINVAL);
    ck_assert_str_eq(out.name, "untouched");
}

TEST(destroying_the_guard_destroys_its_upstream)
{
    counts_t counts;
    memrt_allocator_t counting, guard;
    ck_assert_int_eq(counting_new(&memrt__system_allocator, &counting), MEMRT_OK);
    counting_at_destroy(&counting, &counts);
    ck_assert_int_eq(memrt__guard_new(&counting, &guard), MEMRT_OK);
    memrt__allocator_destroy(&guard);
    ck_assert_uint_eq(counts.destroys, 1);
}

static void *shifted_alloc(void *ctx, size_t size, size_t align)
{
    (void)ctx;
    char *ptr = aligned_alloc(64, (size + align + 63) / 64 * 64);
    return ptr == NULL ? NULL : ptr + align; /* aligned to no more than was asked for */
}

static void shifted_free(void *ctx, void *ptr, size_t size, size_t align)
{
    (void)ctx, (void)size;
    free((char *)ptr - align);
}

TEST(an_upstream_need_not_align_more_than_it_is_asked_to)
{
    memrt_allocator_t guard, upstream = {.struct_size = sizeof(upstream),
                                         .version = MEMRT_ALLOCATOR_VERSION,
                                         .alloc = shifted_alloc,
                                         .free = shifted_free};
    ck_assert_int_eq(memrt__guard_new(&upstream, &guard), MEMRT_OK);
    for (size_t align = 1; align <= 64; align *= 2) {
        unsigned char *ptr = memrt__allocator_alloc(&guard, 10, align, false);
        ck_assert_ptr_nonnull(ptr);
        ck_assert_uint_eq((uintptr_t)ptr % memrt__size_max(align, sizeof(size_t)), 0);
        memrt__allocator_free(&guard, ptr, 10, align);
    }
    memrt__allocator_destroy(&guard);
}
