#include "support/suite.h"

#include <string.h>

#include "conformance/pattern.h"
#include "runtime/alloc/allocator.h"
#include "runtime/alloc/guard/guard.h"
#include "runtime/alloc/heap/large_cache.h"
#include "runtime/base/atomics.h"
#include "runtime/config/options.h"
#include "runtime/policy/policy.h"
#include "runtime/policy/policy_sweep.h"
#include "runtime/stats/retire.h"
#include "support/books.h"
#include "support/child.h"
#include "support/allocators/counting.h"
#include "support/crew.h"
#include "support/allocators/gate.h"
#include "support/allocators/hoarding.h"

static memrt_policy_t *create_policy_over(const memrt_allocator_t *allocator, const char *name)
{
    memrt_policy_options_t options = {
        .struct_size = sizeof(options), .name = name, .allocator = allocator};
    memrt_policy_t *policy;
    ck_assert_int_eq(api->policy_new(&options, &policy), MEMRT_OK);
    return policy;
}

TEST(policy_has_the_given_name_and_alignment)
{
    memrt_policy_options_t options = {
        .struct_size = sizeof(options), .name = "mine", .alignment = 4096};
    memrt_policy_t *policy;
    ck_assert_int_eq(api->policy_new(&options, &policy), MEMRT_OK);
    ck_assert_str_eq(api->policy_name(policy), "mine");
    ck_assert_uint_eq(api->policy_alignment(policy), 4096);
    void *data = api->block_alloc(policy, 10);
    ck_assert_uint_eq((uintptr_t)data % 4096, 0);
    api->block_free(policy, data, 10);
    api->policy_release(policy);
}

TEST(policy_has_default_name_and_minimum_alignment)
{
    memrt_policy_options_t options = {.struct_size = sizeof(options), .alignment = 1};
    memrt_policy_t *policy;
    ck_assert_int_eq(api->policy_new(&options, &policy), MEMRT_OK);
    ck_assert_str_eq(api->policy_name(policy), "policy");
    ck_assert_uint_eq(api->policy_alignment(policy), MEMRT_ALIGN_MIN);
    ck_assert_str_eq(api->policy_name(api->policy_default()), "default");
    ck_assert_uint_eq(api->policy_index(api->policy_default()), 0);
    api->policy_release(policy);
}

static const size_t bad_alignments[] = {3, (size_t)1 << 31, (size_t)PTRDIFF_MAX + 1, SIZE_MAX, 96};

TEST_EACH(policy_with_bad_alignment_is_refused, sizeof(bad_alignments) / sizeof(bad_alignments[0]))
{
    memrt_policy_options_t options = {.struct_size = sizeof(options),
                                      .alignment = bad_alignments[index]};
    memrt_policy_t *policy = (memrt_policy_t *)&options;
    ck_assert_int_eq(api->policy_new(&options, &policy), MEMRT_EINVAL);
    ck_assert_ptr_eq(policy, &options);
}

