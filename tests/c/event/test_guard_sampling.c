#include "support/suite.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <memrt/dlpack.h>

#include "runtime/alloc/guard/guard_pages.h"
#include "runtime/base/slow_path.h"
#include "runtime/config/options.h"
#include "runtime/event/guard_sampling.h"
#include "support/child.h"
#include "support/crew.h"
#include "support/kernel.h"

#define MEAN ((size_t)4 << 20)

static void start_sampling(size_t mean)
{
    ck_assert(memrt__guard_sampling_set(mean));
}

static void end_sampling(void)
{
    ck_assert(memrt__guard_sampling_set(0));
}

static bool can_sample(void)
{
    return !memrt__options.check && memrt__options.cache && memrt__options.guard_sample == 0 &&
           MEMRT_COUNTERS;
}

/// Allocate and free blocks of `size` bytes, 1 GiB in total. Fails unless the number of blocks with
/// guard pages is within 5 standard deviations, and one point for each MiB may be lost.
static void expect_guarded_blocks(size_t size)
{
    double total = 0x1p30, expected = total / MEAN;
    size_t before = memrt__guard_pages_made();
    for (size_t i = 0; i < (size_t)total / size; i++) {
        void *block = api->block_alloc(NULL, size);
        REQUIRE(block != NULL);
        *(volatile char *)block = 1;
        api->block_free(NULL, block, 0);
    }
    double guarded = (double)(memrt__guard_pages_made() - before);
    ck_assert_double_lt(guarded, expected + 5 * sqrt(expected));
    ck_assert_double_gt(guarded, expected * 0.75 - 5 * sqrt(expected));
}

TEST(sampled_blocks_have_expected_number)
{
    static const size_t sizes[] = {64, 5000, 100000, 3000000};
    if (!can_sample()) {
        return;
    }
    start_sampling(MEAN);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        expect_guarded_blocks(sizes[i]);
    }
    end_sampling();
}

static memrt_policy_t *create_guarded_policy(const char *mean)
{
    memrt_policy_options_t options = {.struct_size = sizeof(options), .guard_sample = mean};
    memrt_policy_t *policy;
    ck_assert_int_eq(api->policy_new(&options, &policy), MEMRT_OK);
    return policy;
}

/// Allocate 1,000 blocks of 1 to 1,000 bytes one after another. Returns the number of blocks with
/// guard pages.
static size_t count_guarded(memrt_policy_t *policy)
{
    size_t before = memrt__guard_pages_made();
    for (size_t size = 1; size <= 1000; size++) {
        api->block_free(policy, api->block_alloc(policy, size), 0);
    }
    return memrt__guard_pages_made() - before;
}

TEST(policy_guards_its_own_blocks)
{
    if (!can_sample()) {
        return;
    }
    memrt_policy_t *all = create_guarded_policy("1"), *none = create_guarded_policy("0"),
                   *some = create_guarded_policy("10000"), *rare = create_guarded_policy("1G");
    ck_assert_uint_eq(count_guarded(all), 1000);
    ck_assert_uint_eq(count_guarded(none), 0);
    ck_assert_uint_eq(count_guarded(NULL), 0);
    size_t count = count_guarded(some); /* 500,500 bytes */
    ck_assert_uint_gt(count, 10);
    ck_assert_uint_lt(count, 100);
    ck_assert_uint_lt(count_guarded(rare), 10);
    start_sampling(1);
    ck_assert_uint_eq(count_guarded(none), 0);
    ck_assert_uint_eq(count_guarded(NULL), 1000);
    end_sampling();
    api->policy_release(all);
    api->policy_release(none);
    api->policy_release(some);
    api->policy_release(rare);
}

TEST(subpolicy_in_scope_guards_as_its_policy)
{
    if (!can_sample()) {
        return;
    }
    memrt_policy_t *all = create_guarded_policy("1");
    memrt_scope_t *scope;
    ck_assert_int_eq(api->scope_open(NULL, "guarded", &scope), MEMRT_OK);
    ck_assert_int_eq(api->scope_enter(scope, NULL), MEMRT_OK);
    ck_assert_uint_eq(count_guarded(all), 1000);
    ck_assert_int_eq(api->scope_enter(NULL, NULL), MEMRT_OK);
    api->scope_release(scope);
    api->policy_release(all);
}

static void set_guards(memrt_policy_t *policy, const char *mean)
{
    ck_assert_int_eq(api->policy_option_set(policy, "guard_sample", mean, NULL, 0), MEMRT_OK);
}

