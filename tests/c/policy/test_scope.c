#include "support/suite.h"

#include <stdio.h>
#include <string.h>

#include "runtime/base/size.h"
#include "runtime/policy/policy_sweep.h"
#include "runtime/policy/scope.h"
#include "support/books.h"
#include "support/chance.h"
#include "support/child.h"
#include "support/crew.h"

static memrt_scope_t *open_scope(memrt_scope_t *parent, const char *name)
{
    memrt_scope_t *scope = NULL;
    ck_assert_int_eq(api->scope_open(parent, name, &scope), MEMRT_OK);
    ck_assert_ptr_nonnull(scope);
    return scope;
}

static memrt_scope_t *enter_scope(memrt_scope_t *scope)
{
    memrt_scope_t *before;
    ck_assert_int_eq(api->scope_enter(scope, &before), MEMRT_OK);
    return before;
}

static memrt_stats_t read_scope_stats(const memrt_scope_t *scope)
{
    memrt_stats_t stats = {.struct_size = sizeof(stats)};
    ck_assert_int_eq(api->scope_stats(scope, &stats), MEMRT_OK);
    return stats;
}

static uint64_t read_live_bytes(const memrt_scope_t *scope)
{
    return read_scope_stats(scope).live;
}

TEST(scope_open_finds_a_scope_by_name_and_parent)
{
    memrt_scope_t *outer = open_scope(NULL, "outer"), *inner = open_scope(outer, "inner");
    ck_assert_ptr_eq(open_scope(NULL, "outer"), outer);
    ck_assert_ptr_eq(open_scope(outer, "inner"), inner);
    memrt_scope_t *other = open_scope(NULL, "inner");
    ck_assert_ptr_ne(other, inner);
    ck_assert_str_eq(api->scope_name(inner), "inner");
    ck_assert_ptr_eq(api->scope_parent(inner), outer);
    ck_assert_ptr_null(api->scope_parent(outer));
    ck_assert_uint_ne(api->scope_id(inner), api->scope_id(other));
    memrt_scope_t *held[] = {outer, outer, inner, inner, other};
    for (size_t i = 0; i < 5; i++) {
        api->scope_release(held[i]);
    }
}

TEST(scope_with_an_invalid_name_is_refused)
{
    char long_name[MEMRT_NAME_MAX + 2];
    memset(long_name, 'x', sizeof(long_name));
    long_name[sizeof(long_name) - 1] = '\0';
    const char *names[] = {NULL, "", long_name};
    for (size_t i = 0; i < 3; i++) {
        memrt_scope_t *scope = NULL;
        ck_assert_int_eq(api->scope_open(NULL, names[i], &scope), MEMRT_EINVAL);
        ck_assert_ptr_null(scope);
    }
    long_name[MEMRT_NAME_MAX] = '\0';
    api->scope_release(open_scope(NULL, long_name));
}

/// Ways to allocate a buffer.
enum { ALLOCATE, NEW, BLOCK, ZEROED, TINY, ADOPTED, RESIZABLE, ALLOCATIONS };

typedef struct buffer {
    void *data;
    memrt_meminfo_t *mi;
} buffer_t;

static buffer_t allocate_buffer(int way, memrt_policy_t *policy)
{
    static char foreign[100];
    memrt_new_options_t options = {.struct_size = sizeof(options), .policy = policy};
    buffer_t buffer = {NULL, NULL};
    switch (way) {
    case ALLOCATE:
        buffer.mi = api->allocate(100);
        break;
    case NEW:
        ck_assert_int_eq(api->meminfo_new(100, &options, &buffer.mi), MEMRT_OK);
        break;
    case BLOCK:
        buffer.data = api->block_alloc(policy, 100);
        break;
    case ZEROED:
        buffer.data = api->block_calloc(policy, 10, 10);
        break;
    case TINY:
        buffer.data = api->block_alloc(policy, 8);
        break;
    case ADOPTED:
        ck_assert_int_eq(api->meminfo_adopt(foreign, 100, &options, &buffer.mi), MEMRT_OK);
        break;
    default:
        ck_assert_int_eq(api->resizable_new(100, &options, &buffer.mi), MEMRT_OK);
    }
    return buffer;
}

static void free_buffer(buffer_t buffer)
{
    if (buffer.mi != NULL) {
        api->release(buffer.mi);
    } else {
        api->block_free(NULL, buffer.data, 0);
    }
}

static uint64_t count_blocks(const memrt_scope_t *scope)
{
    memrt_stats_t now = read_scope_stats(scope);
    return now.alloc - now.free;
}