TEST(policy_with_bad_name_allocator_or_size_is_refused)
{
    char name[MEMRT_NAME_MAX + 2];
    memset(name, 'n', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    memrt_policy_options_t options = {.struct_size = sizeof(options), .name = name};
    memrt_policy_t *policy;
    ck_assert_int_eq(api->policy_new(&options, &policy), MEMRT_EINVAL);
    name[MEMRT_NAME_MAX] = '\0';
    ck_assert_int_eq(api->policy_new(&options, &policy), MEMRT_OK);
    ck_assert_str_eq(api->policy_name(policy), name);
    api->policy_release(policy);
    memrt_allocator_t bad = {.struct_size = sizeof(bad), .version = MEMRT_ALLOCATOR_VERSION};
    options.allocator = &bad;
    ck_assert_int_eq(api->policy_new(&options, &policy), MEMRT_EINVAL);
    options.struct_size = 3;
    ck_assert_int_eq(api->policy_new(&options, &policy), MEMRT_EINVAL);
}

TEST(policy_options_are_read_only_up_to_struct_size)
{
    memrt_policy_options_t options = {.struct_size = offsetof(memrt_policy_options_t, alignment),
                                      .name = "short",
                                      .alignment = 3};
    memrt_policy_t *policy;
    ck_assert_int_eq(api->policy_new(&options, &policy), MEMRT_OK);
    ck_assert_str_eq(api->policy_name(policy), "short");
    api->policy_release(policy);
}

static memrt_policy_options_t build_limits(const char *cache_limit, const char *decay,
                                           const char *hugepages)
{
    return (memrt_policy_options_t){.struct_size = sizeof(memrt_policy_options_t),
                                    .cache_limit = cache_limit,
                                    .decay = decay,
                                    .hugepages = hugepages};
}

TEST(policy_lists_only_the_options_of_its_own)
{
    memrt_policy_options_t options = build_limits("3M", NULL, "advise");
    memrt_policy_t *policy;
    memrt_option_t row;
    ck_assert_int_eq(api->policy_new(&options, &policy), MEMRT_OK);
    ck_assert_int_eq(api->policy_option(policy, 0, &row), 1);
    ck_assert_str_eq(row.name, "MEMRT_CACHE_LIMIT");
    ck_assert_str_eq(row.value, "3145728");
    ck_assert_int_eq(api->policy_option(policy, 1, &row), 1);
    ck_assert_str_eq(row.name, "MEMRT_HUGEPAGES");
    ck_assert_str_eq(row.value, "advise");
    ck_assert_int_eq(api->policy_option(policy, 2, &row), 0);
    ck_assert_int_eq(api->policy_option(api->policy_default(), 0, &row), 0);
    api->policy_release(policy);
}

TEST(policy_with_bad_limit_or_limits_on_allocator_is_refused)
{
    memrt_policy_options_t bad[] = {build_limits("much", NULL, NULL),
                                    build_limits(NULL, "-1", NULL), build_limits(NULL, NULL, "all"),
                                    build_limits("1", "", NULL), build_limits("1", NULL, NULL)};
    bad[4].allocator = &memrt__system_allocator;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        memrt_policy_t *policy = NULL;
        ck_assert_int_eq(api->policy_new(&bad[i], &policy), MEMRT_EINVAL);
        ck_assert_ptr_null(policy);
    }
}

/// Set an option of a policy; return the value in force in row 0, or "".
static const char *set_first_option(memrt_policy_t *policy, const char *name, const char *value)
{
    static memrt_option_t row;
    ck_assert_int_eq(api->policy_option_set(policy, name, value, NULL, 0), MEMRT_OK);
    return api->policy_option(policy, 0, &row) ? row.value : "";
}

TEST(option_of_live_policy_changes)
{
    memrt_policy_options_t options = build_limits(NULL, "70", NULL);
    memrt_policy_t *policy;
    ck_assert_int_eq(api->policy_new(&options, &policy), MEMRT_OK);
    ck_assert_str_eq(set_first_option(policy, "decay", "80"), "80");
    ck_assert_str_eq(set_first_option(policy, "MEMRT_DECAY", NULL), "");
    ck_assert_str_eq(set_first_option(policy, "cache_limit", "3M"), "3145728");
    ck_assert_str_eq(set_first_option(policy, "cache_limit", NULL), "");
    memrt_status_t status = api->policy_option_set(policy, "hugepages", "off", NULL, 0);
    ck_assert_int_eq(status, memrt__options.cache ? MEMRT_OK : MEMRT_ENOTSUP);
    api->policy_release(policy);
}

static void expect_refused(memrt_policy_t *policy, const char *name, const char *value,
                           memrt_status_t status, const char *part)
{
    char why[256] = "";
    ck_assert_int_eq(api->policy_option_set(policy, name, value, why, sizeof(why)), status);
    ck_assert_msg(strstr(why, part) != NULL, "%s", why);
}

TEST(bad_change_of_policy_option_is_refused_with_reason)
{
    memrt_policy_options_t options = build_limits(NULL, "70", NULL);
    memrt_policy_t *policy, *other = create_policy_over(&memrt__system_allocator, "other");
    memrt_option_t row;
    ck_assert_int_eq(api->policy_new(&options, &policy), MEMRT_OK);
    expect_refused(policy, "decay", "soon", MEMRT_EINVAL, "decay must be");
    expect_refused(policy, "alignment", "64", MEMRT_EINVAL, "got 'alignment'");
    expect_refused(policy, "nothing", NULL, MEMRT_EINVAL, "got 'nothing'");
    expect_refused(other, "decay", "5", MEMRT_ENOTSUP, "policy 'other' must have a cache");
    expect_refused(api->policy_default(), "decay", "5", MEMRT_ENOTSUP, "policy 'default' must");
    ck_assert_int_eq(api->policy_option(policy, 0, &row), 1);
    ck_assert_str_eq(row.value, "70");
    ck_assert_int_eq(api->policy_option(other, 0, &row), 0);
    api->policy_release(policy);
    api->policy_release(other);
}

