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

static void without_driver(void *unused)
{
    (void)unused;
    expect_reason("/no/such/libcuda.so.1", "there is no CUDA driver: /no/such/libcuda.so.1");
    REQUIRE(api->cuda_error(text, sizeof(text)) != 0);
    REQUIRE(strstr(text, "no call of the CUDA driver failed") != NULL);
}

TEST(without_a_driver_everything_says_so)
{
    child_expect_success(without_driver, NULL);
}

static void with_another_library(void *unused)
{
    (void)unused;
    expect_reason("libm.so.6", "the CUDA driver is too old: it has no cuInit");
}

TEST(a_library_without_the_functions_is_refused_by_their_name)
{
    child_expect_success(with_another_library, NULL);
}

static void with_a_driver_that_does_not_start(void *unused)
{
    (void)unused;
    fake_fail("cuInit", 1, 999, 1);
    expect_reason(MEMRT_FAKE_DRIVER, "does not start: an error without a name (999)");
    fake_reset();
    fake_machine(0, 1);
    expect_reason(MEMRT_FAKE_DRIVER, "does not start: CUDA_ERROR_NO_DEVICE (100)");
    fake_machine(-1, 1);
    expect_reason(MEMRT_FAKE_DRIVER, "the CUDA driver knows no device");
}

TEST(a_driver_that_does_not_start_is_asked_why)
{
    child_expect_success(with_a_driver_that_does_not_start, NULL);
}

static void until_there_is_one(void *unused)
{
    (void)unused;
    memrt_meminfo_t *mi = NULL;
    expect_reason("/no/such/libcuda.so.1", "there is no CUDA driver");
    set_driver(MEMRT_FAKE_DRIVER);
    REQUIRE(api->cuda_why_not(text, sizeof(text)) == 0);
    set_driver("/no/such/libcuda.so.1"); /* too late */
    REQUIRE(api->cuda_new(10, NULL, &mi) == MEMRT_OK);
    api->release(mi);
    REQUIRE(fake_calls("cuInit") == 1 && fake_live() == 0);
}

TEST(it_is_looked_for_until_there_is_one_that_then_stays)
{
    child_expect_success(until_there_is_one, NULL);
}

static void in_a_grandchild(void *unused)
{
    (void)unused;
    REQUIRE(api->cuda_error(text, sizeof(text)) != 0);
    REQUIRE(strstr(text, "no call of the CUDA driver failed") != NULL);
    REQUIRE(api->cuda_why_not(text, sizeof(text)) != 0);
    REQUIRE(strstr(text, "made by fork") != NULL);
}

static void used_and_forked(void *unused)
{
    (void)unused;
    set_driver(MEMRT_FAKE_DRIVER);
    REQUIRE(api->cuda_why_not(text, sizeof(text)) == 0);
    REQUIRE(api->cuda_stream_synchronize(60, 1) == MEMRT_EDEVICE);
    child_expect_success(in_a_grandchild, NULL);
    REQUIRE(api->cuda_why_not(text, sizeof(text)) == 0);
}

TEST(a_child_of_a_process_that_used_it_cannot)
{
    child_expect_success(used_and_forked, NULL);
}

static void used_in_the_child_only(void *unused)
{
    (void)unused;
    set_driver(MEMRT_FAKE_DRIVER);
    REQUIRE(api->cuda_why_not(text, sizeof(text)) == 0);
}

TEST(a_child_of_a_process_that_did_not_use_it_can)
{
    child_expect_success(used_in_the_child_only, NULL);
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

TEST(without_memory_for_its_table_it_is_loaded_later)
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

TEST(without_memory_for_a_policy_it_is_made_later)
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

TEST(a_driver_without_the_order_of_streams_will_do)
{
    child_expect_success(use_an_old_driver, NULL);
}

TEST(the_name_of_a_driver_is_some_text_but_no_novel)
{
    char why[200], novel[600];
    memset(novel, 'x', sizeof(novel) - 1);
    novel[sizeof(novel) - 1] = 0;
    ck_assert_int_eq(api->option_set("cuda_driver", "", why, sizeof(why)), MEMRT_EINVAL);
    ck_assert_int_eq(api->option_set("cuda_driver", novel, why, sizeof(why)), MEMRT_EINVAL);
    ck_assert_ptr_nonnull(strstr(why, "the name of a file"));
}
