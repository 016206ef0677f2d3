#include "support/suite.h"

#include "runtime/config/fault_injection.h"
#include "support/crew.h"

/// Return a mask of the next requests that fail; bit 0 is the first request.
static unsigned find_due_requests(unsigned requests)
{
    unsigned mask = 0;
    for (unsigned i = 0; i < requests; i++) {
        mask |= (unsigned)memrt__fault_is_due() << i;
    }
    return mask;
}

static unsigned find_due_with_plan(uint64_t nth, uint64_t every)
{
    memrt_failure_plan_t plan = {.struct_size = sizeof(plan), .nth = nth, .every = every};
    memrt__fault_set(&plan);
    unsigned mask = find_due_requests(8);
    ck_assert_uint_eq(memrt__fault_points(), 8);
    memrt__fault_set(NULL);
    return mask;
}

TEST(no_request_fails_without_failure_plan)
{
    ck_assert_uint_eq(find_due_requests(8), 0);
    ck_assert_uint_eq(memrt__fault_points(), 0);
}

TEST(plan_fails_only_nth_request)
{
    ck_assert_uint_eq(find_due_with_plan(1, 0), 0x01);
    ck_assert_uint_eq(find_due_with_plan(3, 0), 0x04);
    ck_assert_uint_eq(find_due_with_plan(9, 0), 0);
}

TEST(plan_fails_all_requests_from_nth_on)
{
    ck_assert_uint_eq(find_due_with_plan(1, 1), 0xFF);
    ck_assert_uint_eq(find_due_with_plan(3, 1), 0xFC);
}

TEST(plan_fails_every_kth_request_from_nth_on)
{
    ck_assert_uint_eq(find_due_with_plan(2, 3), 0x92);
}

TEST(plan_without_nth_only_counts_requests)
{
    ck_assert_uint_eq(find_due_with_plan(0, 1), 0);
}

TEST(new_plan_restarts_request_count)
{
    ck_assert_uint_eq(find_due_with_plan(8, 0), 0x80);
    ck_assert_uint_eq(find_due_with_plan(8, 0), 0x80);
}

static void find_due_on_thread(size_t index, void *context)
{
    ((unsigned *)context)[index] = find_due_requests(4);
}

TEST(thread_plan_ignores_requests_of_other_threads)
{
    unsigned masks[2] = {1, 1};
    memrt_failure_plan_t plan = {
        .struct_size = sizeof(plan), .nth = 1, .every = 1, .this_thread_only = 1};
    memrt__fault_set(&plan);
    crew_run(2, find_due_on_thread, masks);
    ck_assert_uint_eq(memrt__fault_points(), 0);
    ck_assert_uint_eq(find_due_requests(2), 3);
    memrt__fault_set(NULL);
    ck_assert_uint_eq(masks[0] | masks[1], 0);
}

TEST(process_plan_counts_requests_of_all_threads)
{
    unsigned masks[2] = {0, 0};
    memrt_failure_plan_t plan = {.struct_size = sizeof(plan), .nth = 5, .every = 1};
    memrt__fault_set(&plan);
    crew_run(2, find_due_on_thread, masks);
    ck_assert_uint_eq(memrt__fault_points(), 8);
    memrt__fault_set(NULL);
    ck_assert_int_eq(__builtin_popcount(masks[0]) + __builtin_popcount(masks[1]), 4);
}

/// Fail all requests of this thread that a plan selects, and return the failures.
static memrt_failure_t read_failures(memrt_failure_plan_t plan, void (*act)(void))
{
    memrt_failure_t failures = {.struct_size = sizeof(failures)};
    plan.struct_size = sizeof(plan);
    plan.nth = plan.every = 1;
    plan.this_thread_only = 1;
    ck_assert_int_eq(api->fail_allocations(&plan), MEMRT_OK);
    act();
    ck_assert_int_eq(api->failure_read(&failures), MEMRT_OK);
    ck_assert_uint_eq(api->failure_points(), failures.points);
    ck_assert_int_eq(api->fail_allocations(NULL), MEMRT_OK);
    return failures;
}

static memrt_policy_t *policy;
static memrt_scope_t *outer, *inner;
static void *growing;

static void create_objects(void)
{
    memrt_policy_options_t options = {.struct_size = sizeof(options), .name = "fault"};
    ck_assert_int_eq(api->policy_new(&options, &policy), MEMRT_OK);
    ck_assert_int_eq(api->scope_open(NULL, "outer", &outer), MEMRT_OK);
    ck_assert_int_eq(api->scope_open(outer, "inner", &inner), MEMRT_OK);
    growing = api->block_alloc(policy, 200);
    ck_assert_int_eq(api->scope_enter(inner, NULL), MEMRT_OK); /* creates subpolicies */
    api->block_free(NULL, api->block_alloc(policy, 200), 200);
    api->block_free(NULL, api->block_alloc(NULL, 200), 200);
    ck_assert_int_eq(api->scope_enter(NULL, NULL), MEMRT_OK);
}