TEST(huge_pages_of_policy_without_caches_are_fixed)
{
    memrt_policy_options_t options = build_limits(NULL, NULL, "off");
    bool cached = memrt__options.cache;
    memrt_policy_t *policy;
    memrt__options.cache = false;
    ck_assert_int_eq(api->policy_new(&options, &policy), MEMRT_OK);
    memrt__options.cache = cached;
    expect_refused(policy, "hugepages", "large", MEMRT_ENOTSUP, "process without caches");
    ck_assert_int_eq(api->policy_option_set(policy, "hugepages", "off", NULL, 0), MEMRT_OK);
    ck_assert_int_eq(api->policy_option_set(policy, "decay", "5", NULL, 0), MEMRT_OK);
    api->policy_release(policy);
}

TEST(policy_options_of_old_size_ignore_limits)
{
    memrt_policy_options_t options = build_limits("much", "much", "much");
    options.struct_size = offsetof(memrt_policy_options_t, cache_limit);
    memrt_policy_t *policy;
    memrt_option_t row;
    ck_assert_int_eq(api->policy_new(&options, &policy), MEMRT_OK);
    ck_assert_int_eq(api->policy_option(policy, 0, &row), 0);
    api->policy_release(policy);
}

TEST(allocator_is_destroyed_once_after_policy_and_blocks)
{
    counts_t counts = {0};
    memrt_allocator_t counting;
    ck_assert_int_eq(counting_new(memrt__default_allocator(), &counting), MEMRT_OK);
    counting_at_destroy(&counting, &counts);
    memrt_policy_t *policy = create_policy_over(&counting, "counted");
    void *data = api->block_alloc(policy, 100);
    api->policy_release(policy);
    api->release_unused();
    ck_assert_uint_eq(counts.destroys, 0);
    ck_assert_uint_eq(counting_read(&counting).frees, 0);
    api->block_free(NULL, data, 100);
    api->release_unused();
    ck_assert_uint_eq(counts.destroys, 1);
    ck_assert_uint_eq(counts.frees, counts.allocs);
}

TEST(block_is_freed_by_its_own_allocator_under_any_policy)
{
    counts_t counts[2];
    memrt_allocator_t counting[2];
    memrt_policy_t *policies[2];
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(counting_new(memrt__default_allocator(), &counting[i]), MEMRT_OK);
        counting_at_destroy(&counting[i], &counts[i]);
        policies[i] = create_policy_over(&counting[i], "counted");
    }
    void *a = api->block_alloc(policies[0], 100), *b = api->block_alloc(policies[1], 200);
    a = api->block_realloc(policies[1], a, 5000);
    api->block_free(policies[0], b, 0);
    api->block_free(policies[1], a, 0);
    for (int i = 0; i < 2; i++) {
        api->policy_release(policies[i]);
    }
    api->release_unused();
    for (int i = 0; i < 2; i++) {
        ck_assert_uint_eq(counts[i].bytes, 0);
        ck_assert_uint_eq(counts[i].frees, counts[i].allocs);
    }
}

TEST(released_policy_still_serves_its_live_blocks)
{
    memrt_policy_t *policy = create_policy_over(NULL, "zombie");
    memrt_meminfo_t *mi;
    memrt_new_options_t options = {.struct_size = sizeof(options), .policy = policy};
    ck_assert_int_eq(api->resizable_new(100, &options, &mi), MEMRT_OK);
    api->policy_release(policy);
    api->release_unused();
    ck_assert_ptr_nonnull(api->resizable_realloc(mi, 100000));
    ck_assert_str_eq(api->policy_name(api->policy_of(mi)), "zombie");
    ck_assert_uint_eq(stats_of(api->policy_of(mi)).live, 100000);
    api->release(mi);
}

