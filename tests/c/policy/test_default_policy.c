/// Test the replacement of the default policy's allocator. Each test replaces in a child process,
/// because the replacement lasts for the life of the process.

#include "support/suite.h"

#include <string.h>

#include "runtime/alloc/allocator.h"
#include "runtime/alloc/guard/guard.h"
#include "runtime/base/atomics.h"
#include "runtime/config/options.h"
#include "runtime/policy/policy_table.h"
#include "support/allocators/counting.h"
#include "support/child.h"
#include "support/crew.h"
#include "support/kernel.h"

static memrt_allocator_t counting;

static void create_counting(void)
{
    REQUIRE(counting_new(&memrt__system_allocator, &counting) == MEMRT_OK);
}

static memrt_status_t replace(void)
{
    return api->policy_default_set_allocator(&counting);
}

static void use_policy(memrt_policy_t *policy)
{
    void *block = api->block_alloc(policy, 5000);
    REQUIRE(block != NULL);
    api->block_free(policy, block, 5000);
}

static void resize_block(void)
{
    void *block = api->block_alloc(NULL, 5000);
    REQUIRE(counting_read(&counting).bytes >= 5000);
    block = api->block_realloc(NULL, block, 50000);
    REQUIRE(counting_read(&counting).bytes >= 50000);
    api->block_free(NULL, block, 50000);
}

static void serve_all_requests(void *context)
{
    memrt_policy_t *own;
    memrt_scope_t *scope;
    (void)context;
    create_counting();
    REQUIRE(replace() == MEMRT_OK);
    use_policy(NULL);
    use_policy(api->policy_default());
    REQUIRE(counting_read(&counting).allocs == 2);
    /* the quarantine of a guard keeps freed blocks */
    REQUIRE(memrt__options.check || counting_read(&counting).frees == 2);
    memrt_meminfo_t *mi = api->allocate(10);
    REQUIRE(counting_read(&counting).allocs == 3);
    api->release(mi);
    REQUIRE(api->scope_open(NULL, "inside", &scope) == MEMRT_OK);
    REQUIRE(api->scope_enter(scope, NULL) == MEMRT_OK);
    use_policy(NULL);
    REQUIRE(counting_read(&counting).allocs == 4);
    REQUIRE(api->policy_new(NULL, &own) == MEMRT_OK);
    use_policy(own);
    REQUIRE(counting_read(&counting).allocs == 4);
    resize_block();
    REQUIRE(memrt__options.check || counting_read(&counting).bytes == 0);
    REQUIRE(replace() == MEMRT_EBUSY);
    suite_expect_valid();
}

TEST(replaced_allocator_serves_the_default_policy_only)
{
    child_expect_success(serve_all_requests, NULL);
}

static void use_in_scope(memrt_scope_t *scope)
{
    REQUIRE(api->scope_enter(scope, NULL) == MEMRT_OK);
    use_policy(NULL);
    REQUIRE(api->scope_enter(NULL, NULL) == MEMRT_OK);
}

static void replace_under_scope(void *context)
{
    memrt_scope_t *scope;
    memrt_policy_t *part;
    (void)context;
    create_counting();
    REQUIRE(api->scope_open(NULL, "before", &scope) == MEMRT_OK);
    REQUIRE(api->scope_policy(scope, NULL, &part) == MEMRT_OK);
    REQUIRE(replace() == MEMRT_OK);
    use_policy(part);
    use_in_scope(scope);
    REQUIRE(counting_read(&counting).allocs == 2);
    suite_expect_valid();
}

TEST(replaced_allocator_serves_subpolicies_made_before)
{
    child_expect_success(replace_under_scope, NULL);
}

/// Ways to use the default policy.
static void use_in_new_scope(void)
{
    memrt_scope_t *scope;
    REQUIRE(api->scope_open(NULL, "use", &scope) == MEMRT_OK);
    use_in_scope(scope);
}

static void use_by_refusal(void)
{
    REQUIRE(api->block_alloc(NULL, SIZE_MAX / 2) == NULL);
}

static void use_by_block(void)
{
    use_policy(NULL);
}

static void use_by_meminfo(void)
{
    api->release(api->allocate(0));
}

static void (*const uses[])(void) = {use_by_block, use_by_meminfo, use_in_new_scope,
                                     use_by_refusal};
#define USES (sizeof(uses) / sizeof(uses[0]))

static void replace_after_use(void *context)
{
    create_counting();
    (*(void (*const *)(void))context)();
    REQUIRE(replace() == MEMRT_EBUSY);
    use_policy(NULL);
    REQUIRE(counting_read(&counting).allocs == 0);
}

