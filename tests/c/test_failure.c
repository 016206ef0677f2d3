#include "support/suite.h"

#include "runtime/base/failure.h"
#include "support/crew.h"

/// Which of the next requests fail, as a mask: bit 0 is the first.
static unsigned due_in(unsigned requests)
{
    unsigned mask = 0;
    for (unsigned i = 0; i < requests; i++) {
        mask |= (unsigned)memrt__failure_due() << i;
    }
    return mask;
}

static unsigned due_under(uint64_t nth, uint64_t every)
{
    memrt_failure_plan_t plan = {.struct_size = sizeof(plan), .nth = nth, .every = every};
    memrt__failure_set(&plan);
    unsigned mask = due_in(8);
    ck_assert_uint_eq(memrt__failure_points(), 8);
    memrt__failure_set(NULL);
    return mask;
}

TEST(nothing_fails_without_a_plan)
{
    ck_assert_uint_eq(due_in(8), 0);
    ck_assert_uint_eq(memrt__failure_points(), 0);
}

TEST(just_the_nth_fails)
{
    ck_assert_uint_eq(due_under(1, 0), 0x01);
    ck_assert_uint_eq(due_under(3, 0), 0x04);
    ck_assert_uint_eq(due_under(9, 0), 0);
}

TEST(all_from_the_nth_on_fail)
{
    ck_assert_uint_eq(due_under(1, 1), 0xFF);
    ck_assert_uint_eq(due_under(3, 1), 0xFC);
}

TEST(every_kth_from_the_nth_on_fails)
{
    ck_assert_uint_eq(due_under(2, 3), 0x92);
}

TEST(a_plan_without_nth_only_counts)
{
    ck_assert_uint_eq(due_under(0, 1), 0);
}

TEST(a_new_plan_counts_from_one_again)
{
    ck_assert_uint_eq(due_under(8, 0), 0x80);
    ck_assert_uint_eq(due_under(8, 0), 0x80);
}

static void ask(size_t index, void *context)
{
    ((unsigned *)context)[index] = due_in(4);
}

TEST(a_plan_of_one_thread_lets_others_pass_uncounted)
{
    unsigned masks[2] = {1, 1};
    memrt_failure_plan_t plan = {
        .struct_size = sizeof(plan), .nth = 1, .every = 1, .this_thread_only = 1};
    memrt__failure_set(&plan);
    crew_run(2, ask, masks);
    ck_assert_uint_eq(memrt__failure_points(), 0);
    ck_assert_uint_eq(due_in(2), 3);
    memrt__failure_set(NULL);
    ck_assert_uint_eq(masks[0] | masks[1], 0);
}

TEST(a_plan_of_the_process_counts_all_threads)
{
    unsigned masks[2] = {0, 0};
    memrt_failure_plan_t plan = {.struct_size = sizeof(plan), .nth = 5, .every = 1};
    memrt__failure_set(&plan);
    crew_run(2, ask, masks);
    ck_assert_uint_eq(memrt__failure_points(), 8);
    memrt__failure_set(NULL);
    ck_assert_int_eq(__builtin_popcount(masks[0]) + __builtin_popcount(masks[1]), 4);
}
