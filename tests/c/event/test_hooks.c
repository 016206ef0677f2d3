/// Tests of hooks: events of each kind of block, filters by policy, samples, and removal.

#include "support/suite.h"

#include <math.h>
#include <pthread.h>
#include <sched.h>

#include "runtime/base/atomics.h"
#include "runtime/base/slow_path.h"
#include "support/child.h"
#include "support/crew.h"

#define MOST 64u

/// Events that a hook received.
typedef struct record {
    memrt_hook_event_t events[MOST];
    size_t count;
} record_t;

static void add_to_record(const memrt_hook_event_t *event, void *context)
{
    record_t *record = context;
    REQUIRE(event->struct_size == sizeof(*event));
    if (record->count < MOST) {
        record->events[record->count] = *event;
    }
    record->count++;
}

static uint64_t add_hook(memrt_hook_call_fn call, void *context)
{
    memrt_hook_t hook = {.struct_size = sizeof(hook), .call = call, .context = context};
    uint64_t id = 0;
    ck_assert_int_eq(api->hook_add(&hook, &id), MEMRT_OK);
    return id;
}

static void remove_hook(uint64_t id)
{
    ck_assert_int_eq(api->hook_remove(id), MEMRT_OK);
}

static memrt_policy_t *create_policy(const char *name)
{
    memrt_policy_options_t options = {.struct_size = sizeof(options), .name = name};
    memrt_policy_t *policy;
    ck_assert_int_eq(api->policy_new(&options, &policy), MEMRT_OK);
    return policy;
}

static void expect_event(const record_t *record, size_t index, memrt_hook_type_t type,
                         const void *data, size_t size)
{
    ck_assert_uint_lt(index, record->count);
    const memrt_hook_event_t *event = &record->events[index];
    ck_assert_uint_eq(event->type, type);
    ck_assert_ptr_eq(event->data, data);
    ck_assert_uint_eq(event->size, size);
    bool is_new = type == MEMRT_HOOK_ALLOCATE;
    ck_assert(event->weight == (is_new ? 1.0 : 0.0));
}

TEST(hook_gets_allocation_resize_and_free)
{
    static const size_t sizes[] = {1, 40, 64, 100, 5000, 300000, 3000000};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        record_t record = {.count = 0};
        uint64_t id = add_hook(add_to_record, &record);
        void *data = api->block_alloc(NULL, sizes[i]);
        void *grown = api->block_realloc(NULL, data, 3 * sizes[i]);
        api->block_free(NULL, grown, 0);
        remove_hook(id);
        expect_event(&record, 0, MEMRT_HOOK_ALLOCATE, data, sizes[i]);
        expect_event(&record, 1, MEMRT_HOOK_RESIZE, grown, 3 * sizes[i]);
        ck_assert_ptr_eq(record.events[1].old_data, data);
        ck_assert_uint_eq(record.events[1].old_size, sizes[i]);
        expect_event(&record, 2, MEMRT_HOOK_FREE, grown, 3 * sizes[i]);
        ck_assert_uint_eq(record.count, 3);
        ck_assert_ptr_eq(record.events[2].policy, api->policy_default());
    }
}

TEST(hook_gets_each_kind_of_meminfo_once)
{
    static char foreign[200];
    record_t record = {.count = 0};
    uint64_t id = add_hook(add_to_record, &record);
    memrt_meminfo_t *inner = api->allocate(300), *resizable, *adopted;
    ck_assert_int_eq(api->resizable_new(400, NULL, &resizable), MEMRT_OK);
    ck_assert_int_eq(api->meminfo_adopt(foreign, sizeof(foreign), NULL, &adopted), MEMRT_OK);
    expect_event(&record, 0, MEMRT_HOOK_ALLOCATE, inner->data, 300);
    expect_event(&record, 1, MEMRT_HOOK_ALLOCATE, resizable->data, 400);
    expect_event(&record, 2, MEMRT_HOOK_ALLOCATE, foreign, sizeof(foreign));
    const void *freed[] = {inner->data, resizable->data, foreign};
    api->release(inner);
    api->release(resizable);
    api->release(adopted);
    expect_event(&record, 3, MEMRT_HOOK_FREE, freed[0], 300);
    expect_event(&record, 4, MEMRT_HOOK_FREE, freed[1], 400);
    expect_event(&record, 5, MEMRT_HOOK_FREE, freed[2], sizeof(foreign));
    ck_assert_uint_eq(record.count, 6);
    remove_hook(id);
}