TEST(mean_of_a_live_policy_changes)
{
    if (!can_sample()) {
        return;
    }
    memrt_policy_t *policy = create_guarded_policy(NULL);
    memrt_option_t row;
    ck_assert_uint_eq(count_guarded(policy), 0);
    set_guards(policy, "1");
    ck_assert_uint_eq(count_guarded(policy), 1000);
    ck_assert_uint_eq(count_guarded(NULL), 0); /* other policies only take the slow path */
    ck_assert(memrt__is_slow(MEMRT__SLOW_CLOSE));
    ck_assert_int_eq(api->policy_option(policy, 0, &row), 1);
    ck_assert_str_eq(row.value, "1");
    set_guards(policy, "1G");
    ck_assert(!memrt__is_slow(MEMRT__SLOW_CLOSE));
    ck_assert_uint_lt(count_guarded(policy), 10);
    set_guards(policy, "10000");
    size_t count = count_guarded(policy); /* 500,500 bytes */
    ck_assert_uint_gt(count, 10);
    ck_assert_uint_lt(count, 100);
    set_guards(policy, NULL);
    ck_assert_uint_eq(count_guarded(policy), 0);
    ck_assert_int_eq(api->policy_option(policy, 0, &row), 0);
    api->policy_release(policy);
}

TEST(slow_path_ends_with_the_last_policy_that_needs_it)
{
    if (!can_sample()) {
        return;
    }
    memrt_policy_t *first = create_guarded_policy("64M"), *second = create_guarded_policy("0"),
                   *slow = create_guarded_policy("1");
    set_guards(slow, "2"); /* has no fast path that could miss blocks */
    ck_assert(!memrt__is_slow(MEMRT__SLOW_CLOSE));
    set_guards(first, "1");
    set_guards(second, "1");
    api->policy_release(first);
    api->policy_release(slow);
    ck_assert(memrt__is_slow(MEMRT__SLOW_CLOSE));
    ck_assert_uint_eq(count_guarded(second), 1000);
    api->policy_release(second);
    ck_assert(!memrt__is_slow(MEMRT__SLOW_CLOSE));
}

TEST(changed_mean_holds_in_scopes_that_have_blocks)
{
    if (!can_sample()) {
        return;
    }
    memrt_policy_t *policy = create_guarded_policy(NULL);
    memrt_scope_t *scope;
    ck_assert_int_eq(api->scope_open(NULL, "changed", &scope), MEMRT_OK);
    ck_assert_int_eq(api->scope_enter(scope, NULL), MEMRT_OK);
    ck_assert_uint_eq(count_guarded(policy), 0);
    set_guards(policy, "1");
    ck_assert_uint_eq(count_guarded(policy), 1000);
    memrt_policy_t *inside;
    ck_assert_int_eq(api->scope_policy(scope, policy, &inside), MEMRT_OK);
    set_guards(inside, "0");
    ck_assert_uint_eq(count_guarded(policy), 0);
    api->policy_release(inside);
    ck_assert_int_eq(api->scope_enter(NULL, NULL), MEMRT_OK);
    api->scope_release(scope);
    api->policy_release(policy);
}

TEST(default_policy_guards_blocks_from_a_change_on)
{
    if (!can_sample()) {
        return;
    }
    set_guards(api->policy_default(), "1");
    memrt_allocator_t other = *api->allocator_system();
    ck_assert_int_eq(api->policy_default_set_allocator(&other), MEMRT_EBUSY);
    ck_assert_uint_eq(count_guarded(NULL), 1000);
    set_guards(api->policy_default(), NULL);
    ck_assert_uint_eq(count_guarded(NULL), 0);
}

static void expect_fixed_guards(memrt_policy_t *policy, const char *mean, memrt_status_t status,
                                const char *part)
{
    char why[256] = "";
    memrt_option_t row;
    ck_assert_int_eq(api->policy_option_set(policy, "guard_sample", mean, why, sizeof(why)),
                     status);
    ck_assert_msg(strstr(why, part) != NULL, "%s", why);
    ck_assert_int_eq(api->policy_option(policy, 0, &row), 0);
}

TEST(change_of_guards_needs_memory_and_memrts_allocator)
{
    memrt_policy_options_t options = {.struct_size = sizeof(options),
                                      .allocator = api->allocator_system()};
    memrt_policy_t *other, *policy = create_guarded_policy(NULL);
    ck_assert_int_eq(api->policy_new(&options, &other), MEMRT_OK);
    expect_fixed_guards(other, "1", MEMRT_ENOTSUP, "must have memrt's allocator to change guard");
    expect_fixed_guards(policy, "some", MEMRT_EINVAL, "guard_sample must be");
    if (can_sample() && !memrt__guard_is_on()) {
        kernel_refuse(KERNEL_MAP, 0, 1);
        expect_fixed_guards(policy, "1", MEMRT_ENOMEM, "no memory for guard pages");
        kernel_obey();
    }
    set_guards(policy, "64M"); /* also in checking mode, without effect */
    ck_assert_int_eq(memrt__options.check && memrt__guard_is_on(), 0);
    api->policy_release(policy);
    api->policy_release(other);
}

