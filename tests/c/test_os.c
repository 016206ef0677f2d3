#include "support/suite.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "conformance/pattern.h"
#include "runtime/base/os.h"
#include "runtime/base/size.h"
#include "support/child.h"
#include "support/crew.h"

static size_t pages(size_t count)
{
    return count * memrt__os_page_size();
}

TEST(the_page_size_is_a_power_of_two)
{
    ck_assert(memrt__is_power_of_two(memrt__os_page_size()));
    ck_assert_uint_ge(memrt__os_page_size(), 4096);
}

TEST(mapped_pages_are_zero_writable_and_aligned)
{
    for (size_t align = 1; align <= (size_t)64 << 20; align *= 4) {
        unsigned char *ptr = memrt__os_map(pages(3), 0, align);
        ck_assert_ptr_nonnull(ptr);
        ck_assert_uint_eq((uintptr_t)ptr & (align - 1), 0);
        ck_assert(pattern_is_zero(ptr, pages(3)));
        memset(ptr, 1, pages(3));
        memrt__os_unmap(ptr, pages(3));
    }
}

TEST(a_mapping_that_does_not_fit_is_refused)
{
    ck_assert_ptr_null(memrt__os_map(((size_t)1 << 60), 0, 1));
    ck_assert_ptr_null(memrt__os_map(SIZE_MAX & ~(pages(1) - 1), 0, (size_t)1 << 30));
}

TEST(remapping_keeps_the_contents_when_it_grows_and_shrinks)
{
    unsigned char *ptr = memrt__os_map(pages(4), 0, 1);
    ck_assert_ptr_nonnull(ptr);
    pattern_write(ptr, pages(4), 9);
    size_t held = 4;
    unsigned char *grown = memrt__os_remap(ptr, pages(4), pages(400), true);
    ck_assert(grown != NULL || SUITE_THREAD_SANITIZER); /* under which nothing moves */
    if (grown != NULL) {
        ptr = grown;
        held = 400;
        ck_assert(pattern_is_zero(ptr + pages(4), pages(396)));
    }
    ck_assert(pattern_holds(ptr, pages(4), 9));
    unsigned char *same = memrt__os_remap(ptr, pages(held), pages(2), false);
    ck_assert_ptr_eq(same, ptr);
    ck_assert(pattern_holds(ptr, pages(2), 9));
    memrt__os_unmap(ptr, pages(2));
}

TEST(a_refused_remap_changes_nothing)
{
    unsigned char *ptr = memrt__os_map(pages(2), 0, 1);
    ck_assert_ptr_nonnull(ptr);
    pattern_write(ptr, pages(2), 4);
    ck_assert_ptr_null(memrt__os_remap(ptr, pages(2), (size_t)1 << 60, true));
    ck_assert(pattern_holds(ptr, pages(2), 4));
    memrt__os_unmap(ptr, pages(2));
}

TEST(the_clock_never_runs_backward)
{
    uint64_t last = memrt__os_now_ns();
    ck_assert_uint_gt(last, 0);
    for (int i = 0; i < 1000; i++) {
        uint64_t now = memrt__os_now_ns();
        ck_assert(now >= last);
        last = now;
    }
}

static void note_id(size_t index, void *context)
{
    ((uint64_t *)context)[index] = memrt__os_thread_id();
}

TEST(threads_that_live_at_once_have_different_ids)
{
    uint64_t ids[3] = {0, 0, memrt__os_thread_id()};
    crew_run(2, note_id, ids);
    ck_assert_uint_ne(ids[0], ids[2]);
    ck_assert_uint_ne(ids[1], ids[2]);
    ck_assert_uint_ne(ids[0], 0);
    ck_assert_uint_eq(ids[2], memrt__os_thread_id());
}