TEST_EACH(allocation_counts_in_its_scope_until_freed_outside, 2 * ALLOCATIONS)
{
    memrt_policy_t *policy = NULL;
    if (index >= ALLOCATIONS) {
        ck_assert_int_eq(api->policy_new(NULL, &policy), MEMRT_OK);
    }
    memrt_scope_t *scope = open_scope(NULL, "allocations");
    uint64_t made = read_scope_stats(scope).alloc;
    for (int round = 0; round < 300; round++) { /* the fast path is in use after a few rounds */
        enter_scope(scope);
        buffer_t buffer = allocate_buffer(index % ALLOCATIONS, policy);
        enter_scope(NULL);
        buffer_t outside = allocate_buffer(index % ALLOCATIONS, policy);
        ck_assert_uint_eq(count_blocks(scope), index % ALLOCATIONS == RESIZABLE ? 2 : 1);
        if (buffer.mi != NULL) {
            ck_assert_ptr_eq(api->scope_of(buffer.mi), scope);
            ck_assert_ptr_null(api->scope_of(outside.mi));
            ck_assert_ptr_eq(api->policy_of(buffer.mi), api->policy_of(outside.mi));
        }
        free_buffer(outside);
        free_buffer(buffer);
        ck_assert_uint_eq(count_blocks(scope), 0);
    }
    ck_assert_uint_ge(read_scope_stats(scope).alloc, made + 300);
    ck_assert_uint_eq(read_live_bytes(scope), 0);
    api->scope_release(scope);
    if (policy != NULL) {
        api->policy_release(policy);
    }
}

#define ROW 50

/// Allocate without leaving the scope in between: the thread reuses the shard of the previous
/// allocation.
TEST_EACH(consecutive_allocations_each_count_in_the_scope, 2 * ALLOCATIONS)
{
    memrt_policy_t *policy = NULL;
    if (index >= ALLOCATIONS) {
        ck_assert_int_eq(api->policy_new(NULL, &policy), MEMRT_OK);
    }
    memrt_scope_t *scope = open_scope(NULL, "row");
    uint64_t each = index % ALLOCATIONS == RESIZABLE ? 2 : 1;
    enter_scope(scope);
    for (int turn = 0; turn < 3; turn++) {
        buffer_t row[ROW];
        for (uint64_t i = 0; i < ROW; i++) {
            row[i] = allocate_buffer(index % ALLOCATIONS, policy);
            ck_assert_uint_eq(count_blocks(scope), (i + 1) * each);
        }
        for (size_t i = 0; i < ROW; i++) {
            free_buffer(row[i]);
        }
        ck_assert_uint_eq(count_blocks(scope), 0);
    }
    enter_scope(NULL);
    ck_assert_uint_eq(read_live_bytes(scope), 0);
    api->scope_release(scope);
    if (policy != NULL) {
        api->policy_release(policy);
    }
}

TEST(large_and_small_allocations_count_in_the_same_scope)
{
    const size_t sizes[] = {100, 100, 3000000, 100, 0, 100};
    memrt_scope_t *scope = open_scope(NULL, "large");
    uint64_t expected[MEMRT_SIZE_BINS] = {[7] = 4, [22] = 1, [0] = 1}, found[MEMRT_SIZE_BINS];
    enter_scope(scope);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        memrt_meminfo_t *mi = api->allocate(sizes[i]);
        ck_assert_uint_eq(read_live_bytes(scope), sizes[i]);
        api->release(mi);
    }
    enter_scope(NULL);
    api->scope_sizes(scope, found);
    ck_assert_mem_eq(found, expected, sizeof(expected));
    api->scope_release(scope);
}

TEST(scope_statistics_include_nested_scopes)
{
    memrt_scope_t *outer = open_scope(NULL, "stage"), *inner = open_scope(outer, "part");
    enter_scope(outer);
    void *first = api->block_alloc(NULL, 1000);
    ck_assert_ptr_eq(enter_scope(inner), outer);
    ck_assert_ptr_eq(api->scope_current(), inner);
    void *second = api->block_alloc(NULL, 200);
    ck_assert_ptr_eq(enter_scope(NULL), inner);
    ck_assert_ptr_null(api->scope_current());
    ck_assert_uint_eq(read_live_bytes(outer), 1200);
    ck_assert_uint_eq(read_live_bytes(inner), 200);
    api->block_free(NULL, first, 0);
    ck_assert_uint_eq(read_live_bytes(outer), 200);
    memrt_stats_t both = read_scope_stats(outer);
    ck_assert_uint_ge(both.peak + both.peak_error, 1200);
    ck_assert_uint_ge(1200 + both.peak_error, both.peak);
    ck_assert_uint_eq(read_scope_stats(inner).peak, 200);
    api->scope_reset_peak(outer);
    ck_assert_uint_eq(read_scope_stats(outer).peak, 200);
    api->block_free(NULL, second, 0);
    ck_assert_uint_eq(read_scope_stats(outer).total, 1200);
    api->scope_release(inner);
    api->scope_release(outer);
}

