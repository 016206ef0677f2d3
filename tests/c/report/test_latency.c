#include "support/suite.h"

#include <string.h>

#include "runtime/alloc/heap/heap.h"
#include "runtime/os/latency.h"
#include "runtime/policy/policy_table.h"
#include "support/crew.h"
#include "support/kernel.h"

enum { CREW = 4, ROUNDS = 200, BLOCKS = 3000 };
#define MIB ((size_t)1 << 20)
#define SECOND ((uint64_t)1000000000)

static void measure(bool on)
{
    REQUIRE(api->option_set("latency", on ? "1" : "0", NULL, 0) == MEMRT_OK);
}

static memrt_latency_t read_latency(memrt_latency_path_t path)
{
    memrt_latency_t now = {.struct_size = sizeof(now)};
    REQUIRE(api->latency(path, &now) == MEMRT_OK);
    uint64_t sum = 0;
    for (size_t bin = 0; bin < MEMRT_LATENCY_BINS; bin++) {
        sum += now.bins[bin];
    }
    REQUIRE(sum == now.count);
    return now;
}

static uint64_t count_runs(memrt_latency_path_t path)
{
    return read_latency(path).count;
}

/// The environment may have turned the measurement on.
void suite_prepare(void)
{
    measure(false);
}

/// Make each system call of memrt once.
static void call_system(void)
{
    size_t page = memrt__os_page_size();
    char *mapping = memrt__os_map(4 * page, 0, 1);
    REQUIRE(mapping != NULL);
    memrt__os_advise_huge(mapping, 4 * page, false);
    REQUIRE(memrt__os_discard(mapping, 4 * page));
    REQUIRE(memrt__os_remap(mapping, 4 * page, 2 * page, false) == mapping);
    REQUIRE(memrt__os_unmap(mapping, 2 * page));
}

TEST(each_system_call_counts_once)
{
    uint64_t before[MEMRT_LATENCY_ADVISE + 1];
    for (int path = MEMRT_LATENCY_MAP; path <= MEMRT_LATENCY_ADVISE; path++) {
        before[path] = count_runs((memrt_latency_path_t)path);
    }
    measure(true);
    call_system();
    measure(false);
    call_system();
    for (int path = MEMRT_LATENCY_MAP; path <= MEMRT_LATENCY_ADVISE; path++) {
        ck_assert_uint_eq(count_runs((memrt_latency_path_t)path) - before[path], 1);
    }
}

static void take_a_second(size_t size)
{
    (void)size;
    kernel_let_pass(SECOND);
}

static void take_an_hour(size_t size)
{
    (void)size;
    kernel_let_pass(3600 * SECOND);
}

static void unmap_slowly(kernel_act_fn act)
{
    void *mapping = memrt__os_map(memrt__os_page_size(), 0, 1);
    kernel_at_call(act);
    measure(true);
    REQUIRE(memrt__os_unmap(mapping, memrt__os_page_size()));
    measure(false);
    kernel_obey();
}

/// Return the runs in a bin and in all later bins.
static uint64_t count_from(const memrt_latency_t *latency, size_t bin)
{
    uint64_t runs = 0;
    for (; bin < MEMRT_LATENCY_BINS; bin++) {
        runs += latency->bins[bin];
    }
    return runs;
}

TEST(slow_system_call_counts_in_the_bin_of_its_time)
{
    memrt_latency_t before = read_latency(MEMRT_LATENCY_UNMAP);
    unmap_slowly(take_a_second);
    memrt_latency_t second = read_latency(MEMRT_LATENCY_UNMAP);
    ck_assert_uint_eq(second.count - before.count, 1);
    ck_assert_uint_ge(second.nanoseconds - before.nanoseconds, SECOND);
    ck_assert_uint_eq(count_from(&second, 30) - count_from(&before, 30), 1); /* from 2^29 ns */
    unmap_slowly(take_an_hour);
    memrt_latency_t hour = read_latency(MEMRT_LATENCY_UNMAP);
    ck_assert_uint_eq(hour.bins[MEMRT_LATENCY_BINS - 1] - second.bins[MEMRT_LATENCY_BINS - 1], 1);
    ck_assert_uint_ge(hour.nanoseconds - second.nanoseconds, 3600 * SECOND);
}

