/// Test the places of blocks in arenas, and the reuse of chunks. The conformance kit tests the
/// contract of allocators (test_conformance.c).

#include "support/suite.h"

#include <string.h>
#include <unistd.h>

#include "runtime/alloc/adaptors/arena.h"
#include "runtime/alloc/allocator.h"
#include "runtime/base/atomics.h"
#include "runtime/policy/policy_table.h"
#include "support/allocators/counting.h"
#include "support/allocators/failing.h"
#include "support/chance.h"
#include "support/child.h"
#include "support/crew.h"

#define CHUNK MEMRT__ARENA_CHUNK_MIN
#define MOST (CHUNK / 8) /* largest block in a chunk */
#define FIRST 64         /* offset of the first block */

static memrt_allocator_t arena, upstream;

static void make_over(const memrt_allocator_t *bottom)
{
    ck_assert_int_eq(counting_new(bottom, &upstream), MEMRT_OK);
    ck_assert_int_eq(memrt__arena_new(&upstream, CHUNK, &arena), MEMRT_OK);
}

static void make(void)
{
    make_over(&memrt__system_allocator);
}

static void destroy(void)
{
    memrt__allocator_destroy(&arena);
}

static void *allocate(size_t size)
{
    return memrt__allocator_alloc(&arena, size, 16, false);
}

static void *resize(void *ptr, size_t old_size, size_t new_size)
{
    return memrt__allocator_realloc(&arena, ptr, old_size, new_size, 16);
}

static void release(void *ptr, size_t size)
{
    memrt__allocator_free(&arena, ptr, size, 16);
}

static size_t count_chunks(void)
{
    counts_t counts = counting_read(&upstream);
    return counts.allocs - counts.frees;
}

TEST(blocks_lie_one_behind_the_other)
{
    make();
    char *a = allocate(100), *b = allocate(1), *c = memrt__allocator_alloc(&arena, 32, 512, true);
    ck_assert_uint_eq((uintptr_t)a % CHUNK, FIRST);
    ck_assert_ptr_eq(b, a + 112);
    ck_assert_ptr_eq(c, a - FIRST + 512);
    ck_assert_ptr_eq(allocate(5), c + 32);
    ck_assert_uint_eq(count_chunks(), 1);
    destroy();
}

TEST(newest_block_gives_its_bytes_back)
{
    make();
    char *a = allocate(100), *b = allocate(100);
    release(b, 100);
    ck_assert_ptr_eq(allocate(50), b);
    release(a, 100);
    ck_assert_ptr_eq(allocate(50), b + 64);
    destroy();
}

TEST(free_of_last_block_empties_the_chunk)
{
    make();
    char *a = allocate(100), *b = allocate(200), *c = allocate(300);
    release(a, 100);
    release(c, 300);
    ck_assert_ptr_eq(allocate(300), c);
    release(b, 200);
    release(c, 300);
    ck_assert_ptr_eq(allocate(300), a);
    destroy();
}

TEST(newest_block_grows_in_place)
{
    make();
    char *a = allocate(100), *b = allocate(100);
    ck_assert_ptr_eq(resize(b, 100, 5000), b);
    ck_assert_ptr_eq(resize(b, 5000, 200), b);
    ck_assert_ptr_eq(allocate(10), b + 208);
    ck_assert_ptr_eq(resize(a, 100, 10), a);
    memset(a, 7, 10);
    char *moved = resize(a, 10, 100);
    ck_assert_ptr_eq(moved, b + 208 + 16);
    ck_assert_int_eq(moved[9], 7);
    destroy();
}

TEST(block_that_does_not_fit_at_the_end_of_a_chunk_moves)
{
    make();
    allocate(MOST - FIRST);
    for (int i = 0; i < 6; i++) {
        allocate(MOST);
    }
    allocate(MOST - 112);
    char *end = allocate(100);
    ck_assert_uint_eq((uintptr_t)end % CHUNK, CHUNK - 112);
    ck_assert_ptr_eq(resize(end, 100, 112), end);
    ck_assert_uint_eq(count_chunks(), 1);
    char *moved = resize(end, 112, 113);
    ck_assert_uint_eq((uintptr_t)moved % CHUNK, FIRST);
    ck_assert_uint_eq(count_chunks(), 2);
    ck_assert_ptr_eq(allocate(100), moved + 128);
    destroy();
}

TEST(large_blocks_come_from_the_upstream)
{
    make();
    void *large = allocate(MOST + 1), *aligned = memrt__allocator_alloc(&arena, 1, CHUNK / 4, true);
    ck_assert_uint_eq(counting_read(&upstream).bytes, MOST + 2);
    large = resize(large, MOST + 1, 3 * MOST);
    ck_assert_uint_eq(counting_read(&upstream).reallocs, 1);
    memset(large, 7, 3 * MOST);
    large = resize(large, 3 * MOST, MOST);
    ck_assert_uint_eq(counting_read(&upstream).bytes, CHUNK + 1);
    large = resize(large, MOST, MOST + 1);
    ck_assert_int_eq(((char *)large)[MOST - 1], 7);
    release(large, MOST + 1);
    memrt__allocator_free(&arena, aligned, 1, CHUNK / 4);
    ck_assert_uint_eq(counting_read(&upstream).bytes, CHUNK);
    destroy();
}