TEST(refused_request_reaches_the_hook)
{
    record_t record = {.count = 0};
    uint64_t id = add_hook(add_to_record, &record);
    ck_assert_ptr_null(api->block_alloc(NULL, (size_t)1 << 60));
    remove_hook(id);
    expect_event(&record, 0, MEMRT_HOOK_FAILURE, NULL, (size_t)1 << 60);
    ck_assert_uint_eq(record.count, 1);
}

TEST(hook_of_a_policy_gets_its_events_only)
{
    memrt_policy_t *policy = create_policy("hooked"), *other = create_policy("other");
    record_t record = {.count = 0};
    memrt_hook_t hook = {
        .struct_size = sizeof(hook), .call = add_to_record, .context = &record, .policy = policy};
    uint64_t id;
    ck_assert_int_eq(api->hook_add(&hook, &id), MEMRT_OK);
    memrt_scope_t *scope;
    ck_assert_int_eq(api->scope_open(NULL, "inside", &scope), MEMRT_OK);
    ck_assert_int_eq(api->scope_enter(scope, NULL), MEMRT_OK);
    memrt_policy_t *subpolicy;
    ck_assert_int_eq(api->scope_policy(scope, policy, &subpolicy), MEMRT_OK);
    remove_hook(id);
    hook.policy = subpolicy; /* stands for the policy */
    ck_assert_int_eq(api->hook_add(&hook, &id), MEMRT_OK);
    api->policy_release(subpolicy);
    void *data = api->block_alloc(policy, 100), *unseen = api->block_alloc(other, 100);
    ck_assert_int_eq(api->scope_enter(NULL, NULL), MEMRT_OK);
    ck_assert_ptr_null(api->block_alloc(other, (size_t)1 << 60));
    api->block_free(other, unseen, 100);
    api->block_free(policy, data, 100);
    api->policy_release(policy); /* the hook holds another reference */
    expect_event(&record, 0, MEMRT_HOOK_ALLOCATE, data, 100);
    expect_event(&record, 1, MEMRT_HOOK_FREE, data, 100);
    ck_assert_ptr_eq(record.events[0].policy, policy);
    ck_assert_ptr_eq(record.events[0].scope, scope);
    ck_assert_ptr_eq(record.events[1].scope, scope);
    ck_assert_uint_eq(record.count, 2);
    remove_hook(id);
    api->scope_release(scope);
    api->policy_release(other);
}

TEST(hook_gets_no_event_of_older_blocks)
{
    record_t record = {.count = 0};
    void *tiny = api->block_alloc(NULL, 16), *block = api->block_alloc(NULL, 500);
    uint64_t id = add_hook(add_to_record, &record);
    block = api->block_realloc(NULL, block, 600);
    api->block_free(NULL, block, 0);
    api->block_free(NULL, tiny, 0);
    remove_hook(id);
    ck_assert_uint_eq(record.count, 0);
}

TEST(removed_hook_gets_no_free)
{
    record_t record = {.count = 0};
    uint64_t id = add_hook(add_to_record, &record);
    void *data = api->block_alloc(NULL, 100);
    remove_hook(id);
    api->block_free(NULL, data, 100);
    ck_assert_uint_eq(record.count, 1);
    ck_assert_int_eq(api->hook_remove(id), MEMRT_EINVAL);
}

/* A block keeps the mark of a removed hook. The next hook gets another mark. */
TEST(free_of_an_older_block_does_not_reach_the_next_hook)
{
    record_t first = {.count = 0}, second = {.count = 0};
    uint64_t id = add_hook(add_to_record, &first);
    void *data = api->block_alloc(NULL, 100);
    remove_hook(id);
    id = add_hook(add_to_record, &second);
    api->block_free(NULL, data, 100);
    remove_hook(id);
    ck_assert_uint_eq(first.count, 1);
    ck_assert_uint_eq(second.count, 0);
}