TEST(resize_counts_in_the_scope_of_the_allocation)
{
    memrt_scope_t *scope = open_scope(NULL, "allocated"),
                  *elsewhere = open_scope(NULL, "elsewhere");
    enter_scope(scope);
    void *data = api->block_alloc(NULL, 500);
    enter_scope(elsewhere);
    size_t sizes[] = {600, 100000, 3000000, 40, 700};
    for (size_t i = 0; i < 5; i++) {
        data = api->block_realloc(NULL, data, sizes[i]);
        ck_assert_uint_eq(read_live_bytes(scope), sizes[i]);
        ck_assert_uint_eq(read_live_bytes(elsewhere), 0);
    }
    enter_scope(NULL);
    api->block_free(NULL, data, 0);
    ck_assert_uint_eq(read_scope_stats(scope).realloc, 5);
    api->scope_release(scope);
    api->scope_release(elsewhere);
}

TEST(resize_of_outside_block_does_not_count_in_current_scope)
{
    memrt_scope_t *scope = open_scope(NULL, "resizer");
    memrt_meminfo_t *mi;
    size_t sizes[] = {20, 60, 500, 64, 3000000, 8};
    api->block_free(NULL, api->block_alloc(NULL, 8), 0); /* tiny blocks need a thread record */
    void *data = api->block_alloc(NULL, 8), *shared = api->block_alloc(NULL, 8);
    ck_assert_int_eq(api->block_meminfo(shared, &mi), MEMRT_OK);
    uint64_t live = stats_of(NULL).live;
    enter_scope(scope);
    for (size_t i = 0; i < 6; i++) {
        data = api->block_realloc(NULL, data, sizes[i]);
        ck_assert_uint_eq(stats_of(NULL).live, live + sizes[i] - 8);
        ck_assert_uint_eq(read_live_bytes(scope), 0);
    }
    /* returns a new block, because mi holds the old block */
    shared = api->block_realloc(NULL, shared, 30);
    ck_assert_uint_eq(read_live_bytes(scope), 0);
    enter_scope(NULL);
    ck_assert_uint_eq(read_scope_stats(scope).alloc, 0);
    api->block_free(NULL, data, 0);
    api->block_free(NULL, shared, 0);
    api->release(mi);
    api->scope_release(scope);
}

TEST(policy_and_process_count_allocations_in_scopes)
{
    memrt_policy_t *policy;
    ck_assert_int_eq(api->policy_new(NULL, &policy), MEMRT_OK);
    memrt_stats_t process = stats_of(NULL);
    memrt_scope_t *scope = open_scope(NULL, "of a policy");
    enter_scope(scope);
    void *inside = api->block_alloc(policy, 5000);
    enter_scope(NULL);
    void *outside = api->block_alloc(policy, 300);
    ck_assert_uint_eq(stats_of(policy).live, 5300);
    ck_assert_uint_eq(stats_of(policy).alloc, 2);
    ck_assert_uint_eq(stats_of(policy).peak, 5300);
    ck_assert_uint_eq(stats_of(NULL).live, process.live + 5300);
    api->block_free(policy, inside, 0);
    api->block_free(policy, outside, 0);
    ck_assert_uint_eq(stats_of(policy).live, 0);
    ck_assert_uint_eq(stats_of(NULL).alloc, process.alloc + 2);
    api->scope_release(scope);
    api->policy_release(policy);
}

TEST(scope_policy_is_stable_and_has_the_base_settings)
{
    memrt_policy_t *base, *part, *again;
    memrt_policy_options_t options = {
        .struct_size = sizeof(options), .name = "b", .alignment = 256};
    ck_assert_int_eq(api->policy_new(&options, &base), MEMRT_OK);
    memrt_scope_t *scope = open_scope(NULL, "handlers");
    ck_assert_int_eq(api->scope_policy(scope, base, &part), MEMRT_OK);
    ck_assert_int_eq(api->scope_policy(scope, part, &again), MEMRT_OK);
    ck_assert_ptr_eq(part, again);
    ck_assert_str_eq(api->policy_name(part), "b");
    ck_assert_uint_eq(api->policy_index(part), api->policy_index(base));
    ck_assert_uint_eq(api->policy_alignment(part), 256);
    api->policy_release(base);
    api->scope_release(scope); /* the subpolicy holds both */
    void *data = api->block_alloc(part, 1000);
    ck_assert_uint_eq((uintptr_t)data % 256, 0);
    ck_assert_uint_eq(read_live_bytes(scope), 1000);
    ck_assert_uint_eq(stats_of(part).live, 1000);
    api->policy_release(again);
    api->policy_release(part);
    api->block_free(NULL, data, 0);
}

