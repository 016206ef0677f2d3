#include "support/suite.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "conformance/pattern.h"
#include "runtime/base/size.h"
#include "runtime/os/os.h"
#include "support/child.h"
#include "support/crew.h"

static size_t compute_page_bytes(size_t count)
{
    return count * memrt__os_page_size();
}

TEST(page_size_is_a_power_of_two_of_at_least_4096)
{
    ck_assert(memrt__is_power_of_two(memrt__os_page_size()));
    ck_assert_uint_ge(memrt__os_page_size(), 4096);
}

TEST(mapped_pages_are_zero_writable_and_aligned)
{
    for (size_t align = 1; align <= (size_t)64 << 20; align *= 4) {
        unsigned char *ptr = memrt__os_map(compute_page_bytes(3), 0, align);
        ck_assert_ptr_nonnull(ptr);
        ck_assert_uint_eq((uintptr_t)ptr & (align - 1), 0);
        ck_assert(pattern_is_zero(ptr, compute_page_bytes(3)));
        memset(ptr, 1, compute_page_bytes(3));
        memrt__os_unmap(ptr, compute_page_bytes(3));
    }
}

TEST(oversized_mapping_is_refused)
{
    ck_assert_ptr_null(memrt__os_map(((size_t)1 << 60), 0, 1));
    ck_assert_ptr_null(memrt__os_map(SIZE_MAX & ~(compute_page_bytes(1) - 1), 0, (size_t)1 << 30));
}

TEST(remap_keeps_contents_on_grow_and_shrink)
{
    unsigned char *ptr = memrt__os_map(compute_page_bytes(4), 0, 1);
    ck_assert_ptr_nonnull(ptr);
    pattern_write(ptr, compute_page_bytes(4), 9);
    size_t held = 4;
    unsigned char *grown =
        memrt__os_remap(ptr, compute_page_bytes(4), compute_page_bytes(400), true);
    /* mappings never move under ThreadSanitizer */
    ck_assert(grown != NULL || SUITE_THREAD_SANITIZER);
    if (grown != NULL) {
        ptr = grown;
        held = 400;
        ck_assert(pattern_is_zero(ptr + compute_page_bytes(4), compute_page_bytes(396)));
    }
    ck_assert(pattern_holds(ptr, compute_page_bytes(4), 9));
    unsigned char *same =
        memrt__os_remap(ptr, compute_page_bytes(held), compute_page_bytes(2), false);
    ck_assert_ptr_eq(same, ptr);
    ck_assert(pattern_holds(ptr, compute_page_bytes(2), 9));
    memrt__os_unmap(ptr, compute_page_bytes(2));
}

TEST(refused_remap_keeps_contents)
{
    unsigned char *ptr = memrt__os_map(compute_page_bytes(2), 0, 1);
    ck_assert_ptr_nonnull(ptr);
    pattern_write(ptr, compute_page_bytes(2), 4);
    ck_assert_ptr_null(memrt__os_remap(ptr, compute_page_bytes(2), (size_t)1 << 60, true));
    ck_assert(pattern_holds(ptr, compute_page_bytes(2), 4));
    memrt__os_unmap(ptr, compute_page_bytes(2));
}

TEST(clock_never_runs_backward)
{
    uint64_t last = memrt__os_now_ns();
    ck_assert_uint_gt(last, 0);
    for (int i = 0; i < 1000; i++) {
        uint64_t now = memrt__os_now_ns();
        ck_assert(now >= last);
        last = now;
    }
}

static void record_thread_id(size_t index, void *context)
{
    ((uint64_t *)context)[index] = memrt__os_thread_id();
}

TEST(thread_ids_differ_from_the_main_thread)
{
    uint64_t ids[3] = {0, 0, memrt__os_thread_id()};
    crew_run(2, record_thread_id, ids);
    ck_assert_uint_ne(ids[0], ids[2]);
    ck_assert_uint_ne(ids[1], ids[2]);
    ck_assert_uint_ne(ids[0], 0);
    ck_assert_uint_eq(ids[2], memrt__os_thread_id());
}

TEST(environment_can_be_read_by_name_and_by_row)
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

TEST(mapping_is_aligned_after_its_lead)
{
    size_t lead = compute_page_bytes(1), align = (size_t)2 << 20;
    unsigned char *ptr = memrt__os_map(compute_page_bytes(4), lead, align);
    ck_assert_ptr_nonnull(ptr);
    ck_assert_uint_eq(((uintptr_t)ptr + lead) % align, 0);
    memset(ptr, 1, compute_page_bytes(4));
    memrt__os_unmap(ptr, compute_page_bytes(4));
}

static bool is_mapped(const void *page)
{
    return msync((void *)(uintptr_t)page, compute_page_bytes(1), MS_ASYNC) == 0; /* else ENOMEM */
}

