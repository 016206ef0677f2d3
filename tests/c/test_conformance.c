/// One suite for every allocator and wrapper: adding one is adding a line to `subjects`.

#include "support/suite.h"

#include <string.h>

#include "runtime/alloc/allocator.h"
#include "runtime/alloc/guard.h"
#include "runtime/alloc/pool.h"
#include "support/counting.h"
#include "support/crew.h"
#include "support/failing.h"
#include "support/gate.h"
#include "support/hoarding.h"
#include "support/moving.h"
#include "support/pattern.h"

typedef memrt_status_t (*wrap_fn)(const memrt_allocator_t *upstream, memrt_allocator_t *out);

#define WRAPS_MAX 3

/* What policies with limits of their own have, with and without a cache; for the whole run. */
static memrt_allocator_t limited_pool, limited_plain;

static void make_limited(memrt_allocator_t *out, bool cache)
{
    memrt__limits_t limits = {MEMRT__HUGE_ADVISE, (size_t)20 << 20, 5};
    memrt__options.cache = cache;
    REQUIRE(memrt__limited_allocator(&limits, out) == MEMRT_OK);
    out->destroy = NULL;
}

__attribute__((constructor)) static void make_all_limited(void)
{
    bool was = memrt__options.cache;
    make_limited(&limited_pool, true);
    make_limited(&limited_plain, false);
    memrt__options.cache = was;
}

/// A bottom and wrappers over it, innermost first.
typedef struct subject {
    const char *name;
    const memrt_allocator_t *bottom;
    wrap_fn wraps[WRAPS_MAX];
} subject_t;

static const subject_t subjects[] = {
    {"system", &memrt__system_allocator, {0}},
    {"mapped", &memrt__mapped_allocator, {0}},
    {"plain", &memrt__plain_allocator, {0}},
    {"pool", &memrt__pool_allocator, {0}},
    {"pool with limits", &limited_pool, {0}},
    {"plain with limits", &limited_plain, {0}},
    {"guard over system", &memrt__system_allocator, {memrt__guard_new}},
    {"guard over mapped", &memrt__mapped_allocator, {memrt__guard_new}},
    {"guard over pool", &memrt__pool_allocator, {memrt__guard_new}},
    {"guard over guard", &memrt__pool_allocator, {memrt__guard_new, memrt__guard_new}},
    {"failing", &memrt__pool_allocator, {failing_new}},
    {"counting", &memrt__pool_allocator, {counting_new}},
    {"moving over system", &memrt__system_allocator, {moving_new}},
    {"moving over mapped", &memrt__mapped_allocator, {moving_new}},
    {"moving over pool", &memrt__pool_allocator, {moving_new}},
    {"hoarding over moving over pool", &memrt__pool_allocator, {moving_new, hoarding_new}},
    {"gate", &memrt__pool_allocator, {gate_new}},
    {"hoarding", &memrt__pool_allocator, {hoarding_new}},
    {"guard over hoarding", &memrt__pool_allocator, {hoarding_new, memrt__guard_new}},
    {"guard over moving over gate",
     &memrt__pool_allocator,
     {gate_new, moving_new, memrt__guard_new}},
};
#define SUBJECTS (sizeof(subjects) / sizeof(subjects[0]))

static const size_t sizes[] = {1,
                               7,
                               64,
                               1024,
                               1025,
                               4095,
                               4097,
                               65536,
                               MEMRT__LARGE - 1,
                               MEMRT__LARGE,
                               MEMRT__LARGE + 1,
                               (size_t)4 << 20,
                               (size_t)10 << 20};
#define SIZES (sizeof(sizes) / sizeof(sizes[0]))

static const size_t aligns[] = {
    1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, (size_t)64 << 10, (size_t)2 << 20};
#define ALIGNS (sizeof(aligns) / sizeof(aligns[0]))

/// What a subject is over some bottom; its destroy destroys all of it.
static memrt_allocator_t make_over(const memrt_allocator_t *bottom, int index)
{
    const subject_t *subject = &subjects[index];
    memrt_allocator_t made = *bottom;
    for (size_t i = 0; i < WRAPS_MAX && subject->wraps[i] != NULL; i++) {
        memrt_allocator_t outer;
        ck_assert_msg(subject->wraps[i](&made, &outer) == MEMRT_OK, "%s", subject->name);
        made = outer;
    }
    return made;
}