static void change_mean_in_child(void *policy)
{
    REQUIRE(api->policy_option_set(policy, "guard_sample", "1", NULL, 0) == MEMRT_OK);
    REQUIRE(count_guarded(policy) == 1000);
}

TEST(mean_changes_in_forked_child_alone)
{
    if (!can_sample()) {
        return;
    }
    memrt_policy_t *policy = create_guarded_policy("0");
    void *kept = api->block_alloc(policy, 1000); /* so that the child has two accounts */
    child_expect_success(change_mean_in_child, policy);
    ck_assert_uint_eq(count_guarded(policy), 0);
    api->block_free(policy, kept, 0);
    api->policy_release(policy);
}

/// Thread 0 changes the mean; the other threads use the policy.
static void sample_by_changing_mean(size_t index, void *policy)
{
    static const char *const means[] = {"1", "0", "100000", "2M", NULL};
    for (size_t round = 0; round < 300; round++) {
        if (index == 0) {
            REQUIRE(api->policy_option_set(policy, "guard_sample", means[round % 5], NULL, 0) ==
                    MEMRT_OK);
        } else {
            char *block = api->block_alloc(policy, 1000 * index);
            REQUIRE(block != NULL);
            block[0] = block[999] = 1;
            block = api->block_realloc(policy, block, 2000);
            REQUIRE(block != NULL && block[999] == 1);
            api->block_free(policy, block, 0);
        }
    }
}

TEST(mean_changes_beside_threads_that_allocate)
{
    if (!can_sample()) {
        return;
    }
    memrt_policy_t *policy = create_guarded_policy("0");
    crew_run(4, sample_by_changing_mean, policy);
    set_guards(policy, "0");
    ck_assert_uint_eq(count_guarded(policy), 0);
    api->policy_release(policy);
}

TEST(policy_with_guards_needs_memory_and_memrts_allocator)
{
    memrt_policy_options_t options = {.struct_size = sizeof(options),
                                      .guard_sample = "64M",
                                      .allocator = api->allocator_system()};
    memrt_policy_t *policy;
    ck_assert_int_eq(api->policy_new(&options, &policy), MEMRT_EINVAL);
    options.allocator = NULL;
    options.guard_sample = "some";
    ck_assert_int_eq(api->policy_new(&options, &policy), MEMRT_EINVAL);
    options.guard_sample = "64M";
    if (can_sample() && !memrt__guard_is_on()) {
        kernel_refuse(KERNEL_MAP, 0, 1);
        ck_assert_int_eq(api->policy_new(&options, &policy), MEMRT_ENOMEM);
        kernel_obey();
    }
    ck_assert_int_eq(api->policy_new(&options, &policy), MEMRT_OK);
    api->policy_release(policy);
}

static void sample_in_thread(size_t index, void *context)
{
    (void)index, (void)context;
    for (int i = 0; i < 2000; i++) {
        void *block = api->block_alloc(NULL, 10000);
        REQUIRE(block != NULL);
        memset(block, 1, 10000);
        block = api->block_realloc(NULL, block, 20000);
        REQUIRE(block != NULL && ((char *)block)[9999] == 1);
        api->block_free(NULL, block, 0);
    }
}

TEST(threads_free_and_resize_sampled_blocks)
{
    if (!can_sample()) {
        return;
    }
    start_sampling((size_t)1 << 16);
    size_t before = memrt__guard_pages_made();
    crew_run(4, sample_in_thread, NULL);
    ck_assert_uint_gt(memrt__guard_pages_made(), before);
    end_sampling();
}

TEST(every_creator_makes_guarded_blocks)
{
    if (!can_sample()) {
        return;
    }
    start_sampling(1);
    size_t before = memrt__guard_pages_made();
    memrt_new_options_t options = {.struct_size = sizeof(options), .alignment = 256};
    memrt_meminfo_t *mi;
    ck_assert_int_eq(api->meminfo_new(1000, &options, &mi), MEMRT_OK);
    api->release(mi);
    unsigned char *byte = api->block_alloc(NULL, 1);
    ck_assert_ptr_nonnull(byte);
    memrt_location_t found = {.struct_size = sizeof(found)};
    ck_assert_int_eq(api->locate(byte, &found), MEMRT_OK);
    ck_assert_uint_eq(found.data, (uintptr_t)byte);
    ck_assert_uint_eq(found.size, 1);
    api->block_free(NULL, byte, 0);
    ck_assert_int_eq(api->locate(byte, &found), MEMRT_ENOENT);
    unsigned char *zeros = api->block_calloc(NULL, 100, 7);
    ck_assert_ptr_nonnull(zeros);
    ck_assert_uint_eq(zeros[0] | zeros[699], 0);
    zeros = api->block_realloc(NULL, zeros, 3000000);
    ck_assert_ptr_nonnull(zeros);
    ck_assert_uint_eq(zeros[0] | zeros[699], 0);
    api->block_free(NULL, zeros, 0);
    ck_assert_uint_eq(memrt__guard_pages_made() - before, 4);
    end_sampling();
}

