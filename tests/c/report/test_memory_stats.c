#include "support/suite.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/alloc/allocator.h"
#include "runtime/alloc/heap/heap.h"
#include "runtime/alloc/heap/size_class.h"
#include "runtime/alloc/heap/span.h"
#include "runtime/base/slow_path.h"
#include "runtime/os/os.h"
#include "runtime/policy/policy_table.h"
#include "support/child.h"
#include "support/crew.h"
#include "support/kernel.h"

enum { BLOCKS = 500, CREW = 4, ROUNDS = 300 };
#define MIB ((size_t)1 << 20)

static void expect_order(const memrt_memory_stats_t *now)
{
    REQUIRE(now->requested <= now->allocated);
    REQUIRE(now->allocated <= now->active);
    REQUIRE(now->active <= now->mapped);
    REQUIRE(now->outside <= now->allocated);
    REQUIRE(now->mapped == now->active + now->cached + now->tables);
    REQUIRE(now->metadata == now->tables + now->records);
}

static memrt_memory_stats_t read_stats(void)
{
    memrt_memory_stats_t now = {.struct_size = sizeof(now)};
    REQUIRE(api->memory_stats(&now) == MEMRT_OK);
    expect_order(&now);
    return now;
}

/// Return whether blocks of the default policy come straight from the heap, and are counted.
static bool has_heap(void)
{
    return MEMRT_COUNTERS && memrt__is_heap(&memrt__default_policy.allocator);
}

static void allocate_blocks(memrt_policy_t *policy, void **blocks, size_t size)
{
    for (size_t i = 0; i < BLOCKS; i++) {
        REQUIRE((blocks[i] = api->block_alloc(policy, size)) != NULL);
    }
}

static void free_blocks(memrt_policy_t *policy, void **blocks, size_t size)
{
    for (size_t i = 0; i < BLOCKS; i++) {
        api->block_free(policy, blocks[i], size);
    }
}

/// Make a policy with 64 bytes of alignment, so that no block is tiny.
static memrt_policy_t *make_policy(const memrt_allocator_t *allocator)
{
    memrt_policy_options_t options = {
        .struct_size = sizeof(options), .alignment = 64, .allocator = allocator};
    memrt_policy_t *policy;
    REQUIRE(api->policy_new(&options, &policy) == MEMRT_OK);
    return policy;
}

/// Sizes of data, and bytes of their size class.
static const struct {
    size_t size, class;
} rounded[] = {{100, 128}, {1000, 1024}, {1100, 1152}, {40000, 40960}, {MIB, MIB}};

TEST_EACH(live_blocks_count_with_header_and_size_class, sizeof(rounded) / sizeof(rounded[0]))
{
    static void *blocks[BLOCKS];
    size_t size = rounded[index].size;
    memrt_policy_t *policy = make_policy(NULL);
    memrt_memory_stats_t before = read_stats();
    allocate_blocks(policy, blocks, size);
    memrt_memory_stats_t now = read_stats();
    free_blocks(policy, blocks, size);
    memrt_memory_stats_t after = read_stats();
    api->policy_release(policy);
    if (has_heap()) {
        ck_assert_uint_eq(now.requested - before.requested, BLOCKS * size);
        ck_assert_uint_eq(now.headers - before.headers, BLOCKS * MEMRT_HEADER_SIZE);
        ck_assert_uint_eq(now.allocated - before.allocated,
                          BLOCKS * (MEMRT_HEADER_SIZE + rounded[index].class));
        ck_assert_uint_eq(now.outside, before.outside);
        ck_assert_uint_eq(after.allocated, before.allocated);
    }
    ck_assert_uint_eq(after.requested, before.requested);
    ck_assert_uint_eq(after.headers, before.headers);
}

