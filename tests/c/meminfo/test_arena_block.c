/// Tests of blocks in arenas: the short way of an allocation and a free, and the blocks without it.

#include "support/suite.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/alloc/adaptors/arena.h"
#include "runtime/policy/policy.h"
#include "support/crew.h"

static memrt_policy_t *create_arena_over(const memrt_allocator_t *upstream, size_t alignment)
{
    memrt_adaptor_options_t options = {.struct_size = sizeof(options), .kind = MEMRT_ADAPTOR_ARENA};
    memrt_allocator_t arena;
    memrt_policy_t *policy;
    ck_assert_int_eq(api->allocator_adaptor(upstream, &options, &arena), MEMRT_OK);
    memrt_policy_options_t policy_options = {.struct_size = sizeof(policy_options),
                                             .name = "arena",
                                             .alignment = alignment,
                                             .allocator = &arena};
    ck_assert_int_eq(api->policy_new(&policy_options, &policy), MEMRT_OK);
    return policy;
}

static memrt_policy_t *create_arena(size_t alignment)
{
    return create_arena_over(api->allocator_default(), alignment);
}

static memrt_stats_t read_stats(const memrt_policy_t *policy)
{
    memrt_stats_t stats = {.struct_size = sizeof(stats)};
    ck_assert_int_eq(api->stats_read(policy, &stats), MEMRT_OK);
    return stats;
}

static void end_policy(memrt_policy_t *policy)
{
    memrt_stats_t stats = read_stats(policy);
    ck_assert_uint_eq(stats.live, 0);
    ck_assert_uint_eq(stats.alloc, stats.free);
    ck_assert_uint_eq(stats.mi_alloc, stats.mi_free);
    ck_assert_uint_eq(stats.reserved, stats.cached);
#if MEMRT_DEBUG
    ck_assert(!memrt__is_arena(&policy->allocator) || memrt__arena_is_valid(&policy->allocator));
#endif
    api->policy_release(policy);
}

static void expect_live(const memrt_policy_t *policy, size_t blocks, size_t bytes, size_t meminfos)
{
    memrt_stats_t stats = read_stats(policy);
    ck_assert_uint_eq(stats.alloc - stats.free, blocks);
    ck_assert_uint_eq(stats.live, bytes);
    ck_assert_uint_eq(stats.mi_alloc - stats.mi_free, meminfos);
}

TEST(first_request_of_a_thread_may_be_a_meminfo)
{
    memrt_policy_t *policy = create_arena(64);
    memrt_new_options_t options = {.struct_size = sizeof(options), .policy = policy};
    memrt_meminfo_t *mi;
    ck_assert_int_eq(api->meminfo_new(200, &options, &mi), MEMRT_OK);
    expect_live(policy, 1, 200, 1);
    api->release(mi);
    end_policy(policy);
}

TEST_EACH(sizes_are_counted_and_aligned, 4)
{
    static const size_t alignments[] = {64, 16, 128, 4096};
    static const size_t sizes[] = {0, 1, 64, 200, 5000, 200000, 3 << 20};
    enum { SIZES = sizeof(sizes) / sizeof(sizes[0]) };
    memrt_policy_t *policy = create_arena(alignments[index]);
    unsigned char *blocks[SIZES];
    size_t bytes = 0;
    for (size_t i = 0; i < SIZES; i++) {
        blocks[i] = api->block_alloc(policy, sizes[i]);
        ck_assert_uint_eq(((size_t)blocks[i] - (alignments[index] == 16 ? 16 : 0)) % 64, 0);
        ck_assert_uint_eq(alignments[index] > 64 ? (size_t)blocks[i] % alignments[index] : 0, 0);
        memset(blocks[i], (int)i + 1, sizes[i]);
        bytes += sizes[i];
    }
    expect_live(policy, SIZES, bytes, 0);
    for (size_t i = 0; i < SIZES; i++) {
        for (size_t k = 0; k < sizes[i]; k++) {
            REQUIRE(blocks[i][k] == i + 1);
        }
        api->block_free(policy, blocks[i], sizes[i]);
    }
    end_policy(policy);
}

static size_t ends;