static memrt_allocator_t make(int index)
{
    return make_over(subjects[index].bottom, index);
}

static bool is_aligned(const void *ptr, size_t align)
{
    return ((uintptr_t)ptr & (align - 1)) == 0;
}

/// The edges of a block are what a wrong size loses first, and checking them is quick.
static void mark_edges(unsigned char *ptr, size_t size)
{
    ptr[0] = 0x11;
    ptr[size - 1] = 0x77;
}

TEST_EACH(any_size_has_any_alignment, SUBJECTS)
{
    memrt_allocator_t allocator = make(index);
    for (size_t s = 0; s < SIZES; s++) {
        for (size_t a = 0; a < ALIGNS; a++) {
            void *ptr = memrt__allocator_alloc(&allocator, sizes[s], aligns[a], false);
            ck_assert_msg(ptr != NULL && is_aligned(ptr, aligns[a]), "%s: %zu bytes at %zu: %p",
                          subjects[index].name, sizes[s], aligns[a], ptr);
            mark_edges(ptr, sizes[s]);
            memrt__allocator_free(&allocator, ptr, sizes[s], aligns[a]);
        }
    }
    memrt__allocator_destroy(&allocator);
}

static void resize_and_verify(const memrt_allocator_t *allocator, size_t from, size_t to,
                              size_t align)
{
    void *ptr = memrt__allocator_alloc(allocator, from, align, false);
    ck_assert_ptr_nonnull(ptr);
    pattern_write(ptr, from, (unsigned)to);
    void *moved = memrt__allocator_realloc(allocator, ptr, from, to, align);
    ck_assert_ptr_nonnull(moved);
    ck_assert(is_aligned(moved, align));
    ck_assert_msg(pattern_holds(moved, from < to ? from : to, (unsigned)to),
                  "%s: %zu to %zu at %zu", allocator->name, from, to, align);
    mark_edges(moved, to);
    memrt__allocator_free(allocator, moved, to, align);
}

TEST_EACH(contents_and_alignment_survive_realloc_in_every_direction, SUBJECTS)
{
    static const size_t steps[] = {1, 100, 70000, MEMRT__LARGE - 1, MEMRT__LARGE, (size_t)5 << 20};
    static const size_t step_aligns[] = {1, 64, 4096, (size_t)2 << 20};
    memrt_allocator_t allocator = make(index);
    for (size_t from = 0; from < sizeof(steps) / sizeof(steps[0]); from++) {
        for (size_t to = 0; to < sizeof(steps) / sizeof(steps[0]); to++) {
            size_t align = step_aligns[(from + to) % 4];
            resize_and_verify(&allocator, steps[from], steps[to], align);
        }
    }
    memrt__allocator_destroy(&allocator);
}

TEST_EACH(zeroed_memory_is_zero_also_when_it_was_used_before, SUBJECTS)
{
    memrt_allocator_t allocator = make(index);
    for (size_t s = 0; s < SIZES; s++) {
        for (int round = 0; round < 3; round++) {
            void *ptr = memrt__allocator_alloc(&allocator, sizes[s], 64, true);
            ck_assert_ptr_nonnull(ptr);
            ck_assert_msg(pattern_is_zero(ptr, sizes[s]), "%s: %zu bytes, round %d",
                          subjects[index].name, sizes[s], round);
            memset(ptr, 0xEE, sizes[s]);
            memrt__allocator_free(&allocator, ptr, sizes[s], 64);
        }
    }
    memrt__allocator_destroy(&allocator);
}

TEST_EACH(sizes_that_nobody_has_are_refused, SUBJECTS)
{
    static const size_t huge[] = {(size_t)PTRDIFF_MAX - 4096,
                                  (size_t)PTRDIFF_MAX,
                                  SIZE_MAX / 2 + 1,
                                  SIZE_MAX - 4096,
                                  SIZE_MAX - 64,
                                  SIZE_MAX};
    memrt_allocator_t allocator = make(index);
    for (size_t i = 0; i < sizeof(huge) / sizeof(huge[0]); i++) {
        for (size_t a = 0; a < ALIGNS; a++) {
            ck_assert_ptr_null(memrt__allocator_alloc(&allocator, huge[i], aligns[a], false));
            ck_assert_ptr_null(memrt__allocator_alloc(&allocator, huge[i], aligns[a], true));
        }
    }
    memrt__allocator_destroy(&allocator);
}

