#include "support/suite.h"

#include <string.h>

#include "conformance/pattern.h"
#include "runtime/alloc/allocator.h"
#include "runtime/alloc/guard.h"
#include "runtime/alloc/policy.h"
#include "runtime/alloc/warm.h"
#include "runtime/base/atomics.h"
#include "runtime/base/options.h"
#include "support/books.h"
#include "support/counting.h"
#include "support/crew.h"
#include "support/gate.h"
#include "support/hoarding.h"

static memrt_policy_t *policy_over(const memrt_allocator_t *allocator, const char *name)
{
    memrt_policy_options_t options = {
        .struct_size = sizeof(options), .name = name, .allocator = allocator};
    memrt_policy_t *policy;
    ck_assert_int_eq(api->policy_new(&options, &policy), MEMRT_OK);
    return policy;
}

TEST(a_policy_has_the_name_and_alignment_it_was_given)
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

TEST(a_policy_has_defaults_and_at_least_the_least_alignment)
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

TEST_EACH(a_policy_with_a_bad_alignment_is_refused,
          sizeof(bad_alignments) / sizeof(bad_alignments[0]))
{
    memrt_policy_options_t options = {.struct_size = sizeof(options),
                                      .alignment = bad_alignments[index]};
    memrt_policy_t *policy = (memrt_policy_t *)&options;
    ck_assert_int_eq(api->policy_new(&options, &policy), MEMRT_EINVAL);
    ck_assert_ptr_eq(policy, &options);
}

TEST(a_policy_with_a_bad_name_table_or_size_is_refused)
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

TEST(shorter_options_are_read_no_further_than_they_reach)
{
    memrt_policy_options_t options = {.struct_size = offsetof(memrt_policy_options_t, alignment),
                                      .name = "short",
                                      .alignment = 3};
    memrt_policy_t *policy;
    ck_assert_int_eq(api->policy_new(&options, &policy), MEMRT_OK);
    ck_assert_str_eq(api->policy_name(policy), "short");
    api->policy_release(policy);
}

static memrt_policy_options_t with_limits(const char *cache_limit, const char *decay,
                                          const char *hugepages)
{
    return (memrt_policy_options_t){.struct_size = sizeof(memrt_policy_options_t),
                                    .cache_limit = cache_limit,
                                    .decay = decay,
                                    .hugepages = hugepages};
}

TEST(a_policy_lists_the_options_that_it_sets_and_no_others)
{
    memrt_policy_options_t options = with_limits("3M", NULL, "advise");
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

TEST(a_policy_with_a_bad_limit_or_limits_for_an_allocator_that_is_the_callers_is_refused)
{
    memrt_policy_options_t bad[] = {with_limits("much", NULL, NULL), with_limits(NULL, "-1", NULL),
                                    with_limits(NULL, NULL, "all"), with_limits("1", "", NULL),
                                    with_limits("1", NULL, NULL)};
    bad[4].allocator = &memrt__system_allocator;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        memrt_policy_t *policy = NULL;
        ck_assert_int_eq(api->policy_new(&bad[i], &policy), MEMRT_EINVAL);
        ck_assert_ptr_null(policy);
    }
}

TEST(options_from_before_there_were_limits_make_a_policy_without)
{
    memrt_policy_options_t options = with_limits("much", "much", "much");
    options.struct_size = offsetof(memrt_policy_options_t, cache_limit);
    memrt_policy_t *policy;
    memrt_option_t row;
    ck_assert_int_eq(api->policy_new(&options, &policy), MEMRT_OK);
    ck_assert_int_eq(api->policy_option(policy, 0, &row), 0);
    api->policy_release(policy);
}