/// Request memory of each kind: 100 to 500 bytes.
static void request_all_kinds(void)
{
    memrt_new_options_t options = {.struct_size = sizeof(options), .name = "fault"};
    memrt_meminfo_t *mi = NULL;
    void *data = api->block_alloc(policy, 100);
    api->block_free(NULL, data, 100);
    ck_assert(api->meminfo_new(300, &options, &mi) != MEMRT_OK || mi != NULL);
    if (mi != NULL) {
        api->release(mi);
    }
    void *grown = api->block_realloc(policy, growing, 100000);
    growing = grown == NULL ? growing : grown;
    (void)!api->scope_enter(inner, NULL);
    api->block_free(NULL, api->block_alloc(policy, 500), 500);
    (void)!api->scope_enter(NULL, NULL);
}

typedef struct selection {
    memrt_failure_plan_t plan;
    unsigned kind;
    size_t size, points;
} selection_t;

TEST(plan_selects_requests_by_kind_size_policy_and_scope)
{
    create_objects();
    const selection_t selections[] = {
        {{.kinds = MEMRT_FAULT_BLOCK}, MEMRT_FAULT_BLOCK, 100, 2},
        {{.kinds = MEMRT_FAULT_MEMINFO}, MEMRT_FAULT_MEMINFO, 300, 1},
        {{.kinds = MEMRT_FAULT_RESIZE}, MEMRT_FAULT_RESIZE, 100000, 1},
        {{.kinds = MEMRT_FAULT_RESIZE | MEMRT_FAULT_MEMINFO}, MEMRT_FAULT_MEMINFO, 300, 2},
        {{.min_size = 101, .max_size = 500}, MEMRT_FAULT_MEMINFO, 300, 2},
        {{.min_size = 301, .max_size = 99999}, MEMRT_FAULT_BLOCK, 500, 1},
        {{.min_size = 501}, MEMRT_FAULT_RESIZE, 100000, 1},
        {{.min_size = 1, .max_size = 100}, MEMRT_FAULT_BLOCK, 100, 1},
        {{.policy = policy}, MEMRT_FAULT_BLOCK, 100, 3},
        {{.policy = api->policy_default()}, MEMRT_FAULT_MEMINFO, 300, 1},
        {{.scope = inner}, MEMRT_FAULT_BLOCK, 500, 1},
        {{.scope = outer, .policy = policy}, MEMRT_FAULT_BLOCK, 500, 1},
        {{.scope = outer, .policy = api->policy_default()}, 0, 0, 0},
        {{.scope = outer, .max_size = 100}, 0, 0, 0},
        {{.policy = policy, .kinds = MEMRT_FAULT_RECORD}, 0, 0, 0},
        {{.kinds = MEMRT_FAULT_DEVICE}, 0, 0, 0},
    };
    for (size_t i = 0; i < sizeof(selections) / sizeof(selections[0]); i++) {
        memrt_failure_t failures = read_failures(selections[i].plan, request_all_kinds);
        ck_assert_msg(failures.kind == selections[i].kind && failures.size == selections[i].size &&
                          failures.failed == selections[i].points &&
                          failures.points == selections[i].points,
                      "selection %zu: kind %u, size %zu, failed %zu", i, failures.kind,
                      (size_t)failures.size, (size_t)failures.failed);
    }
    api->block_free(NULL, growing, 0);
    api->policy_release(policy);
    api->scope_release(inner);
    api->scope_release(outer);
}

static void open_scope(void)
{
    memrt_scope_t *scope = NULL;
    ck_assert_int_eq(api->scope_open(NULL, "a new scope", &scope), MEMRT_ENOMEM);
}

TEST(failure_of_a_record_has_size_0)
{
    memrt_failure_t failures = read_failures((memrt_failure_plan_t){0}, open_scope);
    ck_assert_uint_eq(failures.kind, MEMRT_FAULT_RECORD);
    ck_assert_uint_eq(failures.size, 0);
}

TEST(device_request_has_its_size_and_kind)
{
    memrt_failure_plan_t plan = {
        .struct_size = sizeof(plan), .nth = 1, .min_size = 10, .kinds = MEMRT_FAULT_DEVICE};
    memrt_failure_t failures = {.struct_size = offsetof(memrt_failure_t, kind), .kind = 77};
    ck_assert_int_eq(memrt__fault_set(&plan), MEMRT_OK);
    ck_assert(!memrt__fault_is_due_on_device(9));
    ck_assert(memrt__fault_is_due_on_device(10));
    ck_assert_int_eq(memrt__fault_read(&failures), MEMRT_OK);
    ck_assert_uint_eq(failures.size, 10);
    ck_assert_uint_eq(failures.kind, 77);
    ck_assert_int_eq(memrt__fault_set(NULL), MEMRT_OK);
    ck_assert(!memrt__fault_is_due_on_device(10));
}

TEST(plan_of_an_older_caller_selects_all_requests)
{
    memrt_failure_plan_t plan = {.struct_size = offsetof(memrt_failure_plan_t, min_size),
                                 .nth = 1,
                                 .max_size = 1,
                                 .kinds = MEMRT_FAULT_DEVICE};
    ck_assert_int_eq(api->fail_allocations(&plan), MEMRT_OK);
    ck_assert_ptr_null(api->allocate(100));
    ck_assert_int_eq(api->fail_allocations(NULL), MEMRT_OK);
}
