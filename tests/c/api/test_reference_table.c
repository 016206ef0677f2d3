#include "support/suite.h"

#include "api/checking_table.h"
#include "api/plain_table.h"
#include "api/reference_table.h"
#include "runtime/alloc/heap/heap.h"
#include "runtime/config/options.h"
#include "runtime/policy/policy_table.h"
#include "runtime/policy/reference_counts.h"
#include "support/child.h"
#include "support/crew.h"

enum { CREW = 4, ROUNDS = 1000 };

static const memrt_api_t *turn_counting_on(void)
{
    memrt__options.references = true;
    return memrt_get_api(MEMRT_ABI_MAJOR, NULL);
}

static memrt_reference_counts_t read_counts(const memrt_policy_t *policy)
{
    memrt_reference_counts_t counts = {.struct_size = sizeof(counts)};
    REQUIRE(api->reference_counts(policy, &counts) == MEMRT_OK);
    return counts;
}

static void expect_change(const memrt_reference_counts_t *before, const memrt_policy_t *policy,
                          size_t acquired, size_t released)
{
    memrt_reference_counts_t now = read_counts(policy);
    REQUIRE(now.acquired - before->acquired == acquired);
    REQUIRE(now.released - before->released == released);
}

static memrt_policy_t *make_policy(void)
{
    memrt_policy_options_t options = {.struct_size = sizeof(options)};
    memrt_policy_t *policy;
    REQUIRE(api->policy_new(&options, &policy) == MEMRT_OK);
    return policy;
}

/// Destructor. The count is 0 by now, so nobody gets a reference.
static void try_acquire_dying(void *data, size_t size, void *context)
{
    const memrt_api_t *counting = memrt_get_api(MEMRT_ABI_MAJOR, NULL);
    (void)data;
    (void)size;
    REQUIRE(!counting->try_acquire(*(memrt_meminfo_t **)context));
}

static void refuse_reference_of_dying(void *context)
{
    (void)context;
    const memrt_api_t *counting = turn_counting_on();
    memrt_policy_t *policy = make_policy();
    memrt_meminfo_t *mi;
    memrt_new_options_t options = {.struct_size = sizeof(options),
                                   .policy = policy,
                                   .dtor = try_acquire_dying,
                                   .dtor_info = &mi};
    REQUIRE(counting->meminfo_new(100, &options, &mi) == MEMRT_OK);
    memrt_reference_counts_t before = read_counts(policy);
    counting->release(mi);
    expect_change(&before, policy, 0, 1);
    counting->policy_release(policy);
}

static void count_operations(void *context)
{
    (void)context;
    const memrt_api_t *counting = turn_counting_on();
    memrt_policy_t *policy = make_policy();
    memrt_meminfo_t *mi = counting->allocate_from(100, policy);
    memrt_reference_counts_t process = read_counts(NULL), own = read_counts(policy);
    REQUIRE(mi != NULL && process.counting == 1 && own.acquired == 0 && own.released == 0);
    counting->acquire(mi);
    REQUIRE(counting->try_acquire(mi));
    REQUIRE(counting->acquire_as(mi, MEMRT_HOLDER_REFERENCE, "test") == MEMRT_OK);
    expect_change(&own, policy, 3, 0);
    memrt_weak_t weak;
    REQUIRE(counting->weak_new(mi, &weak) == MEMRT_OK && counting->weak_acquire(&weak) == mi);
    expect_change(&own, policy, 4, 0);
    counting->release_as(mi, MEMRT_HOLDER_REFERENCE, "test");
    counting->release(mi);
    counting->release(mi);
    counting->release(mi);
    REQUIRE(counting->refcount(mi) == 1);
    counting->release(mi);
    REQUIRE(counting->weak_acquire(&weak) == NULL);
    expect_change(&own, policy, 4, 5);
    expect_change(&process, NULL, 4, 5);
    counting->policy_release(policy);
}

static void count_returned_references(void *context)
{
    (void)context;
    const memrt_api_t *counting = turn_counting_on();
    memrt_policy_t *policy = make_policy();
    void *data = counting->block_alloc(policy, 1000);
    memrt_meminfo_t *mi, *same;
    REQUIRE(data != NULL && counting->block_meminfo(data, &mi) == MEMRT_OK);
    REQUIRE(counting->set_name(mi, "counted") == MEMRT_OK);
    REQUIRE(counting->find(data, &same) == MEMRT_OK && same == mi);
    REQUIRE(counting->find(&data, &same) == MEMRT_ENOENT);
    memrt_reference_counts_t zero = {0};
    expect_change(&zero, policy, 2, 0);
    counting->release(mi);
    counting->release(mi);
    counting->block_free(policy, data, 1000);
    expect_change(&zero, policy, 2, 2);
}

TEST(returned_references_count_as_acquired)
{
    child_expect_success(count_returned_references, NULL);
}

TEST(refused_reference_of_a_dying_meminfo_is_not_counted)
{
    child_expect_success(refuse_reference_of_dying, NULL);
}

