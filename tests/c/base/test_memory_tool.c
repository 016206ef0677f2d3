/// Tests of allocation under AddressSanitizer. The program defines functions of the sanitizer's
/// runtime, so memrt finds the tool. The functions record the forbidden bytes.

#include "support/suite.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/alloc/allocator.h"
#include "runtime/base/memory_tool.h"
#include "runtime/config/options.h"
#include "runtime/meminfo/block_layout.h"
#include "runtime/policy/policy.h"

#if !SUITE_ADDRESS_SANITIZER

static const volatile void *forbidden; /* start of 8 bytes, or NULL */
static size_t calls;

void __asan_poison_memory_region(const volatile void *from, size_t bytes);
void __asan_poison_memory_region(const volatile void *from, size_t bytes)
{
    REQUIRE(bytes == 8 && (size_t)from % 8 == 0 && forbidden == NULL);
    forbidden = from;
    calls++;
}

void __asan_unpoison_memory_region(const volatile void *from, size_t bytes);
void __asan_unpoison_memory_region(const volatile void *from, size_t bytes)
{
    REQUIRE(bytes == 8 && from == forbidden);
    forbidden = NULL;
    calls++;
}

/// Choose the options before memrt reads them: runs of all tests have options of their own.
__attribute__((constructor)) static void choose_options(void)
{
    REQUIRE(setenv("MEMRT_TOOLS", "1", 1) == 0 && unsetenv("MEMRT_CACHE") == 0);
    REQUIRE(unsetenv("MEMRT_CHECK") == 0);
}

static void expect_forbidden_header_of(const char *data)
{
    ck_assert_ptr_eq((const void *)(uintptr_t)forbidden, data - 8);
}

/// Free a block. The free ends the effect on the bytes before the data.
static void free_block(void *data, size_t size)
{
    api->block_free(NULL, data, size);
    forbidden = NULL;
}

TEST(tool_turns_the_caches_off)
{
    ck_assert(memrt__memory_tool_is_present());
    ck_assert(memrt__options.tools && !memrt__options.cache);
    ck_assert_ptr_eq(memrt__default_allocator(), &memrt__system_allocator);
    ck_assert_ptr_eq(api->allocator_default(), api->allocator_system());
}

TEST(option_keeps_the_heap_under_a_tool)
{
    ck_assert_int_eq(setenv("MEMRT_TOOLS", "0", 1), 0);
    memrt__options_read();
    ck_assert(!memrt__options.tools && memrt__options.cache);
    ck_assert_ptr_eq(memrt__default_allocator(), &memrt__heap_allocator);
    ck_assert_int_eq(setenv("MEMRT_CACHE", "0", 1), 0);
    memrt__options_read();
    ck_assert_ptr_eq(memrt__default_allocator(), &memrt__uncached_allocator);
    choose_options();
}

TEST(policy_with_limits_allocates_by_malloc)
{
    memrt_policy_options_t options = {.struct_size = sizeof(options), .hugepages = "off"};
    memrt_policy_t *policy;
    ck_assert_int_eq(api->policy_new(&options, &policy), MEMRT_OK);
    ck_assert_ptr_eq(policy->allocator.alloc, memrt__system_allocator.alloc);
    char *data = api->block_alloc(policy, MEMRT__LARGE);
    expect_forbidden_header_of(data);
    free_block(data, MEMRT__LARGE);
    api->policy_release(policy);
}

static const size_t sizes[] = {0, 1, 16, 100, MEMRT__LARGE};

TEST_EACH(bytes_before_data_are_forbidden_until_the_free, 5)
{
    size_t size = sizes[index];
    char *data = api->block_alloc(NULL, size);
    expect_forbidden_header_of(data);
    free_block(data, size);
    data = api->block_calloc(NULL, size, 1);
    expect_forbidden_header_of(data);
    ck_assert(size == 0 || (data[0] == 0 && data[size - 1] == 0));
    free_block(data, size);
    memrt_meminfo_t *mi = api->allocate(size);
    expect_forbidden_header_of(api->get_data(mi));
    api->release(mi);
    forbidden = NULL;
}

TEST_EACH(resized_block_has_forbidden_bytes_at_its_address, 5)
{
    size_t size = sizes[index];
    char *data = api->block_alloc(NULL, 200);
    memset(data, 7, 200);
    data = api->block_realloc(NULL, data, size);
    expect_forbidden_header_of(data);
    ck_assert(size == 0 || data[0] == 7);
    data = api->block_realloc(NULL, data, 10000);
    expect_forbidden_header_of(data);
    free_block(data, 10000);
}

TEST(failed_resize_leaves_bytes_forbidden)
{
    char *data = api->block_alloc(NULL, 100);
    size_t before = calls;
    suite_fail_all_requests();
    ck_assert_ptr_null(api->block_realloc(NULL, data, 100000));
    suite_allow_requests();
    ck_assert_uint_eq(calls, before + 2);
    expect_forbidden_header_of(data);
    free_block(data, 100);
}

static void *malloc_external(size_t size, void *data)
{
    (void)data;
    return malloc(size);
}

static void free_external(void *ptr, void *data)
{
    (void)data;
    free(ptr);
}

TEST(memory_without_malloc_stays_allowed)
{
    memrt_policy_options_t options = {.struct_size = sizeof(options),
                                      .allocator = api->allocator_mapped()};
    memrt_external_allocator_t external = {.malloc = malloc_external, .free = free_external};
    memrt_policy_t *policy;
    size_t before = calls;
    ck_assert_int_eq(api->policy_new(&options, &policy), MEMRT_OK);
    void *data = api->block_alloc(policy, 100);
    data = api->block_realloc(policy, data, 10000);
    api->block_free(policy, data, 10000);
    api->policy_release(policy);
    api->release(api->allocate_external(100, &external));
    memrt_meminfo_t *mi;
    ck_assert_int_eq(api->resizable_new_reserved(100, 10000, NULL, &mi), MEMRT_OK);
    api->release(mi);
    ck_assert_uint_eq(calls, before);
}

#else

TEST(tool_of_the_build_is_found)
{
    ck_assert(memrt__memory_tool_is_present());
}

#endif