TEST(subpolicy_overrides_the_current_scope)
{
    memrt_policy_t *part;
    memrt_scope_t *scope = open_scope(NULL, "handler"), *other = open_scope(NULL, "other");
    ck_assert_int_eq(api->scope_policy(scope, NULL, &part), MEMRT_OK);
    enter_scope(other);
    void *data = api->block_alloc(part, 100); /* a subpolicy overrides the current scope */
    enter_scope(NULL);
    ck_assert_uint_eq(read_live_bytes(scope), 100);
    ck_assert_uint_eq(read_live_bytes(other), 0);
    api->block_free(NULL, data, 0);
    api->policy_release(part);
    api->scope_release(scope);
    api->scope_release(other);
}

static const struct {
    size_t size, bin;
} bins[] = {{0, 0},  {1, 1},   {2, 2},   {3, 2},   {4, 3},
            {64, 7}, {100, 7}, {127, 7}, {128, 8}, {5000000, 23}};

TEST(scope_sizes_include_swept_subpolicies)
{
    memrt_scope_t *outer = open_scope(NULL, "sizes"), *inner = open_scope(outer, "of allocations");
    memrt_policy_t *policy;
    ck_assert_int_eq(api->policy_new(NULL, &policy), MEMRT_OK);
    uint64_t expected[MEMRT_SIZE_BINS] = {0}, found[MEMRT_SIZE_BINS];
    for (size_t i = 0; i < sizeof(bins) / sizeof(bins[0]); i++) {
        enter_scope(i % 2 == 0 ? inner : outer);
        for (int n = 0; n < 40; n++) {
            api->block_free(NULL, api->block_alloc(n % 3 == 0 ? policy : NULL, bins[i].size), 0);
            expected[bins[i].bin]++;
        }
    }
    enter_scope(NULL);
    api->block_free(NULL, api->block_alloc(NULL, 64), 0);
    api->policy_release(policy);
    api->scope_sizes(outer, found);
    ck_assert_mem_eq(found, expected, sizeof(expected));
    api->scope_release(inner);
    api->release_unused();
    api->scope_sizes(outer, found);
    ck_assert_mem_eq(found, expected, sizeof(expected));
    api->scope_release(outer);
}

TEST(refused_request_counts_as_failed_in_the_scope)
{
    memrt_scope_t *scope = open_scope(NULL, "refused");
    uint64_t before = read_scope_stats(scope).failed;
    enter_scope(scope);
    ck_assert_ptr_null(api->block_alloc(NULL, SIZE_MAX / 2));
    enter_scope(NULL);
    ck_assert_uint_eq(read_scope_stats(scope).failed, before + 1);
    api->scope_release(scope);
}

TEST(statistics_outlive_released_scope_and_subpolicy)
{
    memrt_policy_t *policy;
    ck_assert_int_eq(api->policy_new(NULL, &policy), MEMRT_OK);
    memrt_scope_t *outer = open_scope(NULL, "done"), *inner = open_scope(outer, "with");
    enter_scope(inner);
    api->block_free(policy, api->block_alloc(policy, 123456), 0);
    enter_scope(NULL);
    api->policy_release(policy);
    api->scope_release(inner);
    api->release_unused(); /* sweeps the subpolicy */
    ck_assert_uint_eq(read_scope_stats(outer).total, 123456);
    ck_assert_uint_ge(read_scope_stats(outer).peak, 123456);
    memrt_scope_t *again = open_scope(outer, "with");
    ck_assert_uint_eq(read_scope_stats(again).total, 123456);
    api->scope_release(again);
    api->scope_release(outer);
}

TEST(scope_peak_stays_exact_after_subpolicy_is_swept)
{
    memrt_policy_t *policy;
    ck_assert_int_eq(api->policy_new(NULL, &policy), MEMRT_OK);
    memrt_scope_t *scope = open_scope(NULL, "small");
    enter_scope(scope);
    api->block_free(policy, api->block_alloc(policy, 12345), 0); /* less than a gauge reports */
    enter_scope(NULL);
    api->policy_release(policy);
    ck_assert_uint_eq(read_scope_stats(scope).peak, 12345);
    ck_assert_uint_eq(read_scope_stats(scope).peak_error, 0);
    api->release_unused(); /* sweeps the subpolicy */
    ck_assert_uint_eq(read_scope_stats(scope).peak, 12345);
    ck_assert_uint_eq(read_scope_stats(scope).peak_error, 0);
    api->scope_release(scope);
}

