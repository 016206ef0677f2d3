/// Tests of resizing in place: spans that take or give back units, and blocks of such spans.

#include "support/suite.h"

#include <string.h>

#include "conformance/pattern.h"
#include "runtime/alloc/allocator.h"
#include "runtime/alloc/heap/central/central_list.h"
#include "runtime/alloc/heap/large_cache_purge.h"
#include "runtime/alloc/heap/pages/page_heap.h"
#include "support/books.h"
#include "support/crew.h"
#include "support/kernel.h"

#define SEGMENT_UNITS (MEMRT__SEGMENT / MEMRT__UNIT)

static const memrt_allocator_t *const heap = &memrt__heap_allocator;

static void empty_caches(void)
{
    suite_set_decay(MEMRT__DECAY_NEVER);
    memrt__allocator_release_unused(heap);
    ck_assert_uint_eq(memrt__page_heap_cached(), 0);
}

static memrt__span_t *take_span(size_t units)
{
    bool grew;
    memrt__span_t *span = memrt__page_heap_take(units, &grew);
    ck_assert_ptr_nonnull(span);
    span->used = 1;
    return span;
}

static void give_span(memrt__span_t *span)
{
    span->used = 0;
    span->next = NULL;
    memrt__page_heap_give(span);
}

static bool resize_span(memrt__span_t *span, size_t units)
{
    bool grew = false;
    bool resized = memrt__page_heap_resize(span, units, &grew);
    if (grew) {
        memrt__large_cache_make_room();
    }
    return resized;
}

TEST(span_takes_the_units_after_it_and_gives_them_back)
{
    empty_caches();
    memrt__span_t *span = take_span(10);
    size_t used = memrt__page_heap_used();
    ck_assert(resize_span(span, 50));
    ck_assert_uint_eq(span->units, 50);
    ck_assert_uint_eq(memrt__page_heap_used(), used + 40 * MEMRT__UNIT);
    for (size_t unit = 0; unit < 50; unit++) {
        ck_assert_ptr_eq(memrt__page_heap_span_of(span->base + unit * MEMRT__UNIT), span);
    }
    memset(span->base, 1, 50 * MEMRT__UNIT);
    ck_assert(resize_span(span, 20));
    ck_assert_uint_eq(memrt__page_heap_used(), used + 10 * MEMRT__UNIT);
    ck_assert_uint_eq(memrt__page_heap_cached(), 30 * MEMRT__UNIT);
    ck_assert(resize_span(span, 20));
    memrt__span_t *next = take_span(30); /* from the returned units */
    ck_assert_ptr_eq(next->base, span->base + 20 * MEMRT__UNIT);
    ck_assert_uint_eq(memrt__page_heap_cached(), 0);
    give_span(next);
    give_span(span);
}

TEST(span_does_not_take_used_units_or_leave_its_segment)
{
    empty_caches();
    memrt__span_t *span = take_span(10), *next = take_span(1);
    size_t used = memrt__page_heap_used();
    ck_assert_ptr_eq(next->base, span->base + 10 * MEMRT__UNIT);
    ck_assert(!resize_span(span, 11));
    ck_assert_uint_eq(span->units, 10);
    ck_assert_uint_eq(memrt__page_heap_used(), used);
    give_span(next);
    ck_assert(resize_span(span, 11));
    size_t first = (size_t)(span->base - (char *)memrt__segment_of(span)) / MEMRT__UNIT;
    memrt__span_t *filler = take_span(MEMRT__SPAN_MAX / MEMRT__UNIT);
    size_t left = SEGMENT_UNITS - first - 11 - filler->units;
    ck_assert_uint_lt(left, filler->units);
    memrt__span_t *last = take_span(left);
    ck_assert_ptr_eq(memrt__segment_of(last), memrt__segment_of(span));
    ck_assert(!resize_span(last, left + 1));
    give_span(last);
    give_span(filler);
    give_span(span);
}

TEST(span_that_takes_fresh_units_counts_them_as_grown)
{
    empty_caches();
    memrt__span_t *span = take_span(10);
    bool grew = false;
    ck_assert(memrt__page_heap_resize(span, 20, &grew));
    ck_assert(grew);
    memrt__large_cache_make_room();
    ck_assert(resize_span(span, 10));
    grew = false;
    ck_assert(memrt__page_heap_resize(span, 20, &grew)); /* the same units, in memory now */
    ck_assert(!grew);
    give_span(span);
}

static void *resize_block(void *block, size_t *size, size_t new_size)
{
    void *resized = memrt__allocator_realloc(heap, block, *size, new_size, 64);
    ck_assert_ptr_nonnull(resized);
    *size = new_size;
    return resized;
}

