#include "support/suite.h"

#include "runtime/config/fault_injection.h"
#include "support/crew.h"

/// Return a mask of the next requests that fail; bit 0 is the first request.
static unsigned find_due_requests(unsigned requests)
{
    unsigned mask = 0;
    for (unsigned i = 0; i < requests; i++) {
        mask |= (unsigned)memrt__fault_is_due() << i;
    }
    return mask;
}

static unsigned find_due_with_plan(uint64_t nth, uint64_t every)
{
    memrt_failure_plan_t plan = {.struct_size = sizeof(plan), .nth = nth, .every = every};
    memrt__fault_set(&plan);
    unsigned mask = find_due_requests(8);
    ck_assert_uint_eq(memrt__fault_points(), 8);
    memrt__fault_set(NULL);
    return mask;
}

TEST(no_request_fails_without_failure_plan)
{
    ck_assert_uint_eq(find_due_requests(8), 0);
    ck_assert_uint_eq(memrt__fault_points(), 0);
}

TEST(plan_fails_only_nth_request)
{
    ck_assert_uint_eq(find_due_with_plan(1, 0), 0x01);
    ck_assert_uint_eq(find_due_with_plan(3, 0), 0x04);
    ck_assert_uint_eq(find_due_with_plan(9, 0), 0);
}

TEST(plan_fails_all_requests_from_nth_on)
{
    ck_assert_uint_eq(find_due_with_plan(1, 1), 0xFF);
    ck_assert_uint_eq(find_due_with_plan(3, 1), 0xFC);
}

TEST(plan_fails_every_kth_request_from_nth_on)
{
    ck_assert_uint_eq(find_due_with_plan(2, 3), 0x92);
}

TEST(plan_without_nth_only_counts_requests)
{
    ck_assert_uint_eq(find_due_with_plan(0, 1), 0);
}

TEST(new_plan_restarts_request_count)
{
    ck_assert_uint_eq(find_due_with_plan(8, 0), 0x80);
    ck_assert_uint_eq(find_due_with_plan(8, 0), 0x80);
}

static void find_due_on_thread(size_t index, void *context)
{
    ((unsigned *)context)[index] = find_due_requests(4);
}

TEST(thread_plan_ignores_requests_of_other_threads)
{
    unsigned masks[2] = {1, 1};
    memrt_failure_plan_t plan = {
        .struct_size = sizeof(plan), .nth = 1, .every = 1, .this_thread_only = 1};
    memrt__fault_set(&plan);
    crew_run(2, find_due_on_thread, masks);
    ck_assert_uint_eq(memrt__fault_points(), 0);
    ck_assert_uint_eq(find_due_requests(2), 3);
    memrt__fault_set(NULL);
    ck_assert_uint_eq(masks[0] | masks[1], 0);
}

TEST(process_plan_counts_requests_of_all_threads)
{
    unsigned masks[2] = {0, 0};
    memrt_failure_plan_t plan = {.struct_size = sizeof(plan), .nth = 5, .every = 1};
    memrt__fault_set(&plan);
    crew_run(2, find_due_on_thread, masks);
    ck_assert_uint_eq(memrt__fault_points(), 8);
    memrt__fault_set(NULL);
    ck_assert_int_eq(__builtin_popcount(masks[0]) + __builtin_popcount(masks[1]), 4);
}