TEST(scope_walk_visits_each_scope_once_by_rising_id)
{
    memrt_scope_t *outer = open_scope(NULL, "walk"), *inner = open_scope(outer, "inside");
    uint32_t last = 0, seen = 0;
    memrt_scope_t *scope = NULL, *next;
    while ((next = api->scope_next(scope)) != NULL) {
        if (scope != NULL) {
            api->scope_release(scope);
        }
        scope = next;
        ck_assert_uint_gt(api->scope_id(scope), last);
        last = api->scope_id(scope);
        seen += scope == outer || scope == inner;
    }
    api->scope_release(scope);
    ck_assert_uint_eq(seen, 2);
    api->scope_release(inner);
    api->scope_release(outer);
}

TEST(released_scopes_are_recycled_and_parent_keeps_statistics)
{
    memrt_scope_t *outer = open_scope(NULL, "many");
    for (unsigned i = 0; i < MEMRT_SCOPES_MAX + 100; i++) {
        char name[32];
        snprintf(name, sizeof(name), "request %u", i);
        memrt_scope_t *scope = open_scope(outer, name);
        enter_scope(scope);
        api->block_free(NULL, api->block_alloc(NULL, 10), 0);
        enter_scope(NULL);
        api->scope_release(scope);
    }
    ck_assert_uint_eq(read_scope_stats(outer).alloc, MEMRT_SCOPES_MAX + 100);
    ck_assert_uint_eq(read_scope_stats(outer).total, 10 * (MEMRT_SCOPES_MAX + 100));
    ck_assert_uint_eq(read_live_bytes(outer), 0);
    api->scope_release(outer);
}

TEST(scope_open_fails_when_all_scopes_are_held)
{
    static memrt_scope_t *held[MEMRT_SCOPES_MAX];
    size_t count = 0;
    memrt_status_t status = MEMRT_OK;
    while (status == MEMRT_OK) {
        char name[32];
        snprintf(name, sizeof(name), "held %zu", count);
        ck_assert_uint_le(count, MEMRT_SCOPES_MAX);
        memrt_scope_t *scope = NULL;
        status = api->scope_open(NULL, name, &scope);
        ck_assert_int_eq(status == MEMRT_OK, scope != NULL);
        if (scope != NULL) {
            held[count++] = scope;
        }
    }
    ck_assert_int_eq(status, MEMRT_ELIMIT);
    while (count-- > 0) {
        api->scope_release(held[count]);
    }
    api->scope_release(open_scope(NULL, "one more"));
}

/// Hold all places for scopes, except one.
static void fill_all_slots_but_one(memrt_scope_t **held)
{
    for (unsigned i = 0; i < MEMRT_SCOPES_MAX - 1; i++) {
        char name[32];
        snprintf(name, sizeof(name), "held %u", i);
        held[i] = open_scope(NULL, name);
    }
}

TEST(scope_with_a_live_block_is_not_recycled)
{
    static memrt_scope_t *held[MEMRT_SCOPES_MAX];
    fill_all_slots_but_one(held);
    memrt_scope_t *last = open_scope(NULL, "last"), *refused = NULL;
    enter_scope(last);
    void *data = api->block_alloc(NULL, 100);
    enter_scope(NULL);
    api->scope_release(last);
    ck_assert_int_eq(api->scope_open(NULL, "one more", &refused), MEMRT_ELIMIT);
    ck_assert_ptr_null(refused);
    api->block_free(NULL, data, 0);
    held[MEMRT_SCOPES_MAX - 1] = open_scope(NULL, "one more");
    for (unsigned i = 0; i < MEMRT_SCOPES_MAX; i++) {
        api->scope_release(held[i]);
    }
    api->scope_release(open_scope(NULL, "after them"));
}

static void open_one_after_another(size_t index, void *context)
{
    (void)context;
    for (int round = 0; round < 2000; round++) {
        char name[48];
        snprintf(name, sizeof(name), "of thread %zu, %d", index, round);
        memrt_scope_t *scope;
        REQUIRE(api->scope_open(NULL, name, &scope) == MEMRT_OK);
        api->scope_release(scope);
    }
}

TEST(concurrent_opens_of_recycled_scopes_never_fail)
{
    static memrt_scope_t *held[MEMRT_SCOPES_MAX];
    fill_all_slots_but_one(held);
    for (unsigned i = 0; i < MEMRT_SCOPES_MAX - 1; i++) {
        api->scope_release(held[i]);
    }
    crew_run(4, open_one_after_another, NULL);
}