TEST(tiny_blocks_count_with_their_small_header)
{
    static void *blocks[BLOCKS];
    void *first = api->block_alloc(NULL, 16); /* on the slow path, with a whole header */
    memrt_memory_stats_t before = read_stats();
    allocate_blocks(NULL, blocks, 16);
    memrt_memory_stats_t now = read_stats();
    free_blocks(NULL, blocks, 16);
    api->block_free(NULL, first, 16);
    if (has_heap() && memrt__default_policy.tiny && !memrt__is_observed()) {
        ck_assert_uint_eq(now.headers - before.headers, BLOCKS * MEMRT__TINY_HEADER);
        ck_assert_uint_eq(now.allocated - before.allocated, BLOCKS * 32);
    }
}

/// Make a policy over a placed allocator.
static memrt_policy_t *make_placed(const char *pages)
{
    memrt_placement_options_t options = {.struct_size = sizeof(options), .pages = pages};
    memrt_allocator_t placed;
    REQUIRE(api->allocator_placed(&options, &placed, NULL, 0) == MEMRT_OK);
    return make_policy(&placed);
}

/// Kinds of pages: from the pool, demanded transparent pages, small pages.
TEST_EACH(huge_pages_count_as_asked_and_got, 3)
{
    static const char *const pages[] = {"2M!", "thp!", "4K"};
    kernel_pretend_pool();
    memrt_policy_t *policy = make_placed(pages[index]);
    memrt_memory_stats_t before = read_stats();
    char *block = api->block_alloc(policy, 5 * MIB);
    memrt_memory_stats_t now = read_stats();
    if (block != NULL) { /* the system may lack huge pages */
        size_t huge = index == 2 ? 0 : 6 * MIB;
        ck_assert_uint_eq(now.huge_asked - before.huge_asked, huge);
        ck_assert(now.huge_got == UINT64_MAX || now.huge_got - before.huge_got == huge);
        kernel_refuse(KERNEL_SCAN, 0, SIZE_MAX);
        ck_assert(index != 1 || read_stats().huge_got == UINT64_MAX);
        kernel_obey();
        kernel_refuse(KERNEL_OPEN, 0, SIZE_MAX);
        memrt_memory_stats_t blind = read_stats();
        kernel_obey();
        ck_assert(index != 1 || blind.huge_got == UINT64_MAX);
        ck_assert(blind.huge_asked != 0 || blind.huge_got == 0);
        api->block_free(policy, block, 5 * MIB);
    }
    api->policy_release(policy);
}

TEST(small_mapping_has_no_whole_huge_page)
{
    memrt_policy_t *policy = make_placed("2M,4K");
    memrt_memory_stats_t before = read_stats();
    char *block = api->block_alloc(policy, 10);
    REQUIRE(block != NULL);
    ck_assert_uint_eq(read_stats().huge_asked, before.huge_asked);
    api->block_free(policy, block, 10);
    api->policy_release(policy);
}

TEST(large_block_counts_with_its_mapping_until_freed)
{
    size_t size = 9 * MIB + 1;
    memrt_memory_stats_t before = read_stats();
    char *block = api->block_alloc(NULL, size);
    REQUIRE(block != NULL);
    memrt_memory_stats_t fresh = read_stats();
    memset(block, 1, size);
    memrt_memory_stats_t written = read_stats();
    api->block_free(NULL, block, size);
    memrt_memory_stats_t after = read_stats();
    if (has_heap()) {
        size_t bytes = fresh.allocated - before.allocated;
        ck_assert_uint_ge(bytes, size + MEMRT_HEADER_SIZE);
        ck_assert_uint_le(bytes, size + size / 8 + 2 * memrt__os_page_size());
        ck_assert_uint_eq(bytes % memrt__os_page_size(), 0);
        ck_assert_uint_eq(fresh.active - before.active, bytes);
        ck_assert_uint_eq(after.allocated, before.allocated);
        ck_assert_uint_eq(after.active, before.active);
        ck_assert_uint_ge(written.resident - before.resident, size);
    }
    if (has_heap() && suite_measures_memory()) {
        ck_assert_uint_ge(written.resident - fresh.resident, size - 2 * MEMRT__HUGE_PAGE);
        ck_assert_uint_le(written.resident - fresh.resident, size + 2 * MEMRT__HUGE_PAGE);
    }
}