static void count_end(void *data, size_t size, void *info)
{
    (void)data;
    ck_assert_uint_eq(size, 100);
    ck_assert_ptr_eq(info, &ends);
    ends++;
}

TEST(meminfos_of_an_arena_are_counted)
{
    memrt_policy_t *policy = create_arena(64);
    memrt_new_options_t options = {.struct_size = sizeof(options),
                                   .policy = policy,
                                   .dtor = count_end,
                                   .dtor_info = &ends,
                                   .zeroed = 1};
    memrt_meminfo_t *mi, *promoted;
    ck_assert_int_eq(api->meminfo_new(100, &options, &mi), MEMRT_OK);
    ck_assert_int_eq(((char *)api->get_data(mi))[99], 0);
    memrt_meminfo_t *plain = api->allocate_from(50, policy);
    expect_live(policy, 2, 150, 2);
    void *block = api->block_alloc(policy, 300);
    ck_assert_int_eq(api->block_meminfo(block, &promoted), MEMRT_OK);
    expect_live(policy, 3, 450, 3);
    api->block_free(NULL, block, 300);
    expect_live(policy, 3, 450, 3);
    api->release(promoted);
    api->release(plain);
    expect_live(policy, 1, 100, 1);
    api->release(mi);
    ck_assert_uint_eq(ends, 1);
    end_policy(policy);
}

TEST(resized_and_resizable_data_keeps_content)
{
    memrt_policy_t *policy = create_arena(64);
    memrt_new_options_t options = {.struct_size = sizeof(options), .policy = policy};
    memrt_meminfo_t *mi;
    char *block = api->block_alloc(policy, 100);
    memset(block, 7, 100);
    block = api->block_realloc(policy, block, 70000);
    ck_assert_int_eq(block[99], 7);
    block = api->block_realloc(policy, block, 0);
    expect_live(policy, 1, 0, 0);
    block = api->block_realloc(policy, block, 10);
    api->block_free(policy, block, 10);
    ck_assert_int_eq(api->resizable_new(100, &options, &mi), MEMRT_OK);
    char *data = api->resizable_realloc(mi, 50000);
    ck_assert_ptr_nonnull(data);
    expect_live(policy, 2, 50000, 1);
    api->release(mi);
    end_policy(policy);
}

TEST(zeroed_block_in_reused_chunk_is_zero)
{
    memrt_policy_t *policy = create_arena(64);
    for (size_t round = 0; round < 3; round++) {
        unsigned char *block = api->block_calloc(policy, 10, 100);
        for (size_t k = 0; k < 1000; k++) {
            REQUIRE(block[k] == 0);
        }
        memset(block, 0xFF, 1000);
        api->block_free(policy, block, 1000);
    }
    end_policy(policy);
}

TEST(limit_refuses_blocks_of_an_arena)
{
    memrt_policy_t *policy = create_arena(64);
    ck_assert_int_eq(api->limit_set(policy, NULL, 1000), MEMRT_OK);
    void *block = api->block_alloc(policy, 900);
    ck_assert_ptr_nonnull(block);
    ck_assert_ptr_null(api->block_alloc(policy, 200));
    expect_live(policy, 1, 900, 0);
    ck_assert_uint_eq(read_stats(policy).failed, 1);
    void *small = api->block_alloc(policy, 100);
    ck_assert_ptr_nonnull(small);
    api->block_free(policy, small, 100);
    api->block_free(policy, block, 900);
    end_policy(policy);
}

TEST(arena_without_upstream_memory_counts_a_failure)
{
    memrt_policy_t *policy = create_arena(64);
    memrt_failure_plan_t plan = {.struct_size = sizeof(plan), .nth = 1, .every = 1};
    ck_assert_int_eq(api->fail_allocations(&plan), MEMRT_OK);
    ck_assert_ptr_null(api->block_alloc(policy, 100));
    ck_assert_int_eq(api->fail_allocations(NULL), MEMRT_OK);
    ck_assert_uint_eq(read_stats(policy).failed, 1);
    end_policy(policy);
}