TEST(policy_is_found_by_index_below_policy_limit)
{
    memrt_policy_t *policy = create_policy_over(NULL, "walked");
    memrt_policy_t *found = api->policy_at(api->policy_index(policy));
    ck_assert_ptr_eq(found, policy);
    api->policy_release(found);
    ck_assert_uint_gt(api->policy_limit(), api->policy_index(policy));
    ck_assert_ptr_null(api->policy_at(api->policy_limit()));
    ck_assert_ptr_null(api->policy_at(UINT32_MAX));
    api->policy_release(policy);
}

TEST(policy_at_revives_policy_that_has_live_blocks)
{
    memrt_policy_t *policy = create_policy_over(NULL, "revived");
    uint32_t number = api->policy_index(policy);
    void *data = api->block_alloc(policy, 100);
    api->policy_release(policy);
    ck_assert_ptr_eq(api->policy_at(number), policy);
    api->block_free(policy, data, 100);
    data = api->block_alloc(policy, 3000000);
    ck_assert_ptr_nonnull(data);
    ck_assert_uint_eq(stats_of(policy).live, 3000000);
    api->block_free(policy, data, 3000000);
    api->policy_release(policy);
    ck_assert_ptr_null(api->policy_at(number));
}

TEST(default_policy_survives_extra_releases)
{
    memrt_policy_t *policy = api->policy_default();
    api->policy_acquire(policy);
    for (int i = 0; i < 3; i++) {
        api->policy_release(policy);
    }
    api->release_unused();
    void *data = api->block_alloc(NULL, 10);
    ck_assert_ptr_nonnull(data);
    api->block_free(policy, data, 10);
}

TEST(process_cached_bytes_include_policies_after_index_gap)
{
    if (memrt__options.check) {
        return; /* the guard keeps the bytes, but not for reuse */
    }
    memrt_allocator_t hoarding;
    ck_assert_int_eq(hoarding_new(api->allocator_system(), &hoarding), MEMRT_OK);
    memrt_policy_t *gone = create_policy_over(api->allocator_system(), "gone");
    memrt_policy_t *pages = create_policy_over(api->allocator_mapped(), "pages");
    memrt_policy_t *keeps = create_policy_over(&hoarding, "keeps");
    uint32_t gap = api->policy_index(gone);
    api->policy_release(gone);
    api->release_unused();
    ck_assert_ptr_null(api->policy_at(gap));
    uint64_t before = stats_of(NULL).cached;
    api->block_free(keeps, api->block_alloc(keeps, 50000), 50000);
    ck_assert_uint_gt(stats_of(keeps).cached, 0);
    ck_assert_uint_eq(stats_of(NULL).cached, before + stats_of(keeps).cached);
    api->policy_release(pages);
    api->policy_release(keeps);
}

TEST(policy_without_alignment_uses_the_alignment_option)
{
    memrt__options.alignment = 512;
    memrt_policy_t *policy;
    ck_assert_int_eq(api->policy_new(NULL, &policy), MEMRT_OK);
    ck_assert_uint_eq(api->policy_alignment(policy), 512);
    void *data = api->block_alloc(policy, 5);
    ck_assert_uint_eq((uintptr_t)data % 512, 0);
    api->block_free(policy, data, 5);
    api->policy_release(policy);
}

TEST(policy_beyond_the_index_limit_is_refused)
{
    enum { LIMIT = 4095 };
    static memrt_policy_t *policies[LIMIT];
    for (size_t i = 0; i < LIMIT; i++) {
        ck_assert_int_eq(api->policy_new(NULL, &policies[i]), MEMRT_OK);
    }
    memrt_policy_t *last = NULL;
    ck_assert_int_eq(api->policy_new(NULL, &last), MEMRT_ELIMIT);
    ck_assert_ptr_null(last);
    memrt_policy_options_t options = build_limits("1M", "5", "off");
    ck_assert_int_eq(api->policy_new(&options, &last), MEMRT_ELIMIT);
    memrt_policy_options_t own = {.struct_size = sizeof(own), .allocator = api->allocator_system()};
    ck_assert_int_eq(api->policy_new(&own, &last), MEMRT_ELIMIT);
    ck_assert_ptr_null(last);
    ck_assert_uint_eq(memrt__load_relaxed(&memrt__large_cache_shortest), MEMRT__DECAY_NEVER);
    void *data = api->block_alloc(policies[LIMIT - 1], 50);
    ck_assert_str_eq(api->policy_name(policies[LIMIT - 1]), "policy");
    api->policy_release(policies[7]);
    ck_assert_int_eq(api->policy_new(NULL, &policies[7]), MEMRT_OK);
    api->block_free(NULL, data, 50);
    for (size_t i = 0; i < LIMIT; i++) {
        api->policy_release(policies[i]);
    }
}

