#include "support/cuda.h"

#include <string.h>

#include "support/child.h"

static char text[600];

static void set_driver(const char *file)
{
    char why[200];
    REQUIRE(api->option_set("cuda_driver", file, why, sizeof(why)) == MEMRT_OK);
}

static void expect_reason(const char *file, const char *reason)
{
    memrt_meminfo_t *mi = NULL;
    set_driver(file);
    size_t length = api->cuda_why_not(text, sizeof(text));
    REQUIRE(length == strlen(text) && strstr(text, reason) != NULL);
    REQUIRE(api->cuda_new(10, NULL, &mi) == MEMRT_ENOTSUP && mi == NULL);
    REQUIRE(api->cuda_adopt(4096, 10, NULL, &mi) == MEMRT_ENOTSUP && mi == NULL);
    uintptr_t stream = 7;
    REQUIRE(api->cuda_stream_new(0, &stream) == MEMRT_ENOTSUP && stream == 7);
    REQUIRE(api->allocator_pinned()->alloc(NULL, 10, 1) == NULL);
}

static void run_without_driver(void *unused)
{
    (void)unused;
    expect_reason("/no/such/libcuda.so.1", "the CUDA driver was not found: /no/such/libcuda.so.1");
    REQUIRE(api->cuda_error(text, sizeof(text)) != 0);
    REQUIRE(strstr(text, "no call of the CUDA driver failed") != NULL);
}

TEST(missing_driver_gives_reason_and_refuses_calls)
{
    child_expect_success(run_without_driver, NULL);
}

static void run_with_another_library(void *unused)
{
    (void)unused;
    expect_reason("libm.so.6", "the CUDA driver is too old: the function cuInit is missing");
}

TEST(library_without_driver_functions_is_refused)
{
    child_expect_success(run_with_another_library, NULL);
}

static void run_with_failing_driver(void *unused)
{
    (void)unused;
    fake_fail("cuInit", 1, 999, 1);
    expect_reason(MEMRT_FAKE_DRIVER, "does not start: an error without a name (999)");
    fake_reset();
    fake_machine(0, 1);
    expect_reason(MEMRT_FAKE_DRIVER, "does not start: CUDA_ERROR_NO_DEVICE (100)");
    fake_machine(-1, 1);
    expect_reason(MEMRT_FAKE_DRIVER, "the CUDA driver has no device");
}

TEST(driver_start_failure_gives_reason)
{
    child_expect_success(run_with_failing_driver, NULL);
}

static void run_until_driver_exists(void *unused)
{
    (void)unused;
    memrt_meminfo_t *mi = NULL;
    expect_reason("/no/such/libcuda.so.1", "the CUDA driver was not found");
    set_driver(MEMRT_FAKE_DRIVER);
    REQUIRE(api->cuda_why_not(text, sizeof(text)) == 0);
    set_driver("/no/such/libcuda.so.1"); /* too late */
    REQUIRE(api->cuda_new(10, NULL, &mi) == MEMRT_OK);
    api->release(mi);
    REQUIRE(fake_calls("cuInit") == 1 && fake_live() == 0);
}

TEST(driver_is_searched_until_found_and_then_kept)
{
    child_expect_success(run_until_driver_exists, NULL);
}

static void run_in_grandchild(void *unused)
{
    (void)unused;
    REQUIRE(api->cuda_error(text, sizeof(text)) != 0);
    REQUIRE(strstr(text, "no call of the CUDA driver failed") != NULL);
    REQUIRE(api->cuda_why_not(text, sizeof(text)) != 0);
    REQUIRE(strstr(text, "forked process") != NULL);
}

static void use_and_fork(void *unused)
{
    (void)unused;
    set_driver(MEMRT_FAKE_DRIVER);
    REQUIRE(api->cuda_why_not(text, sizeof(text)) == 0);
    REQUIRE(api->cuda_stream_synchronize(60, 1) == MEMRT_EDEVICE);
    child_expect_success(run_in_grandchild, NULL);
    REQUIRE(api->cuda_why_not(text, sizeof(text)) == 0);
}