TEST(the_environment_is_read_by_name_and_row_by_row)
{
    ck_assert_int_eq(setenv("MEMRT_TEST_OS", "here", 1), 0);
    ck_assert_str_eq(memrt__os_environment("MEMRT_TEST_OS"), "here");
    size_t rows = 0, hits = 0;
    for (const char *row; (row = memrt__os_environment_row(rows)) != NULL; rows++) {
        hits += strcmp(row, "MEMRT_TEST_OS=here") == 0;
    }
    ck_assert_uint_eq(hits, 1);
    ck_assert_ptr_null(memrt__os_environment_row(rows + 10));
    unsetenv("MEMRT_TEST_OS");
    ck_assert_ptr_null(memrt__os_environment("MEMRT_TEST_OS"));
}

TEST(a_mapping_is_aligned_after_its_lead)
{
    size_t lead = pages(1), align = (size_t)2 << 20;
    unsigned char *ptr = memrt__os_map(pages(4), lead, align);
    ck_assert_ptr_nonnull(ptr);
    ck_assert_uint_eq(((uintptr_t)ptr + lead) % align, 0);
    memset(ptr, 1, pages(4));
    memrt__os_unmap(ptr, pages(4));
}

static bool is_mapped(const void *page)
{
    return msync((void *)(uintptr_t)page, pages(1), MS_ASYNC) == 0; /* else ENOMEM */
}

TEST(of_an_aligned_mapping_nothing_stays_around_it)
{
    size_t align = (size_t)64 << 20;
    for (int i = 0; i < 4; i++) {
        unsigned char *ptr = memrt__os_map(pages(2), 0, align);
        ck_assert_ptr_nonnull(ptr);
        ck_assert(is_mapped(ptr) && is_mapped(ptr + pages(1)));
        ck_assert(!is_mapped(ptr + pages(2)) && !is_mapped(ptr - pages(1)));
        memrt__os_unmap(ptr, pages(2));
    }
}

TEST(discarded_pages_are_zero_and_can_be_used)
{
    unsigned char *ptr = memrt__os_map(pages(2), 0, 1);
    ck_assert_ptr_nonnull(ptr);
    memset(ptr, 1, pages(2));
    ck_assert(memrt__os_discard(ptr, pages(1)));
    ck_assert_int_eq(ptr[0], 0);
    ck_assert_int_eq(ptr[pages(1)], 1);
    ptr[0] = 2;
    memrt__os_unmap(ptr, pages(2));
}

static void expect_no_environment(void *context)
{
    REQUIRE(memrt__os_environment_row(0) != NULL);
    clearenv();
    REQUIRE(memrt__os_environment_row(0) == NULL && memrt__os_environment_row(5) == NULL);
    (void)context;
}

TEST(a_process_may_have_no_environment_at_all)
{
    child_expect_success(expect_no_environment, NULL);
}

/// The limit of that name, or one of no bytes.
static memrt__os_limit_t limit_of(const char *what)
{
    memrt__os_limit_t limits[MEMRT__OS_LIMITS], found = {NULL, 0, 0};
    size_t count = memrt__os_limits(limits);
    REQUIRE(count <= MEMRT__OS_LIMITS);
    for (size_t i = 0; i < count; i++) {
        if (strstr(limits[i].what, what) != NULL) {
            found = limits[i];
        }
    }
    return found;
}

TEST(the_memory_of_the_machine_bounds_that_of_the_process)
{
    memrt__os_limit_t machine = limit_of("machine");
    ck_assert_uint_gt(machine.bytes, memrt__os_resident());
    ck_assert_uint_gt(machine.used, 0);
    ck_assert_uint_lt(machine.used, machine.bytes);
}

static void bound_the_address_space(void *context)
{
    struct rlimit limit;
    (void)context;
    REQUIRE(getrlimit(RLIMIT_AS, &limit) == 0);
    limit.rlim_cur = (rlim_t)1 << 45;
    REQUIRE(limit.rlim_max == RLIM_INFINITY || limit.rlim_cur <= limit.rlim_max);
    REQUIRE(setrlimit(RLIMIT_AS, &limit) == 0);
    memrt__os_limit_t space = limit_of("address space");
    REQUIRE(space.bytes == limit.rlim_cur);
    REQUIRE(space.used > 0 && space.used < space.bytes);
}

TEST(a_bound_of_the_address_space_is_told)
{
    child_expect_success(bound_the_address_space, NULL);
}