TEST_EACH(a_realloc_that_fails_keeps_the_old_block, SUBJECTS)
{
    static const size_t huge[] = {(size_t)PTRDIFF_MAX - 4096, SIZE_MAX - 64, SIZE_MAX};
    memrt_allocator_t allocator = make(index);
    for (size_t s = 0; s < SIZES; s++) {
        void *ptr = memrt__allocator_alloc(&allocator, sizes[s], 64, false);
        ck_assert_ptr_nonnull(ptr);
        pattern_write(ptr, sizes[s], 3);
        for (size_t i = 0; i < sizeof(huge) / sizeof(huge[0]); i++) {
            ck_assert_ptr_null(memrt__allocator_realloc(&allocator, ptr, sizes[s], huge[i], 64));
        }
        ck_assert(pattern_holds(ptr, sizes[s], 3));
        memrt__allocator_free(&allocator, ptr, sizes[s], 64);
    }
    memrt__allocator_destroy(&allocator);
}

TEST_EACH(blocks_do_not_overlap, SUBJECTS)
{
    enum { BLOCKS = 64 };
    memrt_allocator_t allocator = make(index);
    void *blocks[BLOCKS];
    for (unsigned i = 0; i < BLOCKS; i++) {
        blocks[i] = memrt__allocator_alloc(&allocator, 100 + i, 32, false);
        ck_assert_ptr_nonnull(blocks[i]);
        pattern_write(blocks[i], 100 + i, i);
    }
    for (unsigned i = 0; i < BLOCKS; i++) {
        ck_assert(pattern_holds(blocks[i], 100 + i, i));
        memrt__allocator_free(&allocator, blocks[i], 100 + i, 32);
    }
    memrt__allocator_destroy(&allocator);
}

TEST_EACH(release_unused_gives_back_all_that_is_cached, SUBJECTS)
{
    memrt_allocator_t allocator = make(index);
    void *ptr = memrt__allocator_alloc(&allocator, 5000, 64, false);
    ck_assert_ptr_nonnull(ptr);
    memrt__allocator_free(&allocator, ptr, 5000, 64);
    size_t cached = memrt__allocator_cached(&allocator);
    ck_assert_uint_ge(memrt__allocator_release_unused(&allocator), cached); /* whole pages */
    ck_assert_uint_eq(memrt__allocator_cached(&allocator), 0);
    ck_assert_uint_eq(memrt__allocator_release_unused(&allocator), 0);
    memrt__allocator_destroy(&allocator);
}

/// One thread's part: blocks of many sizes that grow, shrink and go, each with its own pattern.
static void churn(size_t index, void *context)
{
    const memrt_allocator_t *allocator = context;
    unsigned seed = (unsigned)index + 1;
    for (size_t round = 0; round < 60; round++) {
        size_t size = 1 + (round * 977 + index * 131) % 20000;
        size_t align = (size_t)1 << ((round + index) % 13);
        void *ptr = memrt__allocator_alloc(allocator, size, align, false);
        REQUIRE(ptr != NULL && is_aligned(ptr, align));
        pattern_write(ptr, size, seed);
        size_t next = 1 + (size * 7) % 30000;
        ptr = memrt__allocator_realloc(allocator, ptr, size, next, align);
        REQUIRE(ptr != NULL && pattern_holds(ptr, size < next ? size : next, seed));
        memrt__allocator_free(allocator, ptr, next, align);
    }
}

TEST_EACH(threads_do_not_disturb_each_other, SUBJECTS)
{
    memrt_allocator_t allocator = make(index);
    crew_run(4, churn, &allocator);
    memrt__allocator_destroy(&allocator);
}

TEST_EACH(what_goes_to_the_bottom_comes_back_with_its_size, SUBJECTS)
{
    counts_t counts;
    memrt_allocator_t bottom;
    ck_assert_int_eq(counting_new(subjects[index].bottom, &bottom), MEMRT_OK);
    counting_at_destroy(&bottom, &counts);
    memrt_allocator_t allocator = make_over(&bottom, index);
    churn(0, &allocator);
    memrt__allocator_destroy(&allocator);
    ck_assert_uint_gt(counts.allocs, 0);
    ck_assert_uint_eq(counts.frees, counts.allocs);
    ck_assert_uint_eq(counts.bytes, 0);
    ck_assert_uint_eq(counts.destroys, 1);
}