TEST(tracked_and_named_blocks_leave_the_short_way)
{
    memrt_policy_t *policy = create_arena(64);
    memrt_tracking_t on = {.struct_size = sizeof(on), .on = 1}, before = on;
    void *early = api->block_alloc(policy, 100);
    memrt_meminfo_t *named = api->allocate_from(100, policy);
    ck_assert_int_eq(api->set_name(named, "named"), MEMRT_OK);
    ck_assert_int_eq(api->tracking_get(&before), MEMRT_OK);
    ck_assert_int_eq(api->tracking_set(&on), MEMRT_OK);
    void *tracked = api->block_alloc(policy, 100);
    ck_assert_int_eq(api->tracking_set(&before), MEMRT_OK);
    api->block_free(policy, tracked, 100);
    api->block_free(policy, early, 100);
    api->release(named);
    end_policy(policy);
}

static void *alloc_external(size_t size, void *context)
{
    (void)context;
    return malloc(size);
}

static void *realloc_external(void *ptr, size_t size, void *context)
{
    (void)context;
    return realloc(ptr, size);
}

static void free_external(void *ptr, void *context)
{
    (void)context;
    free(ptr);
}

TEST(blocks_of_another_layout_are_freed_by_it)
{
    static char foreign[10];
    memrt_external_allocator_t external = {
        .malloc = alloc_external, .realloc = realloc_external, .free = free_external};
    memrt_policy_t *policy = create_arena(64);
    memrt_new_options_t options = {.struct_size = sizeof(options), .policy = policy};
    memrt_meminfo_t *made[4];
    ck_assert_int_eq(api->resizable_new_reserved(100, 1 << 20, &options, &made[3]), MEMRT_OK);
    ck_assert_int_eq(api->meminfo_adopt(foreign, 10, &options, &made[0]), MEMRT_OK);
    options.alignment = 256;
    ck_assert_int_eq(api->meminfo_new(100, &options, &made[1]), MEMRT_OK);
    ck_assert_uint_eq((size_t)api->get_data(made[1]) % 256, 0);
    options.alignment = 0;
    options.external = &external;
    ck_assert_int_eq(api->meminfo_new(100, &options, &made[2]), MEMRT_OK);
    expect_live(policy, 5, 300, 4);
    for (size_t i = 0; i < 4; i++) {
        api->release(made[i]);
    }
    end_policy(policy);
}

static size_t upstream_room;

static void *alloc_upstream(void *ctx, size_t size, size_t align)
{
    (void)ctx;
    return upstream_room < size ? NULL : aligned_alloc(align, size);
}

static void free_upstream(void *ctx, void *ptr, size_t size, size_t align)
{
    (void)ctx;
    (void)size;
    (void)align;
    free(ptr);
}

TEST(failure_of_the_upstream_counts_once)
{
    const memrt_allocator_t upstream = {.struct_size = sizeof(upstream),
                                        .version = MEMRT_ALLOCATOR_VERSION,
                                        .name = "short",
                                        .alloc = alloc_upstream,
                                        .free = free_upstream};
    memrt_policy_t *policy = create_arena_over(&upstream, 64);
    upstream_room = SIZE_MAX;
    void *block = api->block_alloc(policy, 100);
    ck_assert_ptr_nonnull(block);
    upstream_room = 0;
    ck_assert_ptr_null(api->block_alloc(policy, 300000));
    ck_assert_uint_eq(read_stats(policy).failed, 1);
    expect_live(policy, 1, 100, 0);
    api->block_free(policy, block, 100);
    end_policy(policy);
}

enum { ROUNDS = 300, KEPT = 16 };

static void use_arena(size_t index, void *context)
{
    unsigned char *kept[KEPT] = {NULL};
    for (size_t round = 0; round < ROUNDS; round++) {
        size_t at = round % KEPT, size = 1 + (round * 37 + index * 11) % 3000;
        if (kept[at] != NULL) {
            REQUIRE(kept[at][0] == (unsigned char)(index + 1));
            api->block_free(context, kept[at], 0);
        }
        kept[at] = api->block_alloc(context, size);
        memset(kept[at], (int)index + 1, size);
    }
    for (size_t at = 0; at < KEPT; at++) {
        api->block_free(context, kept[at], 0);
    }
}

TEST(threads_share_an_arena)
{
    memrt_policy_t *policy = create_arena(64);
    crew_run(3, use_arena, policy);
    end_policy(policy);
}
