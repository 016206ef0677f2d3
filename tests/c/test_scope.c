#include "support/suite.h"

#include <stdio.h>
#include <string.h>

#include "runtime/alloc/scope.h"
#include "support/books.h"
#include "support/chance.h"
#include "support/crew.h"

static memrt_scope_t *open_scope(memrt_scope_t *parent, const char *name)
{
    memrt_scope_t *scope = NULL;
    ck_assert_int_eq(api->scope_open(parent, name, &scope), MEMRT_OK);
    ck_assert_ptr_nonnull(scope);
    return scope;
}

static memrt_scope_t *enter(memrt_scope_t *scope)
{
    memrt_scope_t *before;
    ck_assert_int_eq(api->scope_enter(scope, &before), MEMRT_OK);
    return before;
}

static memrt_stats_t figures(const memrt_scope_t *scope)
{
    memrt_stats_t stats = {.struct_size = sizeof(stats)};
    ck_assert_int_eq(api->scope_stats(scope, &stats), MEMRT_OK);
    return stats;
}

static uint64_t live_in(const memrt_scope_t *scope)
{
    return figures(scope).live;
}

TEST(a_scope_is_found_again_by_its_name_and_the_one_around_it)
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

TEST(a_name_that_is_none_is_refused)
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

/// Each way to be born.
enum { ALLOCATE, NEW, BLOCK, ZEROED, TINY, ADOPTED, RESIZABLE, BORNS };

typedef struct born {
    void *data;
    memrt_meminfo_t *mi;
} born_t;

static born_t be_born(int way, memrt_policy_t *policy)
{
    static char foreign[100];
    memrt_new_options_t options = {.struct_size = sizeof(options), .policy = policy};
    born_t born = {NULL, NULL};
    switch (way) {
    case ALLOCATE:
        born.mi = api->allocate(100);
        break;
    case NEW:
        ck_assert_int_eq(api->meminfo_new(100, &options, &born.mi), MEMRT_OK);
        break;
    case BLOCK:
        born.data = api->block_alloc(policy, 100);
        break;
    case ZEROED:
        born.data = api->block_calloc(policy, 10, 10);
        break;
    case TINY:
        born.data = api->block_alloc(policy, 8);
        break;
    case ADOPTED:
        ck_assert_int_eq(api->meminfo_adopt(foreign, 100, &options, &born.mi), MEMRT_OK);
        break;
    default:
        ck_assert_int_eq(api->resizable_new(100, &options, &born.mi), MEMRT_OK);
    }
    return born;
}

static void die(born_t born)
{
    if (born.mi != NULL) {
        api->release(born.mi);
    } else {
        api->block_free(NULL, born.data, 0);
    }
}

static uint64_t blocks_in(const memrt_scope_t *scope)
{
    memrt_stats_t now = figures(scope);
    return now.alloc - now.free;
}

TEST_EACH(what_is_born_in_a_scope_is_the_scopes_wherever_it_dies, 2 * BORNS)
{
    memrt_policy_t *policy = NULL;
    if (index >= BORNS) {
        ck_assert_int_eq(api->policy_new(NULL, &policy), MEMRT_OK);
    }
    memrt_scope_t *scope = open_scope(NULL, "births");
    uint64_t made = figures(scope).alloc;
    for (int round = 0; round < 300; round++) { /* the short ways are open after a few */
        enter(scope);
        born_t born = be_born(index % BORNS, policy);
        enter(NULL);
        born_t outside = be_born(index % BORNS, policy);
        ck_assert_uint_eq(blocks_in(scope), index % BORNS == RESIZABLE ? 2 : 1);
        if (born.mi != NULL) {
            ck_assert_ptr_eq(api->scope_of(born.mi), scope);
            ck_assert_ptr_null(api->scope_of(outside.mi));
            ck_assert_ptr_eq(api->policy_of(born.mi), api->policy_of(outside.mi));
        }
        die(outside);
        die(born);
        ck_assert_uint_eq(blocks_in(scope), 0);
    }
    ck_assert_uint_ge(figures(scope).alloc, made + 300);
    ck_assert_uint_eq(live_in(scope), 0);
    api->scope_release(scope);
    if (policy != NULL) {
        api->policy_release(policy);
    }
}

#define ROW 50