TEST(refused_system_call_counts)
{
    uint64_t before = count_runs(MEMRT_LATENCY_MAP);
    measure(true);
    kernel_refuse(KERNEL_MAP, 0, 1);
    ck_assert_ptr_null(memrt__os_map(memrt__os_page_size(), 0, 1));
    kernel_obey();
    measure(false);
    ck_assert_uint_eq(count_runs(MEMRT_LATENCY_MAP) - before, 1);
}

/// Allocate and free more blocks than a thread cache keeps.
static void allocate_blocks(void)
{
    static void *blocks[BLOCKS];
    for (size_t i = 0; i < BLOCKS; i++) {
        REQUIRE((blocks[i] = api->block_alloc(NULL, 10000)) != NULL);
    }
    for (size_t i = 0; i < BLOCKS; i++) {
        api->block_free(NULL, blocks[i], 10000);
    }
    (void)api->release_unused();
}

TEST(slow_paths_of_the_heap_count)
{
    static const memrt_latency_path_t paths[] = {MEMRT_LATENCY_GROW, MEMRT_LATENCY_REFILL,
                                                 MEMRT_LATENCY_OVERFLOW, MEMRT_LATENCY_DRAIN};
    uint64_t before[4];
    allocate_blocks();
    for (size_t i = 0; i < 4; i++) {
        before[i] = count_runs(paths[i]);
    }
    allocate_blocks();
    for (size_t i = 0; i < 4; i++) {
        ck_assert_uint_eq(count_runs(paths[i]), before[i]); /* the option is off */
    }
    measure(true);
    allocate_blocks();
    measure(false);
    if (memrt__is_heap(&memrt__default_policy.allocator)) {
        for (size_t i = 0; i < 4; i++) {
            ck_assert_uint_gt(count_runs(paths[i]), before[i]);
        }
    }
}

static size_t free_nothing(void *context, size_t wanted)
{
    (void)context;
    (void)wanted;
    return 0;
}

TEST(refusal_under_a_limit_counts_recall_and_reclaim)
{
    if (!MEMRT_COUNTERS) {
        return;
    }
    uint64_t recalls = count_runs(MEMRT_LATENCY_RECALL), runs = count_runs(MEMRT_LATENCY_RECLAIM);
    memrt_policy_options_t options = {.struct_size = sizeof(options)};
    memrt_policy_t *policy;
    REQUIRE(api->policy_new(&options, &policy) == MEMRT_OK);
    REQUIRE(api->limit_set(policy, NULL, MIB) == MEMRT_OK);
    REQUIRE(api->reclaim_add(free_nothing, NULL, 0) == MEMRT_OK);
    measure(true);
    ck_assert_ptr_null(api->block_alloc(policy, 2 * MIB));
    measure(false);
    REQUIRE(api->reclaim_remove(free_nothing, NULL) == MEMRT_OK);
    api->policy_release(policy);
    ck_assert_uint_ge(count_runs(MEMRT_LATENCY_RECALL) - recalls, 1);
    ck_assert_uint_eq(count_runs(MEMRT_LATENCY_RECLAIM) - runs, 1);
}

static void map_and_unmap(size_t index, void *context)
{
    (void)index;
    (void)context;
    for (size_t i = 0; i < ROUNDS; i++) {
        void *mapping = memrt__os_map(memrt__os_page_size(), 0, 1);
        REQUIRE(mapping != NULL && memrt__os_unmap(mapping, memrt__os_page_size()));
    }
}

TEST(threads_count_every_system_call)
{
    uint64_t before = count_runs(MEMRT_LATENCY_UNMAP);
    measure(true);
    crew_run(CREW, map_and_unmap, NULL);
    measure(false);
    ck_assert_uint_ge(count_runs(MEMRT_LATENCY_UNMAP) - before, (uint64_t)CREW * ROUNDS);
}

TEST(latency_refuses_unknown_paths_and_fills_short_structs)
{
    memrt_latency_t out = {.struct_size = sizeof(out)};
    ck_assert_int_eq(api->latency((memrt_latency_path_t)0, &out), MEMRT_EINVAL);
    ck_assert_int_eq(api->latency((memrt_latency_path_t)(MEMRT_LATENCY_PATHS + 1), &out),
                     MEMRT_EINVAL);
    out.struct_size = offsetof(memrt_latency_t, nanoseconds);
    out.nanoseconds = 7;
    ck_assert_int_eq(api->latency(MEMRT_LATENCY_MAP, &out), MEMRT_OK);
    ck_assert_uint_eq(out.nanoseconds, 7);
    ck_assert_uint_eq(out.bins[0], 0);
}