TEST(freed_large_block_counts_as_cached)
{
    suite_set_decay(MEMRT__DECAY_NEVER);
    (void)api->release_unused();
    size_t size = 5 * MIB;
    memrt_memory_stats_t before = read_stats();
    void *block = api->block_alloc(NULL, size);
    REQUIRE(block != NULL);
    memrt_memory_stats_t live = read_stats();
    api->block_free(NULL, block, size);
    memrt_memory_stats_t freed = read_stats();
    if (has_heap()) {
        ck_assert_uint_eq(freed.cached - before.cached, live.active - before.active);
        ck_assert_uint_eq(freed.mapped, live.mapped);
        (void)api->release_unused();
        ck_assert_uint_eq(read_stats().cached, before.cached);
    }
}

/// Units given back to the system stay part of their segment as addresses.
TEST(purged_units_of_a_used_segment_are_retained)
{
    enum { SIZE = 60000 };
    static void *blocks[BLOCKS];
    allocate_blocks(NULL, blocks, SIZE);
    for (size_t i = 0; i < BLOCKS; i++) {
        memset(blocks[i], 1, SIZE);
    }
    memrt_memory_stats_t full = read_stats();
    for (size_t i = 0; i < BLOCKS; i++) {
        if (i % 50 != 0) {
            api->block_free(NULL, blocks[i], SIZE);
        }
    }
    (void)api->release_unused();
    memrt_memory_stats_t sparse = read_stats();
    if (has_heap()) {
        size_t segments = BLOCKS * SIZE / MEMRT__SEGMENT;
        ck_assert_uint_ge(sparse.retained - full.retained, (segments - 2) * MEMRT__SEGMENT / 2);
        ck_assert_uint_le(sparse.resident, full.resident - BLOCKS / 2 * SIZE);
    }
    for (size_t i = 0; i < BLOCKS; i += 50) {
        api->block_free(NULL, blocks[i], SIZE);
    }
}

/// Allocators whose blocks are outside of the heap, by index.
static const memrt_allocator_t *get_outside_allocator(int index, memrt_allocator_t *guard)
{
    if (index == 2) {
        REQUIRE(api->allocator_guard(&memrt__system_allocator, guard) == MEMRT_OK);
        return guard;
    }
    return index == 0 ? &memrt__system_allocator : &memrt__mapped_allocator;
}

TEST_EACH(blocks_of_other_allocators_count_as_outside, 3)
{
    static void *blocks[BLOCKS];
    memrt_allocator_t guard;
    memrt_policy_t *policy = make_policy(get_outside_allocator(index, &guard));
    memrt_memory_stats_t before = read_stats();
    allocate_blocks(policy, blocks, 1000);
    memrt_memory_stats_t now = read_stats();
    free_blocks(policy, blocks, 1000);
    ck_assert_uint_eq(read_stats().outside, before.outside);
    api->policy_release(policy);
    if (MEMRT_COUNTERS) {
        ck_assert_uint_eq(now.outside - before.outside, BLOCKS * (1000 + MEMRT_HEADER_SIZE));
        ck_assert_uint_eq(now.allocated - before.allocated, now.outside - before.outside);
        ck_assert_uint_eq(now.mapped - now.outside - now.tables,
                          before.mapped - before.outside - before.tables);
    }
}

/// Redzones, and blocks in the quarantine, are blocks of the heap.
TEST(guard_over_the_heap_counts_as_blocks_of_the_heap)
{
    static void *blocks[BLOCKS];
    memrt_allocator_t guard;
    REQUIRE(api->allocator_guard(&memrt__heap_allocator, &guard) == MEMRT_OK);
    memrt_policy_t *policy = make_policy(&guard);
    memrt_memory_stats_t before = read_stats();
    allocate_blocks(policy, blocks, 1000);
    memrt_memory_stats_t now = read_stats();
    free_blocks(policy, blocks, 1000);
    memrt_memory_stats_t quarantined = read_stats();
    api->policy_release(policy);
    ck_assert_uint_eq(now.outside, before.outside);
    ck_assert_uint_ge(now.allocated - before.allocated, BLOCKS * 1100);
    ck_assert_uint_gt(quarantined.allocated, before.allocated);
}