/* --- Dead policies: released, with live blocks. --- */

#define DEAD 200

/// Create policies, leave a block of each policy behind, and release the policies.
static void create_dead_policies(void **blocks, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        memrt_policy_t *policy = create_policy_over(NULL, "dead");
        blocks[i] = api->block_alloc(policy, 100);
        ck_assert_ptr_nonnull(blocks[i]);
        api->policy_release(policy);
    }
}

static void free_blocks(void **blocks, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        api->block_free(NULL, blocks[i], 100);
    }
}

TEST(new_and_released_policy_read_few_accounts_of_dead_policies)
{
    void *blocks[DEAD];
    create_dead_policies(blocks, DEAD);
    for (int i = 0; i < 3; i++) {
        size_t before = memrt__stats_idle_readings;
        memrt_policy_t *policy = create_policy_over(NULL, "read");
        ck_assert_uint_le(memrt__stats_idle_readings - before, 2 * MEMRT__SWEEP_WAITS);
        before = memrt__stats_idle_readings;
        api->policy_release(policy);
        ck_assert_uint_le(memrt__stats_idle_readings - before, 2);
    }
    free_blocks(blocks, DEAD);
}

#define CREW 64

typedef struct crowd {
    memrt_policy_t *policies[20];
    void *blocks[CREW][20];
} crowd_t;

static void allocate_from_all(size_t index, void *context)
{
    crowd_t *crowd = context;
    for (size_t i = 0; i < 20; i++) {
        crowd->blocks[index][i] = api->block_alloc(crowd->policies[i], 100);
        REQUIRE(crowd->blocks[index][i] != NULL);
    }
}

TEST(new_policies_read_few_shards_of_many_threads_on_average)
{
    crowd_t crowd;
    for (size_t i = 0; i < 20; i++) {
        crowd.policies[i] = create_policy_over(NULL, "crowd");
    }
    crew_run(CREW, allocate_from_all, &crowd);
    for (size_t i = 0; i < 20; i++) {
        api->policy_release(crowd.policies[i]);
    }
    size_t readings = 0;
    for (size_t i = 0; i < 100; i++) {
        size_t before = memrt__stats_idle_readings;
        memrt_policy_t *policy = create_policy_over(NULL, "read");
        readings += memrt__stats_idle_readings - before;
        api->policy_release(policy);
    }
    /* The last visit may read all shards of a policy twice, beyond the average. */
    ck_assert_uint_le(readings, 100 * MEMRT__SWEEP_READINGS + 2 * (CREW + 1));
    for (size_t i = 0; i < CREW; i++) {
        free_blocks(crowd.blocks[i], 20);
    }
}

/// Blocks of the first policies keep these policies, so each sweep meets a policy that waits.
TEST(new_policies_take_the_indices_of_dead_policies_in_turn)
{
    void *blocks[DEAD];
    memrt_policy_t *policies[DEAD];
    create_dead_policies(blocks, DEAD);
    uint32_t limit = api->policy_limit();
    free_blocks(&blocks[DEAD / 2], DEAD / 2);
    for (size_t i = 0; i < DEAD; i++) {
        api->policy_release(create_policy_over(NULL, "turn"));
    }
    size_t before = memrt__stats_idle_readings;
    for (size_t i = 0; i < DEAD / 2; i++) {
        policies[i] = create_policy_over(NULL, "next");
    }
    /* Without forks, threads of the test before left shards, which the last visit may read. */
    ck_assert_uint_le(memrt__stats_idle_readings - before,
                      DEAD * MEMRT__SWEEP_WAITS + 2 * (count_thread_records(false) - 1));
    ck_assert_uint_le(api->policy_limit(), limit + 1);
    for (size_t i = 0; i < DEAD / 2; i++) {
        api->policy_release(policies[i]);
    }
    free_blocks(blocks, DEAD / 2);
}

