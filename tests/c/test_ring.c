#include "support/suite.h"

#include "runtime/debug/ring.h"
#include "support/kernel.h"

#define CAPACITY 10

static memrt__ring_t ring_of(size_t capacity)
{
    memrt__ring_t ring = {0};
    ck_assert(memrt__ring_make(&ring, capacity));
    return ring;
}

/// Events numbered from `first` on, of the thread 100, 101, ... that changes after every third.
static void put(memrt__ring_t *ring, uint32_t first, uint32_t count)
{
    for (uint32_t i = first; i < first + count; i++) {
        memrt_trace_event_t event = {.block = i};
        memrt__ring_put(ring, 100 + i / 3, &event, 1);
    }
}

/// Everything from the oldest on is there, in order and of its thread; returns the runs.
static size_t expect(const memrt__ring_t *ring, uint32_t first, uint32_t count, size_t most)
{
    uint64_t at = memrt__ring_overwritten(ring);
    memrt__ring_run_t run;
    size_t runs = 0;
    uint32_t next = first;
    ck_assert_uint_eq(at, first);
    while (memrt__ring_next(ring, &at, most, &run)) {
        ck_assert_uint_ge(run.count, 1);
        ck_assert_uint_le(run.count, most);
        for (size_t i = 0; i < run.count; i++, next++) {
            ck_assert_uint_eq(run.events[i].block, next);
            ck_assert_uint_eq(run.thread, 100 + next / 3);
        }
        runs++;
    }
    ck_assert_uint_eq(next, first + count);
    return runs;
}

TEST(a_ring_that_is_not_full_has_all_that_was_put_in)
{
    memrt__ring_t ring = ring_of(CAPACITY);
    ck_assert_uint_eq(expect(&ring, 0, 0, 100), 0);
    put(&ring, 0, 7);
    ck_assert_uint_eq(expect(&ring, 0, 7, 100), 3);
    put(&ring, 7, 3);
    ck_assert_uint_eq(expect(&ring, 0, 10, 100), 4);
    memrt__ring_drop(&ring);
}

TEST(a_full_ring_has_the_last_ones)
{
    memrt__ring_t ring = ring_of(CAPACITY);
    put(&ring, 0, 13);
    ck_assert_uint_eq(memrt__ring_overwritten(&ring), 3);
    expect(&ring, 3, 10, 100);
    expect(&ring, 3, 10, 2);
    ck_assert_uint_eq(expect(&ring, 3, 10, 1), 10);
    put(&ring, 13, 100);
    expect(&ring, 103, 10, 100);
    memrt__ring_drop(&ring);
}

TEST(a_ring_of_one_has_the_last)
{
    memrt__ring_t ring = ring_of(1);
    put(&ring, 0, 5);
    expect(&ring, 4, 1, 100);
    memrt__ring_drop(&ring);
}

TEST(several_are_put_in_at_once_also_more_than_fit)
{
    memrt_trace_event_t events[25] = {0};
    memrt__ring_t ring = ring_of(CAPACITY);
    memrt__ring_run_t run;
    for (uint32_t i = 0; i < 25; i++) {
        events[i].block = i;
    }
    memrt__ring_put(&ring, 7, events, 25);
    uint64_t at = memrt__ring_overwritten(&ring);
    ck_assert_uint_eq(at, 15);
    ck_assert(memrt__ring_next(&ring, &at, 100, &run)); /* up to the end of the room */
    ck_assert_uint_eq(run.count, 5);
    ck_assert_uint_eq(run.events[0].block, 15);
    ck_assert(memrt__ring_next(&ring, &at, 100, &run));
    ck_assert_uint_eq(run.count, 5);
    ck_assert_uint_eq(run.events[4].block, 24);
    ck_assert_uint_eq(run.thread, 7);
    ck_assert(!memrt__ring_next(&ring, &at, 100, &run));
    memrt__ring_drop(&ring);
}

TEST(a_ring_without_memory_is_none)
{
    memrt__ring_t ring = {0};
    memrt_failure_plan_t plan = {.struct_size = sizeof(plan), .nth = 1};
    ck_assert_int_eq(api->fail_allocations(&plan), MEMRT_OK);
    ck_assert(!memrt__ring_make(&ring, CAPACITY));
    ck_assert_int_eq(api->fail_allocations(NULL), MEMRT_OK);
    kernel_refuse(KERNEL_MAP, 0, 1);
    ck_assert(!memrt__ring_make(&ring, CAPACITY));
    ck_assert_uint_eq(ring.capacity, 0);
    memrt__ring_drop(&ring); /* of none there is nothing to give back */
}

TEST(a_ring_gives_back_all_of_its_memory)
{
    memrt__ring_t ring = ring_of(MEMRT_TRACE_LAST_MAX / 1024);
    size_t before = kernel_calls(KERNEL_UNMAP);
    ck_assert_uint_ge(ring.bytes, ring.capacity * 36);
    ck_assert_uint_lt(ring.bytes, ring.capacity * 36 + 65536);
    ring.threads[ring.capacity - 1] = 1;
    memrt__ring_drop(&ring);
    ck_assert_uint_eq(kernel_calls(KERNEL_UNMAP), before + 1);
    ck_assert_uint_eq(ring.capacity, 0);
}