static void *allocate_from_malloc(size_t size, void *opaque)
{
    (void)opaque;
    return malloc(size);
}

static void *reallocate_from_malloc(void *ptr, size_t size, void *opaque)
{
    (void)opaque;
    return realloc(ptr, size);
}

static void free_to_malloc(void *ptr, void *opaque)
{
    (void)opaque;
    free(ptr);
}

TEST(blocks_of_external_allocators_count_as_outside)
{
    memrt_external_allocator_t external = {allocate_from_malloc, reallocate_from_malloc,
                                           free_to_malloc, NULL};
    memrt_memory_stats_t before = read_stats();
    memrt_meminfo_t *mi = api->allocate_external(5000, &external);
    REQUIRE(mi != NULL);
    memrt_memory_stats_t now = read_stats();
    api->release(mi);
    ck_assert_uint_ge(now.outside - before.outside, 5000 + MEMRT_HEADER_SIZE);
    ck_assert_uint_eq(read_stats().outside, before.outside);
}

TEST(policies_scopes_and_listed_blocks_grow_the_records)
{
    memrt_memory_stats_t before = read_stats();
    memrt_policy_t *policy = make_policy(NULL);
    memrt_memory_stats_t with_policy = read_stats();
    ck_assert_uint_eq(with_policy.records - before.records, sizeof(*policy));
    api->policy_release(policy);
    memrt_scope_t *scope;
    REQUIRE(api->scope_open(NULL, "memory stats", &scope) == MEMRT_OK);
    ck_assert_uint_ge(read_stats().records, before.records);
    api->scope_release(scope);
    static void *blocks[BLOCKS];
    bool was_tracking = api->tracking(1) != 0;
    allocate_blocks(NULL, blocks, 100);
    ck_assert_uint_gt(read_stats().records, before.records);
    api->tracking(was_tracking);
    free_blocks(NULL, blocks, 100);
}

static void allocate_and_read(size_t index, void *context)
{
    (void)context;
    for (size_t i = 0; i < ROUNDS; i++) {
        size_t size = (i * 977 + index * 131) % 100000 + (i % 50 == 0 ? 2 * MIB : 0);
        void *block = api->block_alloc(NULL, size);
        REQUIRE(block != NULL);
        if (i % 10 == index) {
            (void)read_stats();
        }
        api->block_free(NULL, block, size);
    }
}

TEST(order_of_figures_holds_while_threads_allocate)
{
    crew_run(CREW, allocate_and_read, NULL);
    (void)read_stats();
}

static void read_in_child(void *block)
{
    memrt_memory_stats_t now = read_stats();
    REQUIRE(!MEMRT_COUNTERS || now.requested >= 3 * MIB);
    api->block_free(NULL, block, 3 * MIB);
    REQUIRE(!MEMRT_COUNTERS || read_stats().requested == now.requested - 3 * MIB);
}

TEST(forked_child_counts_inherited_blocks)
{
    void *block = api->block_alloc(NULL, 3 * MIB);
    REQUIRE(block != NULL);
    child_expect_success(read_in_child, block);
    api->block_free(NULL, block, 3 * MIB);
}

TEST(short_struct_gets_its_members_alone)
{
    memrt_memory_stats_t out = {.struct_size = offsetof(memrt_memory_stats_t, headers),
                                .headers = 7};
    ck_assert_int_eq(api->memory_stats(&out), MEMRT_OK);
    ck_assert_uint_eq(out.headers, 7);
    out.struct_size = 0;
    ck_assert_int_eq(api->memory_stats(&out), MEMRT_EINVAL);
}