/// Blocks of a size that fill a chunk, in `count` chunks.
#define PER_CHUNK 7
static void *pinned[80 * PER_CHUNK];

static void fill_chunks(size_t count)
{
    for (size_t i = 0; i < count * PER_CHUNK; i++) {
        pinned[i] = allocate(MOST);
        ck_assert_ptr_nonnull(pinned[i]);
    }
}

static void free_chunks(size_t first, size_t count)
{
    for (size_t i = first * PER_CHUNK; i < (first + count) * PER_CHUNK; i++) {
        release(pinned[i], MOST);
    }
}

TEST(empty_chunks_serve_before_new_chunks)
{
    make();
    fill_chunks(3);
    ck_assert_uint_eq(count_chunks(), 3);
    for (int round = 0; round < 5; round++) {
        free_chunks(0, 3);
        fill_chunks(3);
    }
    ck_assert_uint_eq(count_chunks(), 3);
    free_chunks(0, 2);
    for (int i = 0; i < 2 * PER_CHUNK; i++) {
        allocate(MOST);
    }
    ck_assert_uint_eq(count_chunks(), 3);
    destroy();
}

/// A search reads 32 records, and 70 chunks with live blocks lie behind the current chunk.
TEST(searches_reach_empty_chunks_behind_many_full_chunks)
{
    make();
    fill_chunks(80);
    free_chunks(75, 5);
    for (int round = 0; round < 50; round++) {
        void *blocks[5 * PER_CHUNK];
        for (int i = 0; i < 5 * PER_CHUNK; i++) {
            blocks[i] = allocate(MOST);
        }
        for (int i = 0; i < 5 * PER_CHUNK; i++) {
            release(blocks[i], MOST);
        }
    }
    ck_assert_uint_le(count_chunks(), 84);
    destroy();
}

TEST(release_unused_returns_empty_chunks)
{
    make();
    memrt_allocator_usage_t usage;
    fill_chunks(4);
    arena.usage(arena.ctx, &usage);
    ck_assert_uint_eq(usage.cached, 0);
    free_chunks(0, 2);
    arena.usage(arena.ctx, &usage);
    ck_assert_uint_eq(usage.cached, 2 * CHUNK);
    ck_assert_uint_eq(memrt__allocator_release_unused(&arena), 2 * CHUNK);
    ck_assert_uint_eq(count_chunks(), 2);
    ck_assert_uint_eq(memrt__allocator_release_unused(&arena), 0);
    fill_chunks(2);
    ck_assert_uint_eq(count_chunks(), 4);
    destroy();
}

TEST(usage_of_the_shared_heap_is_not_the_usage_of_an_arena)
{
    memrt_allocator_usage_t usage;
    ck_assert_int_eq(memrt__arena_new(&memrt__heap_allocator, 0, &arena), MEMRT_OK);
    release(allocate(100), 100);
    arena.usage(arena.ctx, &usage);
    ck_assert_uint_eq(usage.cached, MEMRT__ARENA_CHUNK);
    ck_assert(memrt__is_arena(&arena) && !memrt__is_arena(&memrt__heap_allocator));
    ck_assert_ptr_eq(memrt__arena_upstream(&arena)->alloc, memrt__heap_allocator.alloc);
    destroy();
}

TEST(refused_requests_change_nothing)
{
    memrt_allocator_t failing;
    ck_assert_int_eq(failing_new(&memrt__system_allocator, &failing), MEMRT_OK);
    make_over(&failing);
    failing_at(&failing, 1);
    ck_assert_ptr_null(allocate(100));
    fill_chunks(1);
    failing_at(&failing, 1);
    ck_assert_ptr_null(allocate(MOST));
    suite_fail_request(1); /* the record of the second chunk */
    ck_assert_ptr_null(memrt__allocator_alloc(&arena, MOST, 16, true));
    suite_allow_requests();
    ck_assert_uint_eq(count_chunks(), 1);
    failing_at(&failing, 1);
    ck_assert_ptr_null(resize(pinned[0], MOST, MOST + 1));
    failing_at(&failing, 0);
    ck_assert_ptr_nonnull(allocate(MOST));
    ck_assert_uint_eq(count_chunks(), 2);
    destroy();
}