/// Return the number of mapped pages of the process. Maps no pages itself.
static size_t count_mapped_pages(void)
{
    char text[128] = "";
    int file = open("/proc/self/statm", O_RDONLY);
    ck_assert_int_gt(read(file, text, sizeof(text) - 1), 0);
    close(file);
    return strtoul(text, NULL, 10);
}

/// The pages around may belong to other mappings, so the test counts the pages of the process.
TEST(aligned_mapping_leaves_no_mapped_pages_around)
{
    size_t align = (size_t)64 << 20;
    unsigned char *ptr = memrt__os_map(compute_page_bytes(2), 0, align); /* maps a table as well */
    memrt__os_unmap(ptr, compute_page_bytes(2));
    for (int i = 0; i < 4; i++) {
        size_t before = count_mapped_pages();
        ptr = memrt__os_map(compute_page_bytes(2), 0, align);
        ck_assert_ptr_nonnull(ptr);
        ck_assert(is_mapped(ptr) && is_mapped(ptr + compute_page_bytes(1)));
        ck_assert_uint_eq(count_mapped_pages(), before + 2);
        memrt__os_unmap(ptr, compute_page_bytes(2));
    }
}

TEST(discarded_pages_are_zero_and_writable)
{
    unsigned char *ptr = memrt__os_map(compute_page_bytes(2), 0, 1);
    ck_assert_ptr_nonnull(ptr);
    memset(ptr, 1, compute_page_bytes(2));
    ck_assert(memrt__os_discard(ptr, compute_page_bytes(1)));
    ck_assert_int_eq(ptr[0], 0);
    ck_assert_int_eq(ptr[compute_page_bytes(1)], 1);
    ptr[0] = 2;
    memrt__os_unmap(ptr, compute_page_bytes(2));
}

TEST(resident_part_counts_pages_in_memory)
{
    enum { PAGES = 5000 };
    size_t page = memrt__os_page_size();
    char *ptr = memrt__os_map(compute_page_bytes(PAGES), 0, 1);
    ck_assert_ptr_nonnull(ptr);
    memrt__os_advise_huge(ptr, compute_page_bytes(PAGES), false);
    for (size_t i = 0; i < PAGES; i += 2) {
        ptr[i * page] = 1;
    }
    size_t resident = memrt__os_resident_part((uintptr_t)ptr, compute_page_bytes(PAGES));
    ck_assert_uint_le(resident, compute_page_bytes(PAGES) / 2);
    ck_assert_uint_ge(resident, compute_page_bytes(PAGES) / 2 - 100 * page); /* some in swap */
    memrt__os_unmap(ptr, compute_page_bytes(PAGES));
    ck_assert_uint_eq(memrt__os_resident_part((uintptr_t)ptr, page), 0);
}

static void expect_no_environment(void *context)
{
    REQUIRE(memrt__os_environment_row(0) != NULL);
    clearenv();
    REQUIRE(memrt__os_environment_row(0) == NULL && memrt__os_environment_row(5) == NULL);
    (void)context;
}

TEST(environment_rows_are_null_after_clearenv)
{
    child_expect_success(expect_no_environment, NULL);
}

/// Return the limit whose text contains `what`, or a limit of 0 bytes.
static memrt__os_limit_t find_limit(const char *what)
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

/// Return the bytes of the machine by the first line of /proc/meminfo.
static size_t read_machine_bytes(void)
{
    size_t kibibytes = 0;
    FILE *file = fopen("/proc/meminfo", "r");
    REQUIRE(file != NULL && fscanf(file, "MemTotal: %zu kB", &kibibytes) == 1);
    fclose(file);
    return kibibytes * 1024;
}

TEST(machine_memory_limit_exceeds_used_and_resident_memory)
{
    memrt__os_limit_t machine = find_limit("machine");
    ck_assert_uint_eq(machine.bytes, read_machine_bytes());
    ck_assert_uint_gt(machine.bytes, memrt__os_resident());
    ck_assert_uint_gt(machine.used, 0);
    ck_assert_uint_lt(machine.used, machine.bytes);
}

static void limit_address_space(void *context)
{
    struct rlimit limit;
    (void)context;
    REQUIRE(getrlimit(RLIMIT_AS, &limit) == 0);
    limit.rlim_cur = (rlim_t)1 << (SUITE_THREAD_SANITIZER ? 47 : 45); /* it maps more than 2^45 */
    REQUIRE(limit.rlim_max == RLIM_INFINITY || limit.rlim_cur <= limit.rlim_max);
    REQUIRE(setrlimit(RLIMIT_AS, &limit) == 0);
    memrt__os_limit_t space = find_limit("address space");
    REQUIRE(space.bytes == limit.rlim_cur);
    REQUIRE(space.used > 0 && space.used < space.bytes);
}

TEST(os_limits_include_the_address_space_limit)
{
    child_expect_success(limit_address_space, NULL);
}