TEST(allocation_counts_in_no_scope_without_a_free_index)
{
    static memrt_policy_t *policies[MEMRT__ACCOUNTS];
    unsigned count = 0;
    memrt_scope_t *scope = open_scope(NULL, "without a part");
    while (api->policy_new(NULL, &policies[count]) == MEMRT_OK) {
        count++;
    }
    enter_scope(scope);
    memrt_policy_t *refused;
    ck_assert_int_eq(api->scope_policy(scope, NULL, &refused), MEMRT_ENOMEM);
    memrt_meminfo_t *outside = api->allocate(100);
    ck_assert_ptr_null(api->scope_of(outside));
    api->policy_release(policies[--count]);
    memrt_meminfo_t *inside = api->allocate(100); /* the freed policy made room for the subpolicy */
    ck_assert_ptr_eq(api->scope_of(inside), scope);
    enter_scope(NULL);
    api->release(inside);
    api->release(outside);
    while (count > 0) {
        api->policy_release(policies[--count]);
    }
    ck_assert_uint_eq(read_live_bytes(scope), 0);
    api->scope_release(scope);
}

TEST(cached_bytes_do_not_grow_when_policy_and_scope_end)
{
    memrt_policy_t *policy;
    memrt_scope_t *scope = open_scope(NULL, "keeps");
    enter_scope(scope);
    void *data = api->block_alloc(NULL, 100); /* the subpolicy exists before the policy */
    enter_scope(NULL);
    ck_assert_int_eq(api->policy_new(NULL, &policy), MEMRT_OK);
    uint64_t cached = stats_of(NULL).cached;
    api->policy_release(policy);
    api->block_free(NULL, data, 0);
    api->scope_release(scope);
    api->release_unused();
    ck_assert_uint_le(stats_of(NULL).cached, cached);
}

/// Allocate blocks of several sizes in a scope and free them. Returns the cached bytes of the
/// process.
static uint64_t read_cached_after_work(memrt_scope_t *scope)
{
    enum { BLOCKS = 60 };
    void *data[BLOCKS];
    memrt_scope_t *before = enter_scope(scope);
    for (size_t i = 0; i < BLOCKS; i++) {
        data[i] = api->block_alloc(NULL, (size_t)8 << i / 4);
        ck_assert_ptr_nonnull(data[i]);
    }
    for (size_t i = 0; i < BLOCKS; i++) {
        api->block_free(NULL, data[i], 0);
    }
    enter_scope(before);
    memrt_stats_t stats = {.struct_size = sizeof(stats)};
    ck_assert_int_eq(api->stats_read(NULL, &stats), MEMRT_OK);
    return stats.cached;
}

TEST(cached_bytes_do_not_grow_with_the_number_of_scopes)
{
    enum { SCOPES = 200 };
    memrt_scope_t *scopes[SCOPES];
    char name[20];
    uint64_t cached = 0;
    for (int i = 0; i < SCOPES; i++) {
        snprintf(name, sizeof(name), "scope %d", i);
        scopes[i] = open_scope(NULL, name);
        uint64_t now = read_cached_after_work(scopes[i]);
        ck_assert(i < SCOPES / 10 || now <= cached); /* the caches adapt in the first scopes */
        cached = memrt__size_max(cached, now);
    }
    for (int i = 0; i < SCOPES; i++) {
        api->scope_release(scopes[i]);
    }
}

TEST(active_scope_keeps_counting_after_sweep_of_subpolicy)
{
    memrt_scope_t *scope = open_scope(NULL, "in use"), *other = open_scope(NULL, "goes");
    enter_scope(other);
    api->block_free(NULL, api->block_alloc(NULL, 100), 0);
    enter_scope(scope);
    void *data = api->block_alloc(NULL, 100);
    api->scope_release(other);
    api->release_unused(); /* sweeps the subpolicy of `other` */
    void *more = api->block_alloc(NULL, 100);
    ck_assert_uint_eq(read_live_bytes(scope), 200);
    enter_scope(NULL);
    api->block_free(NULL, data, 0);
    api->block_free(NULL, more, 0);
    api->scope_release(scope);
}