TEST_EACH(replacement_is_refused_after_a_use, USES)
{
    child_expect_success(replace_after_use, (void *)&uses[index]);
}

static void replace_by_bad_table(void *context)
{
    memrt_allocator_t bad;
    (void)context;
    create_counting();
    bad = counting;
    bad.version++;
    REQUIRE(api->policy_default_set_allocator(&bad) == MEMRT_EINVAL);
    bad = counting;
    bad.free = NULL;
    REQUIRE(api->policy_default_set_allocator(&bad) == MEMRT_EINVAL);
    REQUIRE(api->release_unused() == 0);
    REQUIRE(replace() == MEMRT_OK);
}

TEST(bad_table_is_refused_and_a_good_table_may_follow)
{
    child_expect_success(replace_by_bad_table, NULL);
}

static void replace_without_memory(void *context)
{
    (void)context;
    create_counting();
    memrt__options.check = true;
    suite_fail_request(1);
    REQUIRE(replace() == MEMRT_ENOMEM);
    suite_allow_requests();
    use_policy(NULL); /* no guard was put over the allocator */
    REQUIRE(replace() == MEMRT_EBUSY);
}

static void replace_under_guard(void *context)
{
    (void)context;
    create_counting();
    memrt__options.check = true;
    REQUIRE(replace() == MEMRT_OK);
    REQUIRE(memrt__is_guard(&memrt__default_policy.allocator));
    use_policy(NULL);
    REQUIRE(counting_read(&counting).allocs != 0);
}

TEST(replacement_without_memory_changes_nothing)
{
    child_expect_success(replace_without_memory, NULL);
}

TEST(checking_mode_puts_a_guard_over_the_new_allocator)
{
    child_expect_success(replace_under_guard, NULL);
}

static void set_in_fork(void *context)
{
    (void)context;
    replace_by_bad_table(NULL);
    use_policy(NULL);
    REQUIRE(counting_read(&counting).allocs == 1);
}

static void fork_before_use(void *context)
{
    memrt_scope_t *scope;
    (void)context;
    REQUIRE(api->scope_open(NULL, "inherited", &scope) == MEMRT_OK);
    child_expect_success(set_in_fork, NULL);
}

TEST(child_of_a_process_without_use_may_replace)
{
    child_expect_success(fork_before_use, NULL);
}

#define BLOCKS 50u

/// Thread 0 replaces, thread 1 reads cached bytes, the other threads allocate.
static void replace_or_use(size_t index, void *context)
{
    if (index == 0) {
        *(memrt_status_t *)context = replace();
    } else if (index == 1) {
        memrt_stats_t stats = {.struct_size = sizeof(stats)};
        REQUIRE(api->stats_read(NULL, &stats) == MEMRT_OK);
        (void)api->release_unused();
    } else {
        for (size_t i = 0; i < BLOCKS; i++) {
            api->block_free(NULL, api->block_alloc(NULL, 200), 200);
        }
    }
}

static void replace_beside_uses(void *context)
{
    memrt_status_t status;
    (void)context;
    create_counting();
    crew_run(4, replace_or_use, &status);
    size_t allocs = counting_read(&counting).allocs;
    REQUIRE(status == MEMRT_OK ? allocs == 2 * BLOCKS : status == MEMRT_EBUSY && allocs == 0);
    suite_expect_valid();
}

/// Replace in this process, and undo the replacement.
static void replace_for_a_moment(void)
{
    memrt_policy_t *policy = &memrt__default_policy;
    memrt_allocator_t allocator = policy->allocator;
    bool fast = policy->fast, tiny = policy->tiny;
    replace_beside_uses(NULL);
    policy->allocator = allocator;
    policy->fast = fast;
    policy->tiny = tiny;
    memrt__store_release(&memrt__default_state, MEMRT__DEFAULT_UNUSED);
}

TEST_EACH(concurrent_requests_all_use_one_allocator, 10)
{
    if (SUITE_THREAD_SANITIZER) { /* does not follow threads of children */
        replace_for_a_moment();
    } else {
        child_expect_success(replace_beside_uses, NULL);
    }
}

/// A thread that meets a replacement by another thread waits for its end.
static void finish_change(void)
{
    memrt__store_release(&memrt__default_state, MEMRT__DEFAULT_FINAL);
}

static void wait_for_change(void *context)
{
    (void)context;
    memrt__store_release(&memrt__default_state, MEMRT__DEFAULT_CHANGING);
    kernel_at_yield(finish_change);
    use_policy(NULL);
}

TEST(request_waits_for_the_end_of_a_replacement)
{
    child_expect_success(wait_for_change, NULL);
}