TEST(data_of_resizable_meminfo_and_of_tensor_is_guarded)
{
    if (!can_sample()) {
        return;
    }
    start_sampling(1);
    size_t before = memrt__guard_pages_made();
    memrt_meminfo_t *mi;
    ck_assert_int_eq(api->resizable_new(10, NULL, &mi), MEMRT_OK);
    ck_assert_uint_eq(memrt__guard_pages_made() - before, 1);
    void *old = api->get_data(mi);
    ck_assert_ptr_nonnull(api->resizable_alloc(mi, 20));
    ck_assert_uint_eq(memrt__guard_pages_made() - before, 2);
    memrt_meminfo_t *holder;
    ck_assert_int_eq(api->block_meminfo(api->get_data(mi), &holder), MEMRT_OK);
    ck_assert_ptr_nonnull(api->resizable_realloc(mi, 30)); /* held elsewhere, so a copy */
    ck_assert_uint_eq(memrt__guard_pages_made() - before, 3);
    ck_assert_ptr_nonnull(api->resizable_realloc(mi, 3));
    ck_assert_uint_eq(memrt__guard_pages_made() - before, 4);
    api->release(holder);
    api->resizable_free(mi, old);
    api->release(mi);
    DLManagedTensorVersioned *tensor;
    memrt_dlpack_view_t view = {.struct_size = sizeof(view), .ndim = 1, .shape = (int64_t[]){5}};
    view.dtype = (DLDataType){.code = kDLFloat, .bits = 64, .lanes = 1};
    ck_assert_int_eq(api->dlpack_new(&view, NULL, &tensor, NULL), MEMRT_OK);
    tensor->deleter(tensor);
    ck_assert_uint_eq(memrt__guard_pages_made() - before, 5);
    start_sampling((size_t)1 << 60);
    ck_assert_int_eq(api->dlpack_new(&view, NULL, &tensor, NULL), MEMRT_OK);
    tensor->deleter(tensor);
    ck_assert_uint_le(memrt__guard_pages_made() - before, 6); /* an earlier point may be due */
    end_sampling();
}

static void *take(size_t size, void *opaque)
{
    (void)opaque;
    return malloc(size);
}

static void give(void *ptr, void *opaque)
{
    (void)opaque;
    free(ptr);
}

TEST(memory_of_other_allocators_is_never_guarded)
{
    if (!can_sample()) {
        return;
    }
    static char adopted[100];
    memrt_policy_options_t options = {.struct_size = sizeof(options),
                                      .allocator = api->allocator_system()};
    memrt_policy_t *policy;
    ck_assert_int_eq(api->policy_new(&options, &policy), MEMRT_OK);
    start_sampling(1);
    size_t before = memrt__guard_pages_made();
    api->block_free(policy, api->block_alloc(policy, 100), 0);
    memrt_external_allocator_t external = {.malloc = take, .free = give};
    memrt_new_options_t from = {.struct_size = sizeof(from), .external = &external};
    memrt_meminfo_t *mi;
    ck_assert_int_eq(api->meminfo_new(100, &from, &mi), MEMRT_OK);
    api->release(mi);
    ck_assert_int_eq(api->meminfo_adopt(adopted, sizeof(adopted), NULL, &mi), MEMRT_OK);
    api->release(mi);
    ck_assert_uint_eq(memrt__guard_pages_made(), before);
    end_sampling();
    api->policy_release(policy);
}

TEST(sampling_stays_off_without_memory)
{
    if (!memrt__guard_is_on()) { /* no earlier test of the process started guard pages */
        kernel_refuse(KERNEL_MAP, 0, 1);
        ck_assert(!memrt__guard_sampling_set(1000));
        ck_assert(!memrt__guard_is_on());
    }
}

TEST(sampling_is_off_in_checking_mode)
{
    bool check = memrt__options.check;
    size_t sample = memrt__options.guard_sample;
    memrt__options.guard_sample = 1000;
    memrt__options.check = true;
    ck_assert(!memrt__guard_sampling_start());
    memrt__options.guard_sample = 0;
    ck_assert(memrt__guard_sampling_start());
    memrt__options.guard_sample = sample;
    memrt__options.check = check;
}