TEST(an_allocator_is_destroyed_once_when_policy_and_blocks_are_gone)
{
    counts_t counts = {0};
    memrt_allocator_t counting;
    ck_assert_int_eq(counting_new(memrt__default_allocator(), &counting), MEMRT_OK);
    counting_at_destroy(&counting, &counts);
    memrt_policy_t *policy = policy_over(&counting, "counted");
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

TEST(blocks_go_back_to_the_allocator_that_made_them_whatever_policy_is_named)
{
    counts_t counts[2];
    memrt_allocator_t counting[2];
    memrt_policy_t *policies[2];
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(counting_new(memrt__default_allocator(), &counting[i]), MEMRT_OK);
        counting_at_destroy(&counting[i], &counts[i]);
        policies[i] = policy_over(&counting[i], "counted");
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

TEST(a_policy_that_nobody_holds_still_serves_its_live_blocks)
{
    memrt_policy_t *policy = policy_over(NULL, "zombie");
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

TEST(a_policy_can_be_found_by_its_index_and_walked)
{
    memrt_policy_t *policy = policy_over(NULL, "walked");
    memrt_policy_t *found = api->policy_at(api->policy_index(policy));
    ck_assert_ptr_eq(found, policy);
    api->policy_release(found);
    ck_assert_uint_gt(api->policy_limit(), api->policy_index(policy));
    ck_assert_ptr_null(api->policy_at(api->policy_limit()));
    ck_assert_ptr_null(api->policy_at(UINT32_MAX));
    api->policy_release(policy);
}

TEST(the_default_policy_cannot_be_released_away)
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

TEST(what_policies_keep_is_added_up_across_a_gap_between_them)
{
    memrt_allocator_t hoarding;
    ck_assert_int_eq(hoarding_new(api->allocator_system(), &hoarding), MEMRT_OK);
    memrt_policy_t *gone = policy_over(api->allocator_system(), "gone");
    memrt_policy_t *pages = policy_over(api->allocator_mapped(), "pages");
    memrt_policy_t *keeps = policy_over(&hoarding, "keeps");
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

TEST(a_policy_that_names_no_alignment_takes_the_one_of_the_options)
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

TEST(one_policy_more_than_there_are_indices_is_refused)
{
    enum { LIMIT = 4095 };
    static memrt_policy_t *policies[LIMIT];
    for (size_t i = 0; i < LIMIT; i++) {
        ck_assert_int_eq(api->policy_new(NULL, &policies[i]), MEMRT_OK);
    }
    memrt_policy_t *last = NULL;
    ck_assert_int_eq(api->policy_new(NULL, &last), MEMRT_ELIMIT);
    ck_assert_ptr_null(last);
    memrt_policy_options_t options = with_limits("1M", "5", "off");
    ck_assert_int_eq(api->policy_new(&options, &last), MEMRT_ELIMIT);
    memrt_policy_options_t own = {.struct_size = sizeof(own), .allocator = api->allocator_system()};
    ck_assert_int_eq(api->policy_new(&own, &last), MEMRT_ELIMIT);
    ck_assert_ptr_null(last);
    ck_assert_uint_eq(memrt__load_relaxed(&memrt__warm_shortest), MEMRT__DECAY_NEVER);
    void *data = api->block_alloc(policies[LIMIT - 1], 50);
    ck_assert_str_eq(api->policy_name(policies[LIMIT - 1]), "policy");
    api->policy_release(policies[7]);
    ck_assert_int_eq(api->policy_new(NULL, &policies[7]), MEMRT_OK);
    api->block_free(NULL, data, 50);
    for (size_t i = 0; i < LIMIT; i++) {
        api->policy_release(policies[i]);
    }
}

/// Free a block of a policy, and under checking have its guard keep nothing.
static void free_for_good(memrt_policy_t *policy, void *data)
{
    api->block_free(policy, data, 0);
    if (memrt__is_guard(&policy->allocator)) {
        memrt__guard_empty(&policy->allocator);
    }
}

TEST(cached_bytes_are_seen_counted_as_reserved_and_given_back)
{
    memrt_allocator_t hoarding;
    ck_assert_int_eq(hoarding_new(memrt__default_allocator(), &hoarding), MEMRT_OK);
    memrt_policy_t *policy = policy_over(&hoarding, "hoard");
    free_for_good(policy, api->block_alloc(policy, 1000));
    memrt_stats_t stats = stats_of(policy);
    ck_assert_uint_ge(stats.cached, 1000);
    ck_assert_uint_eq(stats.reserved, stats.cached);
    ck_assert_uint_ge(stats_of(NULL).cached, stats.cached);
    ck_assert_uint_eq(api->release_unused(), stats.cached);
    ck_assert_uint_eq(stats_of(policy).cached, 0);
    api->policy_release(policy);
}

TEST(policies_that_share_an_allocator_have_one_cache_in_the_process_account)
{
    memrt_allocator_t hoarding;
    ck_assert_int_eq(hoarding_new(&memrt__system_allocator, &hoarding), MEMRT_OK);
    memrt_allocator_t shared = hoarding;
    shared.destroy = NULL;
    memrt_policy_t *one = policy_over(&shared, "one"), *other = policy_over(&shared, "other");
    uint64_t before = stats_of(NULL).cached;
    free_for_good(one, api->block_alloc(one, 1000));
    ck_assert_uint_ge(stats_of(one).cached, 1000);
    ck_assert_uint_eq(stats_of(NULL).cached - before, stats_of(one).cached);
    api->policy_release(one);
    api->policy_release(other);
    api->release_unused();
    memrt__allocator_destroy(&hoarding);
}

TEST(recycled_memory_that_must_be_zero_is)
{
    memrt_allocator_t hoarding;
    ck_assert_int_eq(hoarding_new(memrt__default_allocator(), &hoarding), MEMRT_OK);
    memrt_policy_t *policy = policy_over(&hoarding, "hoard");
    for (int round = 0; round < 3; round++) {
        char *data = api->block_calloc(policy, 1000, 1);
        ck_assert(pattern_is_zero(data, 1000));
        memset(data, 1, 1000);
        api->block_free(policy, data, 1000);
    }
    api->policy_release(policy);
}

/// Each thread makes policies, leaves blocks of one behind, and frees those that others left.
static void recycle(size_t index, void *context)
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

TEST(policies_may_be_recycled_while_their_blocks_die_on_other_threads)
{
    void *left[4] = {NULL};
    uint64_t made = stats_of(NULL).alloc;
    crew_run(4, recycle, left);
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

TEST(no_lock_is_held_while_an_allocator_works)
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

TEST(policies_can_be_switched_with_live_buffers_on_every_thread)
{
    memrt_policy_t *policies[3];
    for (int i = 0; i < 3; i++) {
        policies[i] = policy_over(i == 0 ? NULL : &memrt__system_allocator, "switched");
    }
    crew_run(4, switch_policies, policies);
    for (int i = 0; i < 3; i++) {
        ck_assert_uint_eq(stats_of(policies[i]).live, 0);
        ck_assert_uint_eq(stats_of(policies[i]).alloc, stats_of(policies[i]).free);
        api->policy_release(policies[i]);
    }
}