TEST(table_counts_acquires_and_releases)
{
    child_expect_success(count_operations, NULL);
}

static void count_under_checking(void *context)
{
    memrt__options.check = true;
    memrt__options.cache = false;
    REQUIRE((turn_counting_on()->features & MEMRT_FEATURE_CHECKING) != 0);
    count_operations(context);
}

TEST(table_counts_over_the_checking_table)
{
    if (api == &memrt__checking_table) {
        child_expect_success(count_under_checking, NULL);
    }
}

static void release_twice(void *context)
{
    (void)context;
    memrt_meminfo_t *mi = api->allocate(100);
    const memrt_api_t *counting = turn_counting_on();
    counting->release(mi);
    counting->release(mi);
}

TEST(release_of_a_freed_meminfo_aborts_with_counting)
{
    /* Other allocators give the freed header away. */
    if (memrt__options.check || memrt__is_heap(&memrt__default_policy.allocator)) {
        child_expect_abort(release_twice, NULL, "release of");
    }
}

static void count_by_scope(void *context)
{
    (void)context;
    const memrt_api_t *counting = turn_counting_on();
    memrt_policy_t *policy = make_policy(), *inside;
    memrt_scope_t *scope;
    REQUIRE(counting->scope_open(NULL, "counting", &scope) == MEMRT_OK);
    REQUIRE(counting->scope_policy(scope, policy, &inside) == MEMRT_OK);
    memrt_meminfo_t *mi = counting->allocate_from(100, inside);
    counting->acquire(mi);
    memrt_reference_counts_t zero = {0};
    expect_change(&zero, policy, 1, 0);
    expect_change(&zero, inside, 1, 0);
    counting->release(mi);
    counting->release(mi);
}

TEST(block_of_a_scope_counts_at_its_policy)
{
    child_expect_success(count_by_scope, NULL);
}

static void count_on_thread(size_t index, void *context)
{
    (void)index;
    const memrt_api_t *counting = memrt_get_api(MEMRT_ABI_MAJOR, NULL);
    for (size_t i = 0; i < ROUNDS; i++) {
        counting->acquire(context);
        counting->release(context);
    }
}

static void count_on_threads(void *context)
{
    (void)context;
    const memrt_api_t *counting = turn_counting_on();
    memrt_meminfo_t *mi = counting->allocate(100);
    memrt_reference_counts_t before = read_counts(NULL);
    crew_run(CREW, count_on_thread, mi);
    expect_change(&before, NULL, (size_t)CREW * ROUNDS, (size_t)CREW * ROUNDS);
    counting->release(mi);
}

TEST(threads_count_every_operation)
{
    child_expect_success(count_on_threads, NULL);
}

static void find_table(void *context)
{
    (void)context;
    const memrt_api_t *counting = turn_counting_on();
    REQUIRE(memrt_api_of_nrt(counting) == counting);
    memrt_meminfo_t *mi = counting->allocate(100);
    REQUIRE(counting->get_data(mi) == api->get_data(mi));
    counting->release(mi);
}

TEST(reference_table_is_found_from_numba_slots)
{
    child_expect_success(find_table, NULL);
}

static void refuse_references(void *context)
{
    (void)context;
    const memrt_api_t *counting = turn_counting_on();
    memrt_meminfo_t *mi = counting->allocate(100);
    memrt_reference_counts_t before = read_counts(NULL);
    suite_fail_all_requests();
    REQUIRE(counting->acquire_as(mi, MEMRT_HOLDER_REFERENCE, "none") == MEMRT_ENOMEM);
    suite_allow_requests();
    expect_change(&before, NULL, 0, 0);
    counting->release(mi);
    expect_change(&before, NULL, 0, 1);
}

TEST(refused_reference_is_not_counted)
{
    child_expect_success(refuse_references, NULL);
}

static void acquire_dead(void *context)
{
    (void)context;
    memrt_reference_counts_t before = read_counts(NULL);
    memrt_meminfo_t dead = {.refct = 0, .policy = UINT16_MAX};
    memrt_meminfo_t strange = {.refct = 0, .policy = MEMRT__ACCOUNTS - 1};
    REQUIRE(!memrt__plain_table.try_acquire(&dead));
    memrt__reference_counts_released(&dead); /* as before the abort */
    memrt__reference_counts_released(&strange);
    expect_change(&before, NULL, 0, 2);
}

TEST(meminfo_without_a_policy_counts_for_the_process)
{
    child_expect_success(acquire_dead, NULL);
}

TEST(plain_process_counts_nothing)
{
    memrt_reference_counts_t before = read_counts(NULL);
    memrt_meminfo_t *mi = api->allocate(100);
    api->acquire(mi);
    api->release(mi);
    api->release(mi);
    memrt_reference_counts_t now = read_counts(NULL);
    ck_assert_uint_eq(now.counting, memrt__options.references);
    ck_assert_uint_eq(now.acquired - before.acquired, now.counting);
    now.struct_size = 0;
    ck_assert_int_eq(api->reference_counts(NULL, &now), MEMRT_EINVAL);
}