TEST(allocations_are_fast_again_after_the_last_removal)
{
    record_t record = {.count = 0};
    uint64_t first = add_hook(add_to_record, &record), second = add_hook(add_to_record, &record);
    remove_hook(first);
    ck_assert(memrt__is_slow(MEMRT__SLOW_HOOKS));
    remove_hook(second);
    ck_assert(!memrt__is_slow(MEMRT__SLOW_HOOKS));
}

TEST(ninth_hook_is_refused_until_one_is_removed)
{
    record_t record = {.count = 0};
    uint64_t ids[MEMRT_HOOKS_MAX], another;
    for (size_t i = 0; i < MEMRT_HOOKS_MAX; i++) {
        ids[i] = add_hook(add_to_record, &record);
    }
    memrt_hook_t hook = {.struct_size = sizeof(hook), .call = add_to_record, .context = &record};
    ck_assert_int_eq(api->hook_add(&hook, &another), MEMRT_ELIMIT);
    api->block_free(NULL, api->block_alloc(NULL, 100), 100);
    ck_assert_uint_eq(record.count, 2 * MEMRT_HOOKS_MAX);
    remove_hook(ids[3]);
    ck_assert_int_eq(api->hook_add(&hook, &another), MEMRT_OK);
    ck_assert_uint_ne(another, ids[3]);
    ck_assert_int_eq(api->hook_remove(ids[3]), MEMRT_EINVAL);
    remove_hook(another);
    for (size_t i = 0; i < MEMRT_HOOKS_MAX; i++) {
        ck_assert_int_eq(api->hook_remove(ids[i]), i == 3 ? MEMRT_EINVAL : MEMRT_OK);
    }
}

TEST(bad_hook_is_refused)
{
    uint64_t id = 0;
    memrt_hook_t hook = {.struct_size = sizeof(hook), .call = add_to_record};
    ck_assert_int_eq(api->hook_add(&hook, NULL), MEMRT_EINVAL);
    hook.call = NULL;
    ck_assert_int_eq(api->hook_add(&hook, &id), MEMRT_EINVAL);
    hook = (memrt_hook_t){.struct_size = sizeof(hook) - 1, .call = add_to_record};
    ck_assert_int_eq(api->hook_add(&hook, &id), MEMRT_EINVAL);
    ck_assert_int_eq(api->hook_remove(id), MEMRT_EINVAL);
    ck_assert_int_eq(api->hook_remove(UINT64_MAX), MEMRT_EINVAL);
    ck_assert(!memrt__is_slow(MEMRT__SLOW_HOOKS));
}

typedef struct sample {
    size_t allocations, frees;
    double bytes; ///< estimate from the weights
} sample_t;

static void add_to_sample(const memrt_hook_event_t *event, void *context)
{
    sample_t *sample = context;
    sample->allocations += event->type == MEMRT_HOOK_ALLOCATE;
    sample->frees += event->type == MEMRT_HOOK_FREE;
    sample->bytes += event->weight * (double)event->size;
}

/// With n draws of probability p, the weights estimate n blocks with a standard deviation of
/// sqrt(n (1 - p) / p). Six deviations are exceeded once in 500 million runs.
TEST(sample_estimates_the_allocated_bytes)
{
    sample_t sample = {.allocations = 0};
    memrt_hook_t hook = {
        .struct_size = sizeof(hook), .call = add_to_sample, .context = &sample, .sample = 10000};
    size_t count = 20000, size = 1000;
    uint64_t id;
    ck_assert_int_eq(api->hook_add(&hook, &id), MEMRT_OK);
    for (size_t i = 0; i < count; i++) {
        api->block_free(NULL, api->block_alloc(NULL, size), size);
    }
    remove_hook(id);
    double p = -expm1(-0.1), n = (double)count, blocks = sample.bytes / (double)size;
    ck_assert(fabs(blocks - n) < 6 * sqrt(n * (1 - p) / p));
    ck_assert_uint_eq(sample.allocations, sample.frees);
    ck_assert_uint_lt(sample.allocations, count / 5);
}

/// Take blocks of at least 1000 bytes.
static int is_large(const memrt_hook_event_t *event, void *context)
{
    size_t *asked = context;
    REQUIRE(event->type == MEMRT_HOOK_ALLOCATE && event->weight == 1);
    api->block_free(NULL, api->block_alloc(NULL, 2000), 2000); /* without events */
    ++*asked;
    return event->size >= 1000;
}