/// Allocate in a scope while the nth memory request fails. The thread has no record, or reuses the
/// record of an earlier thread.
static void allocate_in_scope_while_one_fails(size_t nth, void *context)
{
    memrt_scope_t *scope = context;
    suite_fail_request(nth + 1);
    memrt_status_t status = api->scope_enter(scope, NULL);
    memrt_meminfo_t *mi = api->allocate(100);
    suite_fail_request(0);
    REQUIRE(status == MEMRT_OK || status == MEMRT_ENOMEM);
    if (mi != NULL) {
        REQUIRE(status != MEMRT_OK || api->scope_of(mi) == NULL || api->scope_of(mi) == scope);
        api->release(mi);
    }
}

TEST(failed_scope_setup_keeps_statistics_balanced)
{
    memrt_stats_t before = stats_of(NULL);
    for (size_t nth = 0; nth < 12; nth++) {
        char name[24];
        snprintf(name, sizeof(name), "failing %zu", nth);
        memrt_scope_t *scope = open_scope(NULL, name);
        enter_scope(scope);
        suite_fail_request(nth + 1);
        memrt_meminfo_t *mi = api->allocate(100);
        suite_fail_request(0);
        enter_scope(NULL);
        if (mi != NULL) {
            ck_assert(api->scope_of(mi) == NULL || api->scope_of(mi) == scope);
            api->release(mi);
        }
        crew_run(nth + 1, allocate_in_scope_while_one_fails, scope);
        memrt_stats_t now = read_scope_stats(scope);
        ck_assert_uint_eq(now.alloc, now.free);
        ck_assert_uint_eq(now.live, 0);
        api->scope_release(scope);
    }
    ck_assert_uint_eq(stats_of(NULL).live, before.live);
}

static void work_in_scopes(size_t index, void *context)
{
    memrt_scope_t *outer = context, *before;
    chance_t chance = chance_from((unsigned)index);
    void *kept[20] = {NULL};
    for (int round = 0; round < 3000; round++) {
        char name[24];
        snprintf(name, sizeof(name), "%zu", chance_below(&chance, 10));
        memrt_scope_t *scope;
        REQUIRE(api->scope_open(outer, name, &scope) == MEMRT_OK);
        REQUIRE(api->scope_enter(scope, &before) == MEMRT_OK);
        size_t at = chance_below(&chance, 20);
        api->block_free(NULL, kept[at], 0);
        kept[at] = api->block_alloc(NULL, 1 + chance_below(&chance, 100000));
        REQUIRE(kept[at] != NULL);
        REQUIRE(api->scope_enter(before, NULL) == MEMRT_OK);
        api->scope_release(scope);
        if (round % 500 == 0) {
            api->release_unused();
        }
    }
    for (size_t i = 0; i < 20; i++) {
        api->block_free(NULL, kept[i], 0);
    }
}

TEST(threads_sharing_scopes_keep_exact_statistics)
{
    memrt_scope_t *outer = open_scope(NULL, "threads");
    memrt_stats_t process = stats_of(NULL);
    crew_run(4, work_in_scopes, outer);
    memrt_stats_t now = read_scope_stats(outer), after = stats_of(NULL);
    ck_assert_uint_eq(now.alloc, 12000);
    ck_assert_uint_eq(now.free, 12000);
    ck_assert_uint_eq(now.live, 0);
    ck_assert_uint_eq(after.alloc - process.alloc, 12000);
    ck_assert_uint_eq(after.total - process.total, now.total);
    api->scope_release(outer);
}

static void enter_without_leaving(size_t index, void *context)
{
    (void)index;
    REQUIRE(api->scope_enter(context, NULL) == MEMRT_OK);
}

static void expect_no_current_scope(size_t index, void *context)
{
    (void)index, (void)context;
    REQUIRE(api->scope_current() == NULL);
    api->block_free(NULL, api->block_alloc(NULL, 100), 0);
}

TEST(scope_of_an_ended_thread_is_not_inherited)
{
    memrt_scope_t *scope = open_scope(NULL, "left behind");
    for (int round = 0; round < 5; round++) {
        crew_run(1, enter_without_leaving, scope);
        crew_run(1, expect_no_current_scope, NULL);
    }
    ck_assert_uint_eq(read_scope_stats(scope).alloc, 0);
    api->scope_release(scope);
}

static void release_scope_twice(void *context)
{
    (void)context;
    memrt_scope_t *scope = open_scope(NULL, "released twice");
    api->scope_release(scope);
    api->scope_release(scope);
}

TEST(second_release_of_a_scope_aborts_with_a_message)
{
    child_expect_abort(release_scope_twice, NULL, "scope_release of ");
}

#define SUBPOLICIES (2 * MEMRT__SWEEP_STEPS)