TEST(creation_reports_missing_memory_and_bad_tables)
{
    static const memrt_allocator_t empty = {.struct_size = sizeof(empty)};
    suite_fail_request(1);
    memrt_status_t refused = memrt__arena_new(&memrt__system_allocator, CHUNK, &arena);
    suite_allow_requests();
    ck_assert_int_eq(refused, MEMRT_ENOMEM);
    ck_assert_int_eq(memrt__arena_new(&empty, CHUNK, &arena), MEMRT_EINVAL);
}

#define THREADS 4
#define SHELVES 64
#define STEPS 20000

/// Blocks that any thread may take, check and free. Each block has its size in all of its words.
static size_t shelves[SHELVES];

static size_t *make_filled(chance_t *chance)
{
    size_t words = 1 + chance_below(chance, chance_below(chance, 50) == 0 ? MOST / 8 : 40);
    size_t *block = allocate(words * sizeof(size_t));
    REQUIRE(block != NULL);
    for (size_t i = 0; i < words; i++) {
        block[i] = words;
    }
    return block;
}

static void check_and_free(size_t *block)
{
    size_t words = block[0];
    for (size_t i = 0; i < words; i++) {
        REQUIRE(block[i] == words);
    }
    release(block, words * sizeof(size_t));
}

static void exchange_blocks(size_t index, void *context)
{
    chance_t chance = chance_from(index + 1);
    (void)context;
    for (size_t step = 0; step < STEPS; step++) {
        size_t *shelf = &shelves[chance_below(&chance, SHELVES)];
        size_t found = memrt__load_acquire(shelf);
        if (found != 0 && memrt__cas_acquire(shelf, found, 0)) {
            check_and_free((size_t *)found);
        }
        size_t *block = make_filled(&chance);
        if (!memrt__cas_release(shelf, 0, (size_t)block)) {
            check_and_free(block);
        }
        if (step % 1000 == 0) {
            memrt__allocator_release_unused(&arena);
        }
    }
}

TEST(threads_exchange_blocks_of_one_arena)
{
    make_over(&memrt__heap_allocator);
    crew_run(THREADS, exchange_blocks, NULL);
    for (size_t i = 0; i < SHELVES; i++) {
        if (shelves[i] != 0) {
            check_and_free((size_t *)shelves[i]);
        }
    }
    memrt__allocator_release_unused(&arena);
    ck_assert_uint_eq(count_chunks(), 0);
    destroy();
}

static void use_in_child(void *context)
{
    char *inherited = context;
    char *own = allocate(100);
    REQUIRE(own == inherited + 112 && inherited[99] == 7);
    release(own, 100);
    release(inherited, 100);
    REQUIRE(allocate(100) == inherited);
    destroy();
}

TEST(child_uses_inherited_blocks)
{
    make();
    char *block = allocate(100);
    memset(block, 7, 100);
    child_expect_success(use_in_child, block);
    ck_assert_int_eq(block[99], 7);
    destroy();
}

static memrt_policy_t *make_policy(void)
{
    memrt_policy_t *policy;
    memrt_policy_options_t options = {
        .struct_size = sizeof(options), .name = "arena", .allocator = &arena};
    ck_assert_int_eq(memrt__arena_new(&memrt__heap_allocator, CHUNK, &arena), MEMRT_OK);
    ck_assert_int_eq(api->policy_new(&options, &policy), MEMRT_OK);
    return policy;
}

TEST(block_outlives_the_references_to_its_policy)
{
    memrt_policy_t *policy = make_policy();
    char *first = api->block_alloc(policy, 1000), *second = api->block_calloc(policy, 10, 100);
    memset(first, 7, 1000);
    api->block_free(policy, second, 1000);
    api->policy_release(policy);
    api->release_unused();
    ck_assert_int_eq(first[999], 7);
    api->block_free(NULL, first, 1000);
    api->release_unused();
}

TEST(chunks_over_the_heap_count_once_in_the_memory_of_the_process)
{
    memrt_policy_t *policy = make_policy();
    memrt_memory_stats_t before = {.struct_size = sizeof(before)}, now = before;
    ck_assert_int_eq(api->memory_stats(&before), MEMRT_OK);
    void *block = api->block_alloc(policy, 1000);
    ck_assert_int_eq(api->memory_stats(&now), MEMRT_OK);
    api->block_free(policy, block, 1000);
    api->policy_release(policy);
    if (!memrt__options.check) {
        ck_assert_uint_eq(now.outside, before.outside);
    }
}

#if MEMRT_DEBUG

TEST(arena_with_a_damaged_chunk_is_not_valid)
{
    make();
    char *block = allocate(100);
    char *lead = block - FIRST;
    ck_assert(memrt__arena_is_valid(&arena));
    lead[3] ^= 1;
    ck_assert(!memrt__arena_is_valid(&arena));
    lead[3] ^= 1;
    ck_assert(memrt__arena_is_valid(&arena));
    memrt__allocator_release_unused(&arena);
    release(block, 100);
    memrt__allocator_release_unused(&arena);
    ck_assert(memrt__arena_is_valid(&arena));
    destroy();
}

#endif
