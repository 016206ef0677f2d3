#include "support/suite.h"

#include "runtime/base/failure.h"
#include "runtime/debug/births.h"
#include "runtime/debug/interned.h"
#include "runtime/stats/thread.h"
#include "support/crew.h"

/* First and last of those that are kept side by side, their neighbours, and the last of all. */
static const uint32_t sites[] = {
    1, 2, 1023, 1024, 1025, 1026, 2048, 2049, MEMRT__INTERNED_MAX - 1, MEMRT__INTERNED_MAX};
#define SITES (sizeof(sites) / sizeof(sites[0]))

static void add_at_each(size_t index, void *context)
{
    (void)context;
    for (size_t i = 0; i < SITES; i++) {
        for (size_t n = 0; n <= i; n++) {
            REQUIRE(memrt__births_add(sites[i], 10 + index));
        }
    }
}

static void read_each(memrt__births_t *out)
{
    for (size_t i = 0; i < SITES; i++) {
        out[i] = memrt__births_at(sites[i]);
    }
}

TEST(births_are_counted_apart_at_each_site)
{
    memrt__births_t before[SITES], after[SITES];
    read_each(before);
    add_at_each(0, NULL);
    read_each(after);
    for (size_t i = 0; i < SITES; i++) {
        ck_assert_uint_eq(after[i].count - before[i].count, i + 1);
        ck_assert_uint_eq(after[i].bytes - before[i].bytes, (i + 1) * 10);
    }
    ck_assert_uint_eq(memrt__births_at(3).count, 0);
    ck_assert_uint_eq(memrt__births_at(10000).count, 0);
}

TEST(births_of_all_threads_are_counted_also_of_those_that_ended)
{
    memrt__births_t before[SITES], after[SITES];
    read_each(before);
    crew_run(3, add_at_each, NULL);
    read_each(after);
    for (size_t i = 0; i < SITES; i++) {
        ck_assert_uint_eq(after[i].count - before[i].count, 3 * (i + 1));
        ck_assert_uint_eq(after[i].bytes - before[i].bytes, (10 + 11 + 12) * (i + 1));
    }
}

static bool add_while_request_fails(uint64_t nth)
{
    memrt_failure_plan_t plan = {.struct_size = sizeof(plan), .nth = nth, .this_thread_only = 1};
    memrt__failure_set(&plan);
    bool added = memrt__births_add(1, 10);
    memrt__failure_set(NULL);
    return added;
}

/// In a process of its own, a thread lacks first its record, then its table, then the counts of
/// such sites, twice.
TEST(a_birth_is_counted_where_it_says_so_and_only_there)
{
    const uint64_t failing[] = {1, 2, 2, 1, 1};
    size_t before = memrt__births_at(1).count, added = 0;
    for (size_t i = 0; i < sizeof(failing) / sizeof(failing[0]); i++) {
        added += add_while_request_fails(failing[i]);
        ck_assert_uint_eq(memrt__births_at(1).count - before, added);
    }
    ck_assert(memrt__births_add(1, 10));
    ck_assert_uint_eq(memrt__births_at(1).count - before, added + 1);
}