/// Without leaving it between: the thread knows from the last time where it counts.
TEST_EACH(births_in_a_row_are_the_scopes_each, 2 * BORNS)
{
    memrt_policy_t *policy = NULL;
    if (index >= BORNS) {
        ck_assert_int_eq(api->policy_new(NULL, &policy), MEMRT_OK);
    }
    memrt_scope_t *scope = open_scope(NULL, "row");
    uint64_t each = index % BORNS == RESIZABLE ? 2 : 1;
    enter(scope);
    for (int turn = 0; turn < 3; turn++) {
        born_t row[ROW];
        for (uint64_t i = 0; i < ROW; i++) {
            row[i] = be_born(index % BORNS, policy);
            ck_assert_uint_eq(blocks_in(scope), (i + 1) * each);
        }
        for (size_t i = 0; i < ROW; i++) {
            die(row[i]);
        }
        ck_assert_uint_eq(blocks_in(scope), 0);
    }
    enter(NULL);
    ck_assert_uint_eq(live_in(scope), 0);
    api->scope_release(scope);
    if (policy != NULL) {
        api->policy_release(policy);
    }
}

TEST(a_large_birth_between_small_ones_is_the_scopes)
{
    const size_t sizes[] = {100, 100, 3000000, 100, 0, 100};
    memrt_scope_t *scope = open_scope(NULL, "large");
    uint64_t expected[MEMRT_SIZE_BINS] = {[7] = 4, [22] = 1, [0] = 1}, found[MEMRT_SIZE_BINS];
    enter(scope);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        memrt_meminfo_t *mi = api->allocate(sizes[i]);
        ck_assert_uint_eq(live_in(scope), sizes[i]);
        api->release(mi);
    }
    enter(NULL);
    api->scope_sizes(scope, found);
    ck_assert_mem_eq(found, expected, sizeof(expected));
    api->scope_release(scope);
}

TEST(figures_of_a_scope_have_those_inside_of_it)
{
    memrt_scope_t *outer = open_scope(NULL, "stage"), *inner = open_scope(outer, "part");
    enter(outer);
    void *first = api->block_alloc(NULL, 1000);
    ck_assert_ptr_eq(enter(inner), outer);
    ck_assert_ptr_eq(api->scope_current(), inner);
    void *second = api->block_alloc(NULL, 200);
    ck_assert_ptr_eq(enter(NULL), inner);
    ck_assert_ptr_null(api->scope_current());
    ck_assert_uint_eq(live_in(outer), 1200);
    ck_assert_uint_eq(live_in(inner), 200);
    api->block_free(NULL, first, 0);
    ck_assert_uint_eq(live_in(outer), 200);
    memrt_stats_t both = figures(outer);
    ck_assert_uint_ge(both.peak + both.peak_error, 1200);
    ck_assert_uint_ge(1200 + both.peak_error, both.peak);
    ck_assert_uint_eq(figures(inner).peak, 200);
    api->scope_reset_peak(outer);
    ck_assert_uint_eq(figures(outer).peak, 200);
    api->block_free(NULL, second, 0);
    ck_assert_uint_eq(figures(outer).total, 1200);
    api->scope_release(inner);
    api->scope_release(outer);
}

TEST(a_resize_is_of_the_scope_of_birth)
{
    memrt_scope_t *born = open_scope(NULL, "born"), *elsewhere = open_scope(NULL, "elsewhere");
    enter(born);
    void *data = api->block_alloc(NULL, 500);
    enter(elsewhere);
    size_t sizes[] = {600, 100000, 3000000, 40, 700};
    for (size_t i = 0; i < 5; i++) {
        data = api->block_realloc(NULL, data, sizes[i]);
        ck_assert_uint_eq(live_in(born), sizes[i]);
        ck_assert_uint_eq(live_in(elsewhere), 0);
    }
    enter(NULL);
    api->block_free(NULL, data, 0);
    ck_assert_uint_eq(figures(born).realloc, 5);
    api->scope_release(born);
    api->scope_release(elsewhere);
}

