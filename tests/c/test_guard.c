#include "support/suite.h"

#include <string.h>

#include "runtime/alloc/allocator.h"
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
                       "of 100 bytes: a write 1 bytes before its start was found");
    child_expect_abort(write_outside, &(damage_t){-4096, 4096, false},
                       "a write 4096 bytes before its start was found");
}

TEST(a_write_outside_is_found_at_realloc)
{
    child_expect_abort(write_outside, &(damage_t){100, 64, true}, "1 bytes past its end");
    child_expect_abort(write_outside, &(damage_t){-64, 16, true}, "64 bytes before its start");
}

TEST(fresh_bytes_are_poisoned_and_zeroed_ones_are_not)
{
    memrt_allocator_t guard = make_guard();
    unsigned char *ptr = memrt__allocator_alloc(&guard, 10, 8, false);
    ck_assert_uint_eq(ptr[0], MEMRT__POISON_FRESH);
    ck_assert_uint_eq(ptr[9], MEMRT__POISON_FRESH);
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
    ck_assert_uint_eq(ptr[0], MEMRT__POISON_FREED);
    ck_assert_uint_eq(ptr[9], MEMRT__POISON_FREED);
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
