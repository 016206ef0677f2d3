/// Tests of the site counters.

#include "support/suite.h"

#include "runtime/observe/intern_table.h"
#include "runtime/observe/site_counters.h"
#include "runtime/thread/thread.h"
#include "support/crew.h"

/* First and last site of a chunk, their neighbours, and the last possible sites. */
static const uint32_t sites[] = {
    1, 2, 1023, 1024, 1025, 1026, 2048, 2049, MEMRT__INTERNED_MAX - 1, MEMRT__INTERNED_MAX};
#define SITES (sizeof(sites) / sizeof(sites[0]))

static void add_at_each_site(size_t index, void *context)
{
    (void)context;
    for (size_t i = 0; i < SITES; i++) {
        for (size_t n = 0; n <= i; n++) {
            REQUIRE(memrt__site_counters_add(sites[i], 10 + index));
        }
    }
}

static void read_each(memrt__site_counters_t *out)
{
    for (size_t i = 0; i < SITES; i++) {
        out[i] = memrt__site_counters_at(sites[i]);
    }
}

TEST(allocations_are_counted_separately_per_site)
{
    memrt__site_counters_t before[SITES], after[SITES];
    read_each(before);
    add_at_each_site(0, NULL);
    read_each(after);
    for (size_t i = 0; i < SITES; i++) {
        ck_assert_uint_eq(after[i].count - before[i].count, i + 1);
        ck_assert_uint_eq(after[i].bytes - before[i].bytes, (i + 1) * 10);
    }
    ck_assert_uint_eq(memrt__site_counters_at(3).count, 0);
    ck_assert_uint_eq(memrt__site_counters_at(10000).count, 0);
}

TEST(site_counts_include_threads_that_have_exited)
{
    memrt__site_counters_t before[SITES], after[SITES];
    read_each(before);
    crew_run(3, add_at_each_site, NULL);
    read_each(after);
    for (size_t i = 0; i < SITES; i++) {
        ck_assert_uint_eq(after[i].count - before[i].count, 3 * (i + 1));
        ck_assert_uint_eq(after[i].bytes - before[i].bytes, (10 + 11 + 12) * (i + 1));
    }
}

static bool add_while_request_fails(uint64_t nth)
{
    suite_fail_request(nth);
    bool added = memrt__site_counters_add(1, 10);
    suite_fail_request(0);
    return added;
}

/// Requests fail for the thread record, then for the table of chunks, then repeatedly for the chunk
/// of counters. Each test has its own process, so the thread starts without a record.
TEST(site_count_grows_only_when_add_succeeds)
{
    const uint64_t failing[] = {1, 2, 2, 1, 1};
    size_t before = memrt__site_counters_at(1).count, added = 0;
    for (size_t i = 0; i < sizeof(failing) / sizeof(failing[0]); i++) {
        added += add_while_request_fails(failing[i]);
        ck_assert_uint_eq(memrt__site_counters_at(1).count - before, added);
    }
    ck_assert(memrt__site_counters_add(1, 10));
    ck_assert_uint_eq(memrt__site_counters_at(1).count - before, added + 1);
}