TEST(forked_child_cannot_use_driver_used_by_parent)
{
    child_expect_success(use_and_fork, NULL);
}

static void use_in_child_only(void *unused)
{
    (void)unused;
    set_driver(MEMRT_FAKE_DRIVER);
    REQUIRE(api->cuda_why_not(text, sizeof(text)) == 0);
}

TEST(forked_child_can_use_driver_unused_by_parent)
{
    child_expect_success(use_in_child_only, NULL);
}

static void refuse_memory(void *unused)
{
    (void)unused;
    memrt_failure_plan_t plan = {.struct_size = sizeof(plan), .nth = 1};
    set_driver(MEMRT_FAKE_DRIVER);
    REQUIRE(api->fail_allocations(&plan) == MEMRT_OK);
    REQUIRE(api->cuda_why_not(text, sizeof(text)) != 0);
    REQUIRE(strstr(text, "no memory") != NULL);
    REQUIRE(api->cuda_why_not(text, sizeof(text)) == 0);
}

TEST(driver_load_can_be_retried_after_out_of_memory)
{
    child_expect_success(refuse_memory, NULL);
}

static void refuse_policy(void *unused)
{
    (void)unused;
    memrt_meminfo_t *mi = NULL;
    memrt_failure_plan_t plan = {.struct_size = sizeof(plan), .nth = 1};
    set_driver(MEMRT_FAKE_DRIVER);
    REQUIRE(api->cuda_why_not(text, sizeof(text)) == 0);
    REQUIRE(api->fail_allocations(&plan) == MEMRT_OK);
    REQUIRE(api->cuda_new(10, NULL, &mi) == MEMRT_ENOMEM && mi == NULL);
    REQUIRE(api->fail_allocations(&plan) == MEMRT_OK);
    REQUIRE(api->cuda_adopt(4096, 10, NULL, &mi) == MEMRT_ENOMEM && mi == NULL);
    REQUIRE(api->cuda_new(10, NULL, &mi) == MEMRT_OK);
    api->release(mi);
}

TEST(cuda_policy_is_created_after_out_of_memory)
{
    child_expect_success(refuse_policy, NULL);
}

static void use_an_old_driver(void *unused)
{
    (void)unused;
    memrt_meminfo_t *mi = NULL;
    memrt_cuda_options_t options = {.struct_size = sizeof(options), .stream = 1};
    char byte = 3, back = 0;
    set_driver(MEMRT_FAKE_OLD_DRIVER);
    REQUIRE(api->cuda_new(10, &options, &mi) == MEMRT_OK);
    REQUIRE(api->cuda_write(mi, 9, &byte, 1, 0) == MEMRT_OK);
    REQUIRE(api->cuda_read(mi, 9, &back, 1, 0) == MEMRT_OK && back == 3);
    api->release(mi);
    memrt_cuda_stats_t stats = {.struct_size = sizeof(stats)};
    REQUIRE(api->cuda_stats(MEMRT_MEMORY_DEVICE, &stats) == MEMRT_OK);
    REQUIRE(stats.free == 1 && stats.lost == 0);
}

TEST(driver_without_stream_ordered_allocation_works)
{
    child_expect_success(use_an_old_driver, NULL);
}

TEST(empty_or_too_long_driver_name_is_refused)
{
    char why[200], novel[600];
    memset(novel, 'x', sizeof(novel) - 1);
    novel[sizeof(novel) - 1] = 0;
    ck_assert_int_eq(api->option_set("cuda_driver", "", why, sizeof(why)), MEMRT_EINVAL);
    ck_assert_int_eq(api->option_set("cuda_driver", novel, why, sizeof(why)), MEMRT_EINVAL);
    ck_assert_ptr_nonnull(strstr(why, "the name of a file"));
}