TEST(large_block_grows_and_shrinks_at_one_address)
{
    empty_caches();
    size_t size = MEMRT__CLASS_BYTES_MAX / 4, used = memrt__page_heap_used();
    unsigned char *block = memrt__allocator_alloc(heap, size, 64, false), *before = block;
    pattern_write(block, size, 7);
    size_t least = size;
    while (size < MEMRT__CLASS_BYTES_MAX * 9 / 10) {
        block = resize_block(block, &size, size * 10 / 9);
        ck_assert_ptr_eq(block, before);
        memset(block + least, 1, size - least);
    }
    size_t most = memrt__page_heap_used();
    block = resize_block(block, &size, least);
    ck_assert_ptr_eq(block, before);
    ck_assert(pattern_holds(block, least, 7));
    ck_assert_uint_lt(memrt__page_heap_used(), most);
    memrt__allocator_free(heap, block, size, 64);
    memrt__allocator_release_unused(heap);
    ck_assert_uint_eq(memrt__page_heap_used(), used);
}

TEST(aligned_block_grows_and_shrinks_at_one_address)
{
    empty_caches();
    size_t size = (size_t)200 << 10, align = 4096;
    unsigned char *block = memrt__allocator_alloc(heap, size, align, false);
    pattern_write(block, size, 7);
    ck_assert_ptr_eq(memrt__allocator_realloc(heap, block, size, 2 * size, align), block);
    ck_assert(memrt__allocator_try_expand(heap, block, 2 * size, 3 * size, align));
    memset(block + size, 1, 2 * size);
    ck_assert_ptr_eq(memrt__allocator_realloc(heap, block, 3 * size, size, align), block);
    ck_assert(pattern_holds(block, size, 7));
    memrt__allocator_free(heap, block, size, align);
}

TEST(large_block_grows_in_place_within_its_mapping)
{
    size_t size = 3000000;
    char *block = memrt__allocator_alloc(heap, size, 64, false);
    size_t usable = memrt__allocator_usable_size(heap, block, size, 64);
    ck_assert_uint_gt(usable, size);
    kernel_refuse(KERNEL_REMAP, 0, SIZE_MAX);
    ck_assert(memrt__allocator_try_expand(heap, block, size, usable, 64));
    ck_assert(!memrt__allocator_try_expand(heap, block, usable, usable + 1, 64));
    kernel_obey();
    block[usable - 1] = 1;
    ck_assert(!memrt__allocator_try_expand(heap, block, usable, SIZE_MAX, 64));
    char *medium = memrt__allocator_alloc(heap, 100000, 64, false);
    ck_assert(!memrt__allocator_try_expand(heap, medium, 100000, size, 64));
    memrt__allocator_free(heap, medium, 100000, 64);
    memrt__allocator_free(heap, block, usable, 64);
}

TEST(large_block_moves_if_the_units_after_it_are_in_use)
{
    empty_caches();
    size_t size = (size_t)200 << 10, other = size;
    unsigned char *block = memrt__allocator_alloc(heap, size, 64, false), *before = block;
    unsigned char *next = memrt__allocator_alloc(heap, other, 64, false);
    pattern_write(block, size, 1);
    pattern_write(next, other, 2);
    ck_assert_ptr_eq(memrt__segment_of(next), memrt__segment_of(block));
    block = resize_block(block, &size, 2 * size);
    ck_assert_ptr_ne(block, before);
    ck_assert(pattern_holds(block, size / 2, 1));
    ck_assert(pattern_holds(next, other, 2));
    memrt__allocator_free(heap, next, other, 64);
    memrt__allocator_free(heap, block, size, 64);
}

TEST(resize_in_place_needs_classes_with_own_spans)
{
    bool clean;
    unsigned large = memrt__class_of_data(MEMRT__OWN_SPAN_FROM),
             small = memrt__class_of_data(MEMRT__OWN_SPAN_FROM / 2);
    void *block = memrt__central_list_take_one(large, &clean);
    ck_assert(!memrt__central_list_resize(block, large, small));
    ck_assert(!memrt__central_list_resize(block, small, large));
    ck_assert(memrt__central_list_resize(block, large, large));
    memrt__block_set_next(block, NULL);
    memrt__central_list_give(large, block);
}

#define ROUNDS 400

/// Grow and shrink blocks beside threads that take and free spans of the same classes.
static void resize_beside_others(size_t index, void *context)
{
    (void)context;
    size_t size = (size_t)(40 + 8 * index) << 10;
    unsigned char *block = api->block_alloc(NULL, size);
    REQUIRE(block != NULL);
    pattern_write(block, size, (unsigned)index);
    for (size_t round = 0; round < ROUNDS; round++) {
        size_t wanted = (size_t)(40 + (round * 37 + index * 11) % 900) << 10;
        block = api->block_realloc(NULL, block, wanted);
        REQUIRE(block != NULL);
        REQUIRE(pattern_holds(block, wanted < size ? wanted : size, (unsigned)index));
        pattern_write(block, wanted, (unsigned)index);
        size = wanted;
        api->block_free(NULL, api->block_alloc(NULL, wanted), wanted);
    }
    api->block_free(NULL, block, size);
}

TEST(threads_resize_large_blocks_beside_each_other)
{
    memrt_stats_t before = stats_of(NULL);
    crew_run(4, resize_beside_others, NULL);
    memrt_stats_t after = stats_of(NULL);
    ck_assert_uint_eq(after.live, before.live);
    ck_assert_uint_eq(after.realloc - before.realloc, 4 * ROUNDS);
}