TEST(a_resize_inside_of_a_scope_is_not_the_scopes_when_the_birth_was_outside)
{
    memrt_scope_t *scope = open_scope(NULL, "resizer");
    memrt_meminfo_t *mi;
    size_t sizes[] = {20, 60, 500, 64, 3000000, 8};
    api->block_free(NULL, api->block_alloc(NULL, 8), 0); /* tiny blocks take a thread's record */
    void *data = api->block_alloc(NULL, 8), *shared = api->block_alloc(NULL, 8);
    ck_assert_int_eq(api->block_meminfo(shared, &mi), MEMRT_OK);
    uint64_t live = stats_of(NULL).live;
    enter(scope);
    for (size_t i = 0; i < 6; i++) {
        data = api->block_realloc(NULL, data, sizes[i]);
        ck_assert_uint_eq(stats_of(NULL).live, live + sizes[i] - 8);
        ck_assert_uint_eq(live_in(scope), 0);
    }
    shared = api->block_realloc(NULL, shared, 30); /* a block of its own: mi holds the other */
    ck_assert_uint_eq(live_in(scope), 0);
    enter(NULL);
    ck_assert_uint_eq(figures(scope).alloc, 0);
    api->block_free(NULL, data, 0);
    api->block_free(NULL, shared, 0);
    api->release(mi);
    api->scope_release(scope);
}

TEST(a_policy_and_the_process_count_what_is_born_in_scopes_too)
{
    memrt_policy_t *policy;
    ck_assert_int_eq(api->policy_new(NULL, &policy), MEMRT_OK);
    memrt_stats_t process = stats_of(NULL);
    memrt_scope_t *scope = open_scope(NULL, "of a policy");
    enter(scope);
    void *inside = api->block_alloc(policy, 5000);
    enter(NULL);
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

TEST(a_policy_of_a_scope_is_the_same_every_time_and_leaves_no_trace)
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
    api->scope_release(scope); /* the part holds both */
    void *data = api->block_alloc(part, 1000);
    ck_assert_uint_eq((uintptr_t)data % 256, 0);
    ck_assert_uint_eq(live_in(scope), 1000);
    ck_assert_uint_eq(stats_of(part).live, 1000);
    api->policy_release(again);
    api->policy_release(part);
    api->block_free(NULL, data, 0);
}

TEST(a_thread_that_is_in_no_scope_of_its_own_uses_that_of_a_handler)
{
    memrt_policy_t *part;
    memrt_scope_t *scope = open_scope(NULL, "handler"), *other = open_scope(NULL, "other");
    ck_assert_int_eq(api->scope_policy(scope, NULL, &part), MEMRT_OK);
    enter(other);
    void *data = api->block_alloc(part, 100); /* who names a scope means it */
    enter(NULL);
    ck_assert_uint_eq(live_in(scope), 100);
    ck_assert_uint_eq(live_in(other), 0);
    api->block_free(NULL, data, 0);
    api->policy_release(part);
    api->scope_release(scope);
    api->scope_release(other);
}

static const struct {
    size_t size, bin;
} bins[] = {{0, 0},  {1, 1},   {2, 2},   {3, 2},   {4, 3},
            {64, 7}, {100, 7}, {127, 7}, {128, 8}, {5000000, 23}};