static void count_one(const memrt_hook_event_t *event, void *context)
{
    size_t *counts = context;
    counts[event->type]++;
}

TEST(unwanted_block_has_no_events)
{
    size_t counts[5] = {0};
    memrt_hook_t hook = {
        .struct_size = sizeof(hook), .call = count_one, .context = counts, .wants = is_large};
    uint64_t id;
    ck_assert_int_eq(api->hook_add(&hook, &id), MEMRT_OK);
    void *small = api->block_alloc(NULL, 100), *large = api->block_alloc(NULL, 1000);
    small = api->block_realloc(NULL, small, 3000);
    api->block_free(NULL, small, 0);
    api->block_free(NULL, large, 0);
    remove_hook(id);
    ck_assert_uint_eq(counts[0], 2); /* calls of is_large() */
    ck_assert_uint_eq(counts[MEMRT_HOOK_ALLOCATE], 1);
    ck_assert_uint_eq(counts[MEMRT_HOOK_RESIZE], 0);
    ck_assert_uint_eq(counts[MEMRT_HOOK_FREE], 1);
}

static size_t write_one_frame(memrt_frame_t *frames, size_t max)
{
    frames[0] = api->frame_new("function", "program.py", 3);
    return max > 0;
}

TEST(tracked_allocation_has_its_site)
{
    record_t record = {.count = 0};
    memrt_tracking_t before = {.struct_size = sizeof(before)};
    memrt_tracking_t on = {.struct_size = sizeof(on), .on = 1, .frames = 4};
    ck_assert_int_eq(api->tracking_get(&before), MEMRT_OK);
    uint64_t id = add_hook(add_to_record, &record);
    api->block_free(NULL, api->block_alloc(NULL, 300), 300);
    api->set_frames(write_one_frame);
    ck_assert_int_eq(api->tracking_set(&on), MEMRT_OK);
    api->block_free(NULL, api->block_alloc(NULL, 300), 300);
    ck_assert_int_eq(api->tracking_set(&before), MEMRT_OK);
    api->set_frames(NULL);
    remove_hook(id);
    ck_assert_uint_eq(record.count, 4);
    ck_assert_uint_eq(record.events[0].site, 0);
    ck_assert_uint_ne(record.events[2].site, 0);
    ck_assert_uint_eq(record.events[3].site, 0);
}

/// Allocate, free and resize inside of the call.
static void use_memrt(const memrt_hook_event_t *event, void *context)
{
    add_to_record(event, context);
    void *data = api->block_realloc(NULL, api->block_alloc(NULL, 100), 200);
    REQUIRE(data != NULL);
    api->block_free(NULL, data, 200);
}

TEST(call_may_allocate_without_events)
{
    record_t record = {.count = 0};
    uint64_t id = add_hook(use_memrt, &record);
    api->block_free(NULL, api->block_alloc(NULL, 300), 300);
    remove_hook(id);
    ck_assert_uint_eq(record.count, 2);
}

static void remove_itself(const memrt_hook_event_t *event, void *context)
{
    (void)event;
    uint64_t *id = context;
    REQUIRE(api->hook_remove(*id) == MEMRT_OK);
}

TEST(call_may_remove_its_hook)
{
    uint64_t id = add_hook(remove_itself, &id);
    api->block_free(NULL, api->block_alloc(NULL, 300), 300);
    ck_assert_int_eq(api->hook_remove(id), MEMRT_EINVAL);
    record_t record = {.count = 0};
    for (size_t i = 0; i < MEMRT_HOOKS_MAX; i++) { /* all slots are free again */
        remove_hook(add_hook(add_to_record, &record));
    }
}

/// A hook that waits inside of its call.
typedef struct gate {
    size_t entered, opened, left;
} gate_t;

static void wait_at_gate(const memrt_hook_event_t *event, void *context)
{
    (void)event;
    gate_t *gate = context;
    memrt__store_release(&gate->entered, 1);
    while (memrt__load_acquire(&gate->opened) == 0) {
        sched_yield();
    }
    memrt__store_release(&gate->left, 1);
}

static void *open_gate_later(void *context)
{
    gate_t *gate = context;
    for (int i = 0; i < 1000; i++) {
        sched_yield();
    }
    memrt__store_release(&gate->opened, 1);
    return NULL;
}