TEST(policy_new_sweeps_all_policies_when_no_index_is_free)
{
    enum { LIMIT = 4095 };
    static void *blocks[LIMIT];
    create_dead_policies(blocks, LIMIT);
    memrt_policy_t *policy = NULL;
    ck_assert_int_eq(api->policy_new(NULL, &policy), MEMRT_ELIMIT);
    free_blocks(&blocks[LIMIT - 1], 1);
    policy = create_policy_over(NULL, "last");
    ck_assert_uint_eq(api->policy_index(policy), LIMIT);
    api->policy_release(policy);
    free_blocks(blocks, LIMIT - 1);
}

TEST(many_policies_in_turn_count_their_own_blocks)
{
    void *blocks[DEAD];
    create_dead_policies(blocks, DEAD);
    for (size_t i = 0; i < DEAD; i++) {
        memrt_policy_t *policy = create_policy_over(NULL, "counted");
        api->block_free(NULL, blocks[i], 100);
        void *data = api->block_alloc(policy, 100 + i);
        ck_assert_uint_eq(stats_of(policy).live, 100 + i);
        ck_assert_uint_eq(stats_of(policy).alloc, 1);
        ck_assert_uint_eq(stats_of(policy).free, 0);
        api->block_free(policy, data, 0);
        ck_assert_uint_eq(stats_of(policy).live, 0);
        api->policy_release(policy);
    }
}

/// Free a block of a policy. Under checking, also empty the guard's quarantine.
static void free_without_quarantine(memrt_policy_t *policy, void *data)
{
    api->block_free(policy, data, 0);
    if (memrt__is_guard(&policy->allocator)) {
        memrt__guard_empty(&policy->allocator);
    }
}

TEST(cached_bytes_count_as_reserved_until_released)
{
    memrt_allocator_t hoarding;
    ck_assert_int_eq(hoarding_new(memrt__default_allocator(), &hoarding), MEMRT_OK);
    memrt_policy_t *policy = create_policy_over(&hoarding, "hoard");
    free_without_quarantine(policy, api->block_alloc(policy, 1000));
    memrt_stats_t stats = stats_of(policy);
    ck_assert_uint_ge(stats.cached, 1000);
    ck_assert_uint_eq(stats.reserved, stats.cached);
    ck_assert_uint_ge(stats_of(NULL).cached, stats.cached);
    ck_assert_uint_eq(api->release_unused(), stats.cached);
    ck_assert_uint_eq(stats_of(policy).cached, 0);
    api->policy_release(policy);
}

TEST(shared_allocator_cache_counts_once_in_process_statistics)
{
    memrt_allocator_t hoarding;
    ck_assert_int_eq(hoarding_new(&memrt__system_allocator, &hoarding), MEMRT_OK);
    memrt_allocator_t shared = hoarding;
    shared.destroy = NULL;
    memrt_policy_t *one = create_policy_over(&shared, "one"),
                   *other = create_policy_over(&shared, "other");
    uint64_t before = stats_of(NULL).cached;
    free_without_quarantine(one, api->block_alloc(one, 1000));
    ck_assert_uint_ge(stats_of(one).cached, 1000);
    ck_assert_uint_eq(stats_of(NULL).cached - before, stats_of(one).cached);
    api->policy_release(one);
    api->policy_release(other);
    api->release_unused();
    memrt__allocator_destroy(&hoarding);
}

TEST(calloc_zeroes_recycled_memory)
{
    memrt_allocator_t hoarding;
    ck_assert_int_eq(hoarding_new(memrt__default_allocator(), &hoarding), MEMRT_OK);
    memrt_policy_t *policy = create_policy_over(&hoarding, "hoard");
    for (int round = 0; round < 3; round++) {
        char *data = api->block_calloc(policy, 1000, 1);
        ck_assert(pattern_is_zero(data, 1000));
        memset(data, 1, 1000);
        api->block_free(policy, data, 1000);
    }
    api->policy_release(policy);
}

