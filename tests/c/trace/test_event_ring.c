#include "support/suite.h"

#include "runtime/trace/event_ring.h"
#include "support/kernel.h"

#define CAPACITY 10

static memrt__event_ring_t create_ring(size_t capacity)
{
    memrt__event_ring_t ring = {0};
    ck_assert(memrt__event_ring_allocate(&ring, capacity));
    return ring;
}

/// Put events numbered from `first` on. The thread number starts at 100 and grows by 1 after each
/// third event.
static void put_events(memrt__event_ring_t *ring, uint32_t first, uint32_t count)
{
    for (uint32_t i = first; i < first + count; i++) {
        memrt_trace_event_t event = {.block = i};
        memrt__event_ring_put(ring, 100 + i / 3, &event, 1);
    }
}

/// Check that all events from the oldest on are present, in order and with their thread. Returns
/// the number of runs.
static size_t expect_events(const memrt__event_ring_t *ring, uint32_t first, uint32_t count,
                            size_t most)
{
    uint64_t at = memrt__event_ring_overwritten(ring);
    memrt__event_ring_run_t run;
    size_t runs = 0;
    uint32_t next = first;
    ck_assert_uint_eq(at, first);
    while (memrt__event_ring_next(ring, &at, most, &run)) {
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

TEST(ring_keeps_all_events_up_to_its_capacity)
{
    memrt__event_ring_t ring = create_ring(CAPACITY);
    ck_assert_uint_eq(expect_events(&ring, 0, 0, 100), 0);
    put_events(&ring, 0, 7);
    ck_assert_uint_eq(expect_events(&ring, 0, 7, 100), 3);
    put_events(&ring, 7, 3);
    ck_assert_uint_eq(expect_events(&ring, 0, 10, 100), 4);
    memrt__event_ring_free(&ring);
}

TEST(full_ring_keeps_the_last_events)
{
    memrt__event_ring_t ring = create_ring(CAPACITY);
    put_events(&ring, 0, 13);
    ck_assert_uint_eq(memrt__event_ring_overwritten(&ring), 3);
    expect_events(&ring, 3, 10, 100);
    expect_events(&ring, 3, 10, 2);
    ck_assert_uint_eq(expect_events(&ring, 3, 10, 1), 10);
    put_events(&ring, 13, 100);
    expect_events(&ring, 103, 10, 100);
    memrt__event_ring_free(&ring);
}

TEST(ring_of_capacity_1_keeps_the_last_event)
{
    memrt__event_ring_t ring = create_ring(1);
    put_events(&ring, 0, 5);
    expect_events(&ring, 4, 1, 100);
    memrt__event_ring_free(&ring);
}

TEST(batch_larger_than_the_ring_keeps_its_last_events)
{
    memrt_trace_event_t events[25] = {0};
    memrt__event_ring_t ring = create_ring(CAPACITY);
    memrt__event_ring_run_t run;
    for (uint32_t i = 0; i < 25; i++) {
        events[i].block = i;
    }
    memrt__event_ring_put(&ring, 7, events, 25);
    uint64_t at = memrt__event_ring_overwritten(&ring);
    ck_assert_uint_eq(at, 15);
    ck_assert(memrt__event_ring_next(&ring, &at, 100, &run)); /* up to the end of the buffer */
    ck_assert_uint_eq(run.count, 5);
    ck_assert_uint_eq(run.events[0].block, 15);
    ck_assert(memrt__event_ring_next(&ring, &at, 100, &run));
    ck_assert_uint_eq(run.count, 5);
    ck_assert_uint_eq(run.events[4].block, 24);
    ck_assert_uint_eq(run.thread, 7);
    ck_assert(!memrt__event_ring_next(&ring, &at, 100, &run));
    memrt__event_ring_free(&ring);
}

TEST(ring_creation_fails_without_memory)
{
    memrt__event_ring_t ring = {0};
    memrt_failure_plan_t plan = {.struct_size = sizeof(plan), .nth = 1};
    ck_assert_int_eq(api->fail_allocations(&plan), MEMRT_OK);
    ck_assert(!memrt__event_ring_allocate(&ring, CAPACITY));
    ck_assert_int_eq(api->fail_allocations(NULL), MEMRT_OK);
    kernel_refuse(KERNEL_MAP, 0, 1);
    ck_assert(!memrt__event_ring_allocate(&ring, CAPACITY));
    ck_assert_uint_eq(ring.capacity, 0);
    memrt__event_ring_free(&ring); /* an empty ring has nothing to free */
}

TEST(dropped_ring_unmaps_its_memory)
{
    memrt__event_ring_t ring = create_ring(MEMRT_TRACE_LAST_MAX / 1024);
    size_t before = kernel_calls(KERNEL_UNMAP);
    ck_assert_uint_ge(ring.bytes, ring.capacity * 36);
    ck_assert_uint_lt(ring.bytes, ring.capacity * 36 + 65536);
    ring.threads[ring.capacity - 1] = 1;
    memrt__event_ring_free(&ring);
    ck_assert_uint_eq(kernel_calls(KERNEL_UNMAP), before + 1);
    ck_assert_uint_eq(ring.capacity, 0);
}