static void *allocate_and_keep(void *context)
{
    *(void **)context = api->block_alloc(NULL, 300);
    return NULL;
}

TEST(removal_waits_for_calls_in_other_threads)
{
    gate_t gate = {0};
    void *data = NULL;
    pthread_t caller, opener;
    uint64_t id = add_hook(wait_at_gate, &gate);
    ck_assert_int_eq(pthread_create(&caller, NULL, allocate_and_keep, &data), 0);
    while (memrt__load_acquire(&gate.entered) == 0) {
        sched_yield();
    }
    ck_assert_int_eq(pthread_create(&opener, NULL, open_gate_later, &gate), 0);
    remove_hook(id);
    ck_assert_uint_eq(memrt__load_acquire(&gate.left), 1);
    ck_assert_int_eq(pthread_join(caller, NULL) | pthread_join(opener, NULL), 0);
    api->block_free(NULL, data, 300);
}

static void remove_in_child(void *context)
{
    REQUIRE(api->hook_remove(*(uint64_t *)context) == MEMRT_OK);
}

static uint64_t removed_by_handler; /* hook to remove in the fork handler, or 0 */

static void remove_in_handler(void)
{
    if (removed_by_handler != 0) {
        child_start_watchdog();
        remove_in_child(&removed_by_handler);
    }
}

/// Register before main, so that the handler runs before memrt's own handler in the child.
__attribute__((constructor)) static void register_handler(void)
{
    REQUIRE(pthread_atfork(NULL, NULL, remove_in_handler) == 0);
}

static void expect_removed(void *context)
{
    REQUIRE(api->hook_remove(*(uint64_t *)context) == MEMRT_EINVAL);
}

TEST_EACH(child_does_not_wait_for_calls_of_the_parent, 2)
{
    gate_t gate = {0};
    void *data = NULL;
    pthread_t caller;
    uint64_t id = add_hook(wait_at_gate, &gate);
    ck_assert_int_eq(pthread_create(&caller, NULL, allocate_and_keep, &data), 0);
    while (memrt__load_acquire(&gate.entered) == 0) {
        sched_yield();
    }
    removed_by_handler = index == 0 ? 0 : id;
    child_expect_success(index == 0 ? remove_in_child : expect_removed, &id);
    removed_by_handler = 0;
    memrt__store_release(&gate.opened, 1);
    ck_assert_int_eq(pthread_join(caller, NULL), 0);
    remove_hook(id);
    api->block_free(NULL, data, 300);
}

static void fork_inside(const memrt_hook_event_t *event, void *context)
{
    (void)event;
    child_expect_success(remove_in_child, context);
}

TEST(call_may_fork_and_remove_its_hook_in_the_child)
{
    uint64_t id = add_hook(fork_inside, &id);
    void *data = api->block_alloc(NULL, 300);
    remove_hook(id);
    api->block_free(NULL, data, 300);
}

typedef struct balance {
    size_t allocations, frees;
} balance_t;

static void count_event(const memrt_hook_event_t *event, void *context)
{
    balance_t *balance = context;
    bool is_new = event->type == MEMRT_HOOK_ALLOCATE;
    memrt__fetch_add_relaxed(is_new ? &balance->allocations : &balance->frees, 1);
}

/// Add and remove hooks while other threads allocate.
static void come_and_go(size_t index, void *context)
{
    (void)context;
    for (size_t round = 0; round < 300; round++) {
        balance_t balance = {0};
        memrt_hook_t hook = {.struct_size = sizeof(hook), .call = count_event, .context = &balance};
        uint64_t id;
        REQUIRE(api->hook_add(&hook, &id) == MEMRT_OK);
        for (size_t i = 0; i < 20; i++) {
            api->block_free(NULL, api->block_alloc(NULL, 100 + index), 0);
        }
        REQUIRE(api->hook_remove(id) == MEMRT_OK);
        REQUIRE(balance.allocations >= 20 && balance.frees >= 20);
    } /* a call after the removal would change the counts of a later round */
}

TEST(hooks_come_and_go_while_threads_allocate)
{
    crew_run(4, come_and_go, NULL);
    ck_assert(!memrt__is_slow(MEMRT__SLOW_HOOKS));
}