/// Create policies, leave a block of each policy behind, and free the blocks that other threads
/// left.
static void recycle_policies(size_t index, void *context)
{
    void **left = context;
    for (int round = 0; round < 300; round++) {
        memrt_policy_t *policy;
        memrt_policy_options_t options = {.struct_size = sizeof(options), .name = "recycled"};
        REQUIRE(api->policy_new(&options, &policy) == MEMRT_OK);
        char *data = api->block_alloc(policy, 100);
        REQUIRE(data != NULL);
        pattern_write(data, 100, (unsigned)index);
        api->policy_release(policy);
        char *others = __atomic_exchange_n(&left[round % 4], data, __ATOMIC_ACQ_REL);
        memrt_stats_t stats = {.struct_size = sizeof(stats)};
        REQUIRE(api->stats_read(NULL, &stats) == MEMRT_OK && stats.free <= stats.alloc);
        api->block_free(NULL, others, 0);
    }
}

TEST(policies_are_recycled_while_threads_free_their_blocks)
{
    void *left[4] = {NULL};
    uint64_t made = stats_of(NULL).alloc;
    crew_run(4, recycle_policies, left);
    for (int i = 0; i < 4; i++) {
        api->block_free(NULL, left[i], 0);
    }
    ck_assert_uint_eq(stats_of(NULL).alloc, made + 4 * 300);
}

static void alloc_at_gate(size_t index, void *context)
{
    const memrt_allocator_t *gate = context;
    memrt_policy_options_t options = {
        .struct_size = sizeof(options), .name = "gate", .allocator = gate};
    static memrt_policy_t *policy;
    if (index == 0) {
        REQUIRE(api->policy_new(&options, &policy) == MEMRT_OK);
        api->block_free(NULL, api->block_alloc(policy, 10), 10); /* waits at the gate */
        api->policy_release(policy);
        return;
    }
    gate_wait_for(gate, 1);
    memrt_policy_t *another;
    memrt_stats_t stats = {.struct_size = sizeof(stats)};
    REQUIRE(api->policy_new(NULL, &another) == MEMRT_OK);
    REQUIRE(api->stats_read(NULL, &stats) == MEMRT_OK);
    api->block_free(another, api->block_alloc(another, 10), 10);
    api->policy_release(another);
    api->release_unused();
    gate_open(gate);
}

TEST(no_lock_is_held_while_an_allocator_runs)
{
    memrt_allocator_t gate;
    ck_assert_int_eq(gate_new(memrt__default_allocator(), &gate), MEMRT_OK);
    gate_shut(&gate);
    crew_run(2, alloc_at_gate, &gate);
}

static void switch_policies(size_t index, void *context)
{
    memrt_policy_t **policies = context;
    void *data[20] = {NULL};
    for (size_t round = 0; round < 2000; round++) {
        size_t i = (round * 7) % 20;
        size_t size = 1 + (round * 37 + index) % 3000;
        data[i] = api->block_realloc(policies[round % 3], data[i], size);
        REQUIRE(data[i] != NULL);
        memset(data[i], (int)index, size);
    }
    for (size_t i = 0; i < 20; i++) {
        api->block_free(policies[index % 3], data[i], 0);
    }
}

TEST(threads_can_switch_policies_with_live_blocks)
{
    memrt_policy_t *policies[3];
    for (int i = 0; i < 3; i++) {
        policies[i] = create_policy_over(i == 0 ? NULL : &memrt__system_allocator, "switched");
    }
    crew_run(4, switch_policies, policies);
    for (int i = 0; i < 3; i++) {
        ck_assert_uint_eq(stats_of(policies[i]).live, 0);
        ck_assert_uint_eq(stats_of(policies[i]).alloc, stats_of(policies[i]).free);
        api->policy_release(policies[i]);
    }
}

static void release_policy_twice(void *context)
{
    memrt_policy_t *policy;
    (void)context;
    REQUIRE(api->policy_new(NULL, &policy) == MEMRT_OK);
    REQUIRE(api->block_alloc(policy, 10) != NULL); /* keeps the policy in memory */
    api->policy_release(policy);
    api->policy_release(policy);
}

TEST(second_release_of_a_policy_aborts_with_a_message)
{
    child_expect_abort(release_policy_twice, NULL, "policy_release of ");
}