/// Create a policy with a block in each of `count` new scopes.
static memrt_policy_t *create_policy_in_scopes(size_t count, memrt_scope_t **scopes, void **blocks)
{
    memrt_policy_t *policy;
    ck_assert_int_eq(api->policy_new(NULL, &policy), MEMRT_OK);
    for (size_t i = 0; i < count; i++) {
        char name[32];
        snprintf(name, sizeof(name), "swept %zu", i);
        scopes[i] = open_scope(NULL, name);
        memrt_scope_t *before = enter_scope(scopes[i]);
        blocks[i] = api->block_alloc(policy, 100);
        ck_assert_ptr_nonnull(blocks[i]);
        enter_scope(before);
    }
    return policy;
}

static void free_blocks_in_scopes(void **blocks, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        api->block_free(NULL, blocks[i], 100);
    }
}

static void release_scopes(memrt_scope_t **scopes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        api->scope_release(scopes[i]);
    }
}

/// Return the number of subpolicies in the table.
static size_t count_subpolicies(void)
{
    size_t count = 0;
    for (uint32_t index = 1; index < memrt__policy_table_end; index++) {
        const memrt_policy_t *policy = memrt__policies[index];
        count += policy != NULL && memrt__policy_is_subpolicy(policy);
    }
    return count;
}

static bool has_policy_at(uint32_t index)
{
    memrt_policy_t *policy = api->policy_at(index);
    if (policy != NULL) {
        api->policy_release(policy);
    }
    return policy != NULL;
}

TEST(released_policy_leaves_at_once_with_its_subpolicies)
{
    memrt_scope_t *scopes[MEMRT__SWEEP_STEPS];
    void *blocks[MEMRT__SWEEP_STEPS];
    memrt_policy_t *policy = create_policy_in_scopes(MEMRT__SWEEP_STEPS, scopes, blocks);
    uint32_t at = api->policy_index(policy);
    size_t before = count_subpolicies();
    free_blocks_in_scopes(blocks, MEMRT__SWEEP_STEPS);
    api->policy_release(policy);
    ck_assert_uint_eq(before - count_subpolicies(), MEMRT__SWEEP_STEPS);
    ck_assert_ptr_null(memrt__policies[at]);
    release_scopes(scopes, MEMRT__SWEEP_STEPS);
}

TEST(released_policy_waits_for_a_sweep_of_many_subpolicies)
{
    memrt_scope_t *scopes[SUBPOLICIES];
    void *blocks[SUBPOLICIES];
    memrt_policy_t *policy = create_policy_in_scopes(SUBPOLICIES, scopes, blocks);
    uint32_t at = api->policy_index(policy);
    size_t before = count_subpolicies();
    free_blocks_in_scopes(blocks, SUBPOLICIES);
    api->policy_release(policy);
    ck_assert_uint_eq(before - count_subpolicies(), MEMRT__SWEEP_STEPS);
    ck_assert_ptr_eq(memrt__policies[at], policy);
    ck_assert(has_policy_at(at));
    ck_assert(!has_policy_at(at));
    ck_assert_uint_eq(before - count_subpolicies(), SUBPOLICIES);
    release_scopes(scopes, SUBPOLICIES);
}

TEST(released_policy_waits_for_the_blocks_of_a_subpolicy)
{
    memrt_scope_t *scopes[3];
    void *blocks[3];
    memrt_policy_t *policy = create_policy_in_scopes(3, scopes, blocks);
    uint32_t at = api->policy_index(policy);
    size_t before = count_subpolicies();
    free_blocks_in_scopes(blocks, 1);
    free_blocks_in_scopes(&blocks[2], 1);
    api->policy_release(policy);
    ck_assert_uint_eq(before - count_subpolicies(), 1); /* the latest subpolicy */
    ck_assert(has_policy_at(at));
    free_blocks_in_scopes(&blocks[1], 1);
    ck_assert(has_policy_at(at));
    ck_assert(!has_policy_at(at));
    ck_assert_uint_eq(before - count_subpolicies(), 3);
    release_scopes(scopes, 3);
}

TEST(last_reference_to_a_subpolicy_destroys_its_released_base)
{
    memrt_scope_t *scope = open_scope(NULL, "last");
    memrt_policy_t *policy, *subpolicy;
    ck_assert_int_eq(api->policy_new(NULL, &policy), MEMRT_OK);
    ck_assert_int_eq(api->scope_policy(scope, policy, &subpolicy), MEMRT_OK);
    uint32_t at = api->policy_index(policy);
    api->policy_release(policy);
    ck_assert(has_policy_at(at));
    size_t before = count_subpolicies();
    api->policy_release(subpolicy);
    ck_assert_uint_eq(before - count_subpolicies(), 1);
    ck_assert_ptr_null(memrt__policies[at]);
    api->scope_release(scope);
}