TEST(births_are_counted_by_size_also_of_parts_that_are_gone)
{
    memrt_scope_t *outer = open_scope(NULL, "sizes"), *inner = open_scope(outer, "of births");
    memrt_policy_t *policy;
    ck_assert_int_eq(api->policy_new(NULL, &policy), MEMRT_OK);
    uint64_t expected[MEMRT_SIZE_BINS] = {0}, found[MEMRT_SIZE_BINS];
    for (size_t i = 0; i < sizeof(bins) / sizeof(bins[0]); i++) {
        enter(i % 2 == 0 ? inner : outer);
        for (int n = 0; n < 40; n++) {
            api->block_free(NULL, api->block_alloc(n % 3 == 0 ? policy : NULL, bins[i].size), 0);
            expected[bins[i].bin]++;
        }
    }
    enter(NULL);
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

TEST(a_refused_request_is_the_scopes)
{
    memrt_scope_t *scope = open_scope(NULL, "refused");
    uint64_t before = figures(scope).failed;
    enter(scope);
    ck_assert_ptr_null(api->block_alloc(NULL, SIZE_MAX / 2));
    enter(NULL);
    ck_assert_uint_eq(figures(scope).failed, before + 1);
    api->scope_release(scope);
}

TEST(figures_stay_when_nobody_holds_the_scope_and_its_part_is_gone)
{
    memrt_policy_t *policy;
    ck_assert_int_eq(api->policy_new(NULL, &policy), MEMRT_OK);
    memrt_scope_t *outer = open_scope(NULL, "done"), *inner = open_scope(outer, "with");
    enter(inner);
    api->block_free(policy, api->block_alloc(policy, 123456), 0);
    enter(NULL);
    api->policy_release(policy);
    api->scope_release(inner);
    api->release_unused(); /* which sweeps */
    ck_assert_uint_eq(figures(outer).total, 123456);
    ck_assert_uint_ge(figures(outer).peak, 123456);
    memrt_scope_t *again = open_scope(outer, "with");
    ck_assert_uint_eq(figures(again).total, 123456);
    api->scope_release(again);
    api->scope_release(outer);
}

TEST(the_peak_of_a_scope_is_as_exact_when_its_part_is_gone)
{
    memrt_policy_t *policy;
    ck_assert_int_eq(api->policy_new(NULL, &policy), MEMRT_OK);
    memrt_scope_t *scope = open_scope(NULL, "small");
    enter(scope);
    api->block_free(policy, api->block_alloc(policy, 12345), 0); /* less than a gauge tells */
    enter(NULL);
    api->policy_release(policy);
    ck_assert_uint_eq(figures(scope).peak, 12345);
    ck_assert_uint_eq(figures(scope).peak_error, 0);
    api->release_unused(); /* which sweeps */
    ck_assert_uint_eq(figures(scope).peak, 12345);
    ck_assert_uint_eq(figures(scope).peak_error, 0);
    api->scope_release(scope);
}

TEST(a_walk_sees_each_scope_once_and_parents_first)
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

TEST(scopes_that_nobody_needs_make_room_for_others_and_the_one_around_keeps_their_figures)
{
    memrt_scope_t *outer = open_scope(NULL, "many");
    for (unsigned i = 0; i < MEMRT_SCOPES_MAX + 100; i++) {
        char name[32];
        snprintf(name, sizeof(name), "request %u", i);
        memrt_scope_t *scope = open_scope(outer, name);
        enter(scope);
        api->block_free(NULL, api->block_alloc(NULL, 10), 0);
        enter(NULL);
        api->scope_release(scope);
    }
    ck_assert_uint_eq(figures(outer).alloc, MEMRT_SCOPES_MAX + 100);
    ck_assert_uint_eq(figures(outer).total, 10 * (MEMRT_SCOPES_MAX + 100));
    ck_assert_uint_eq(live_in(outer), 0);
    api->scope_release(outer);
}

TEST(where_all_scopes_are_held_another_is_refused)
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

/// Every place for a scope but one is taken and held.
static void fill_all_places_but_one(memrt_scope_t **held)
{
    for (unsigned i = 0; i < MEMRT_SCOPES_MAX - 1; i++) {
        char name[32];
        snprintf(name, sizeof(name), "held %u", i);
        held[i] = open_scope(NULL, name);
    }
}

TEST(a_scope_with_a_live_block_makes_no_room_until_that_is_freed)
{
    static memrt_scope_t *held[MEMRT_SCOPES_MAX];
    fill_all_places_but_one(held);
    memrt_scope_t *last = open_scope(NULL, "last"), *refused = NULL;
    enter(last);
    void *data = api->block_alloc(NULL, 100);
    enter(NULL);
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

TEST(threads_that_make_room_at_once_are_not_refused_for_what_the_other_took)
{
    static memrt_scope_t *held[MEMRT_SCOPES_MAX];
    fill_all_places_but_one(held);
    for (unsigned i = 0; i < MEMRT_SCOPES_MAX - 1; i++) {
        api->scope_release(held[i]);
    }
    crew_run(4, open_one_after_another, NULL);
}

TEST(where_no_index_is_free_a_block_is_born_in_no_scope)
{
    static memrt_policy_t *policies[MEMRT__ACCOUNTS];
    unsigned count = 0;
    memrt_scope_t *scope = open_scope(NULL, "without a part");
    while (api->policy_new(NULL, &policies[count]) == MEMRT_OK) {
        count++;
    }
    enter(scope);
    memrt_policy_t *refused;
    ck_assert_int_eq(api->scope_policy(scope, NULL, &refused), MEMRT_ENOMEM);
    memrt_meminfo_t *outside = api->allocate(100);
    ck_assert_ptr_null(api->scope_of(outside));
    api->policy_release(policies[--count]);
    memrt_meminfo_t *inside = api->allocate(100); /* the policy that is gone leaves room for it */
    ck_assert_ptr_eq(api->scope_of(inside), scope);
    enter(NULL);
    api->release(inside);
    api->release(outside);
    while (count > 0) {
        api->policy_release(policies[--count]);
    }
    ck_assert_uint_eq(live_in(scope), 0);
    api->scope_release(scope);
}

TEST(what_an_allocator_keeps_is_counted_once_for_a_policy_and_its_parts)
{
    memrt_policy_t *policy;
    memrt_scope_t *scope = open_scope(NULL, "keeps");
    enter(scope);
    void *data = api->block_alloc(NULL, 100); /* its part comes before the policy */
    enter(NULL);
    ck_assert_int_eq(api->policy_new(NULL, &policy), MEMRT_OK);
    uint64_t cached = stats_of(NULL).cached;
    api->policy_release(policy);
    api->block_free(NULL, data, 0);
    api->scope_release(scope);
    api->release_unused();
    ck_assert_uint_le(stats_of(NULL).cached, cached);
}

TEST(a_part_that_goes_elsewhere_does_not_disturb_those_that_are_in_use)
{
    memrt_scope_t *scope = open_scope(NULL, "in use"), *other = open_scope(NULL, "goes");
    enter(other);
    api->block_free(NULL, api->block_alloc(NULL, 100), 0);
    enter(scope);
    void *data = api->block_alloc(NULL, 100);
    api->scope_release(other);
    api->release_unused(); /* which sweeps the part of the other */
    void *more = api->block_alloc(NULL, 100);
    ck_assert_uint_eq(live_in(scope), 200);
    enter(NULL);
    api->block_free(NULL, data, 0);
    api->block_free(NULL, more, 0);
    api->scope_release(scope);
}

static void fail_at(uint64_t nth)
{
    memrt_failure_plan_t plan = {
        .struct_size = sizeof(plan), .nth = nth, .this_thread_only = nth != 0};
    REQUIRE(api->fail_allocations(nth == 0 ? NULL : &plan) == MEMRT_OK);
}

/// On a thread that was in memrt never before, or whose record comes from one that was.
static void allocate_in_scope_while_one_fails(size_t nth, void *context)
{
    memrt_scope_t *scope = context;
    fail_at(nth + 1);
    memrt_status_t status = api->scope_enter(scope, NULL);
    memrt_meminfo_t *mi = api->allocate(100);
    fail_at(0);
    REQUIRE(status == MEMRT_OK || status == MEMRT_ENOMEM);
    if (mi != NULL) {
        REQUIRE(status != MEMRT_OK || api->scope_of(mi) == NULL || api->scope_of(mi) == scope);
        api->release(mi);
    }
}

TEST(without_memory_for_what_a_scope_needs_a_block_is_still_counted_somewhere)
{
    memrt_stats_t before = stats_of(NULL);
    for (size_t nth = 0; nth < 12; nth++) {
        char name[24];
        snprintf(name, sizeof(name), "failing %zu", nth);
        memrt_scope_t *scope = open_scope(NULL, name);
        enter(scope);
        fail_at(nth + 1);
        memrt_meminfo_t *mi = api->allocate(100);
        fail_at(0);
        enter(NULL);
        if (mi != NULL) {
            ck_assert(api->scope_of(mi) == NULL || api->scope_of(mi) == scope);
            api->release(mi);
        }
        crew_run(nth + 1, allocate_in_scope_while_one_fails, scope);
        memrt_stats_t now = figures(scope);
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

TEST(threads_in_the_same_scopes_lose_nothing)
{
    memrt_scope_t *outer = open_scope(NULL, "threads");
    memrt_stats_t process = stats_of(NULL);
    crew_run(4, work_in_scopes, outer);
    memrt_stats_t now = figures(outer), after = stats_of(NULL);
    ck_assert_uint_eq(now.alloc, 12000);
    ck_assert_uint_eq(now.free, 12000);
    ck_assert_uint_eq(now.live, 0);
    ck_assert_uint_eq(after.alloc - process.alloc, 12000);
    ck_assert_uint_eq(after.total - process.total, now.total);
    api->scope_release(outer);
}

static void stay_inside(size_t index, void *context)
{
    (void)index;
    REQUIRE(api->scope_enter(context, NULL) == MEMRT_OK);
}

static void be_outside(size_t index, void *context)
{
    (void)index, (void)context;
    REQUIRE(api->scope_current() == NULL);
    api->block_free(NULL, api->block_alloc(NULL, 100), 0);
}

TEST(a_scope_that_a_thread_did_not_leave_is_not_the_next_threads)
{
    memrt_scope_t *scope = open_scope(NULL, "left behind");
    for (int round = 0; round < 5; round++) {
        crew_run(1, stay_inside, scope);
        crew_run(1, be_outside, NULL);
    }
    ck_assert_uint_eq(figures(scope).alloc, 0);
    api->scope_release(scope);
}
