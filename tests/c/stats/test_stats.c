#include "support/suite.h"

#include <pthread.h>
#include <stdlib.h>

#include "runtime/base/atomics.h"
#include "runtime/config/options.h"
#include "runtime/os/lock.h"
#include "runtime/policy/policy_table.h"
#include "runtime/stats/tally.h"
#include "support/books.h"
#include "support/crew.h"

static memrt_policy_t *create_policy(void)
{
    memrt_policy_t *policy;
    ck_assert_int_eq(api->policy_new(NULL, &policy), MEMRT_OK);
    return policy;
}

static void *allocate_block(memrt_policy_t *policy, size_t size)
{
    void *data = api->block_alloc(policy, size);
    ck_assert_ptr_nonnull(data);
    return data;
}

TEST(stats_read_with_struct_size_0_is_refused)
{
    memrt_stats_t stats = {.struct_size = 0, .live = 77};
    ck_assert_int_eq(api->stats_read(NULL, &stats), MEMRT_EINVAL);
    ck_assert_uint_eq(stats.live, 77);
}

TEST(shorter_stats_struct_is_filled_only_up_to_its_size)
{
    memrt_stats_t stats = {.struct_size = offsetof(memrt_stats_t, mi_free), .mi_free = 77};
    ck_assert_int_eq(api->stats_read(NULL, &stats), MEMRT_OK);
    ck_assert_uint_eq(stats.struct_size, offsetof(memrt_stats_t, mi_free));
    ck_assert_uint_eq(stats.mi_free, 77);
}

TEST(blocks_meminfos_and_bytes_have_separate_counters)
{
    memrt_policy_t *policy = create_policy();
    memrt_new_options_t options = {.struct_size = sizeof(options), .policy = policy};
    memrt_meminfo_t *mi, *resizable;
    ck_assert_int_eq(api->meminfo_new(100, &options, &mi), MEMRT_OK);
    ck_assert_int_eq(api->resizable_new(50, &options, &resizable), MEMRT_OK);
    void *block = allocate_block(policy, 7);
    memrt_stats_t stats = stats_of(policy);
    ck_assert_uint_eq(stats.alloc, 4); /* a resizable MemInfo is two blocks */
    ck_assert_uint_eq(stats.mi_alloc, 2);
    ck_assert_uint_eq(stats.live, 157);
    ck_assert_uint_eq(stats.total, 157);
    ck_assert_uint_gt(stats.reserved, stats.live);
    api->release(mi);
    api->release(resizable);
    api->block_free(policy, block, 0);
    stats = stats_of(policy);
    ck_assert_uint_eq(stats.free, 4);
    ck_assert_uint_eq(stats.mi_free, 2);
    ck_assert_uint_eq(stats.live + stats.reserved, 0);
    ck_assert_uint_eq(stats.peak, 157);
    api->policy_release(policy);
}

TEST(realloc_growth_counts_in_total_and_shrinking_does_not)
{
    memrt_policy_t *policy = create_policy();
    void *data = allocate_block(policy, 100);
    data = api->block_realloc(policy, data, 300);
    data = api->block_realloc(policy, data, 50);
    ck_assert_ptr_nonnull(data);
    memrt_stats_t stats = stats_of(policy);
    ck_assert_uint_eq(stats.total, 300);
    ck_assert_uint_eq(stats.live, 50);
    ck_assert_uint_eq(stats.peak, 300);
    ck_assert_uint_eq(stats.realloc, 2);
    ck_assert_uint_eq(stats.alloc, 1);
    api->block_free(policy, data, 0);
    api->policy_release(policy);
}

TEST(failed_request_changes_only_the_failed_counter)
{
    memrt_policy_t *policy = create_policy();
    void *data = allocate_block(policy, 10);
    memrt_stats_t before = stats_of(policy);
    ck_assert_ptr_null(api->block_alloc(policy, SIZE_MAX));
    ck_assert_ptr_null(api->block_calloc(policy, SIZE_MAX / 2, 4));
    ck_assert_ptr_null(api->block_realloc(policy, data, SIZE_MAX - 100));
    memrt_stats_t after = stats_of(policy);
    ck_assert_uint_eq(after.failed, before.failed + 3);
    after.failed = before.failed;
    ck_assert_mem_eq(&after, &before, sizeof(after));
    api->block_free(policy, data, 10);
    api->policy_release(policy);
}

TEST(exports_are_counted_until_return_or_last_release)
{
    memrt_policy_t *policy = create_policy();
    memrt_new_options_t options = {.struct_size = sizeof(options), .policy = policy};
    memrt_meminfo_t *mi;
    ck_assert_int_eq(api->meminfo_new(100, &options, &mi), MEMRT_OK);
    ck_assert_int_eq(api->acquire_as(mi, MEMRT_HOLDER_EXPORT, "a"), MEMRT_OK);
    ck_assert_int_eq(api->acquire_as(mi, MEMRT_HOLDER_EXPORT, "a"), MEMRT_OK);
    ck_assert_int_eq(api->acquire_as(mi, MEMRT_HOLDER_EXPORT, "b"), MEMRT_OK);
    ck_assert_int_eq(api->acquire_as(mi, MEMRT_HOLDER_REFERENCE, "a"), MEMRT_OK);
    ck_assert_uint_eq(stats_of(policy).exported, 3);
    api->release_as(mi, MEMRT_HOLDER_REFERENCE, "a");
    api->release_as(mi, MEMRT_HOLDER_EXPORT, "a");
    ck_assert_uint_eq(stats_of(policy).exported, 2);
    api->release(mi); /* a plain release: the names stay until the end */
    api->release(mi);
    ck_assert_uint_eq(stats_of(policy).exported, 2);
    api->release(mi);
    ck_assert_uint_eq(stats_of(policy).exported, 0);
    api->policy_release(policy);
}

TEST_EACH(leftover_export_ends_when_its_block_is_resized, 2)
{
    memrt_policy_t *policy = create_policy();
    memrt_meminfo_t *mi;
    void *data = api->block_alloc(policy, 100);
    ck_assert_int_eq(api->block_meminfo(data, &mi), MEMRT_OK);
    ck_assert_int_eq(api->acquire_as(mi, MEMRT_HOLDER_EXPORT, "a"), MEMRT_OK);
    api->release(mi);
    api->release(mi);
    ck_assert_uint_eq(stats_of(policy).exported, 1);
    data = api->block_realloc(policy, data, index == 0 ? 101 : 3000000);
    ck_assert_uint_eq(stats_of(policy).exported, 0);
    api->block_free(policy, data, 0);
    api->policy_release(policy);
}

TEST(adopted_bytes_do_not_count_as_live)
{
    static char foreign[500];
    memrt_policy_t *policy = create_policy();
    memrt_new_options_t options = {.struct_size = sizeof(options), .policy = policy};
    memrt_meminfo_t *mi;
    ck_assert_int_eq(api->meminfo_adopt(foreign, sizeof(foreign), &options, &mi), MEMRT_OK);
    ck_assert_uint_eq(stats_of(policy).adopted, sizeof(foreign));
    ck_assert_uint_eq(stats_of(policy).live, 0);
    api->release(mi);
    ck_assert_uint_eq(stats_of(policy).adopted, 0);
    api->policy_release(policy);
}

TEST(process_statistics_include_released_policies)
{
    memrt_stats_t before = stats_of(NULL);
    for (int i = 0; i < 3; i++) {
        memrt_policy_t *policy = create_policy();
        api->block_free(policy, allocate_block(policy, 1000), 1000);
        api->policy_release(policy);
    }
    memrt_stats_t after = stats_of(NULL);
    ck_assert_uint_eq(after.alloc, before.alloc + 3);
    ck_assert_uint_eq(after.free, before.free + 3);
    ck_assert_uint_eq(after.total, before.total + 3000);
    ck_assert_uint_eq(after.live, before.live);
}

TEST(reused_policy_index_starts_with_zero_statistics)
{
    memrt_policy_t *policy = create_policy();
    uint32_t place = api->policy_index(policy);
    api->block_free(policy, allocate_block(policy, 100000), 0);
    api->policy_release(policy);
    policy = create_policy();
    ck_assert_uint_eq(api->policy_index(policy), place);
    memrt_stats_t stats = stats_of(policy);
    memrt_stats_t nothing = {.struct_size = sizeof(nothing), .peak_error = stats.peak_error};
    ck_assert_mem_eq(&stats, &nothing, sizeof(stats));
    api->policy_release(policy);
}

/// Allocate and free at random, and compare the peak with a peak computed here.
static void walk_randomly(memrt_policy_t *policy, unsigned seed, size_t largest)
{
    enum { OWN = 50 };
    void *data[OWN] = {NULL};
    size_t sizes[OWN] = {0}, live = 0, peak = 0;
    for (int step = 0; step < 2000; step++) {
        size_t i = (size_t)rand_r(&seed) % OWN;
        api->block_free(policy, data[i], 0);
        live -= data[i] == NULL ? 0 : sizes[i];
        data[i] = NULL;
        if (rand_r(&seed) % 3 != 0) {
            sizes[i] = (size_t)rand_r(&seed) % largest;
            data[i] = allocate_block(policy, sizes[i]);
            live += sizes[i];
            peak = live > peak ? live : peak;
        }
        memrt_stats_t stats = stats_of(policy);
        ck_assert_uint_eq(stats.live, live);
        ck_assert_uint_eq(stats.peak, peak);
    }
    for (size_t i = 0; i < OWN; i++) {
        api->block_free(policy, data[i], 0);
    }
}

TEST(peak_is_exact_with_a_single_thread)
{
    static const size_t largest[] = {100, 5000, 300000};
    for (unsigned i = 0; i < 3; i++) {
        memrt_policy_t *policy = create_policy();
        walk_randomly(policy, i + 1, largest[i]);
        ck_assert_uint_eq(stats_of(policy).live, 0);
        api->policy_release(policy);
    }
}

TEST(single_thread_has_no_peak_error)
{
    api->block_free(NULL, allocate_block(NULL, 1000), 0);
    memrt__lock(MEMRT__RANK_THREADS);
    const memrt__thread_t *second = memrt__thread_first()->next;
    memrt__unlock(MEMRT__RANK_THREADS);
    ck_assert_ptr_null(second); /* tests with threads stand further down */
    ck_assert_uint_eq(stats_of(NULL).peak_error, 0);
}

TEST(peak_reset_starts_from_live_bytes)
{
    memrt_policy_t *policy = create_policy();
    void *kept = allocate_block(policy, 1000);
    api->block_free(policy, allocate_block(policy, 500000), 0);
    ck_assert_uint_eq(stats_of(policy).peak, 501000);
    api->stats_reset_peak(policy);
    ck_assert_uint_eq(stats_of(policy).peak, 1000);
    api->block_free(policy, allocate_block(policy, 200), 0);
    ck_assert_uint_eq(stats_of(policy).peak, 1200);
    api->block_free(policy, kept, 0);
    api->stats_reset_peak(policy);
    ck_assert_uint_eq(stats_of(policy).peak, 0);
    api->policy_release(policy);
}

TEST(bytes_reported_ahead_are_no_peak_during_the_report)
{
    memrt__options.peak_mode = 0;
    memrt_policy_t *policy = create_policy();
    void *held = allocate_block(policy, 1000);
    memrt__shard_t *shard = memrt__thread_shard(memrt__self, policy->account.index);
    size_t high = shard->high;
    memrt__level_raise_peaks(&policy->level, 1000);
    shard->high = MEMRT__GAUGE_REPORTS; /* in the middle of a report */
    policy->level.flushed += 5000;
    ck_assert_uint_eq(stats_of(policy).peak, 1000);
    ck_assert_uint_ne(stats_of(policy).peak_error, 0); /* the report does not end */
    policy->level.flushed -= 5000;
    shard->high = high;
    ck_assert_uint_eq(stats_of(policy).peak_error, 0);
    api->block_free(policy, held, 0);
    api->policy_release(policy);
}

#define MUCH ((size_t)2 << 20)

TEST(disturbed_reading_limits_live_bytes_to_the_peak)
{
    memrt__options.peak_mode = 0;
    memrt_policy_t *policy = create_policy();
    void *held = allocate_block(policy, MUCH);
    memrt__shard_t *shard = memrt__thread_shard(memrt__self, policy->account.index);
    size_t high = shard->high, peak = policy->level.peak;
    shard->high = MEMRT__GAUGE_REPORTS; /* in the middle of a report */
    policy->level.peak = 1000;          /* the sums read more bytes */
    memrt_stats_t stats = stats_of(policy);
    ck_assert_uint_ne(stats.peak_error, 0);
    ck_assert_uint_eq(stats.live, 1000 + stats.peak_error / MEMRT__GAUGE_PARTS);
    ck_assert_uint_eq(stats.peak, stats.live);
    policy->level.peak = peak;
    shard->high = high;
    api->block_free(policy, held, 0);
    api->policy_release(policy);
}

typedef struct told {
    memrt_policy_t *policy;
    size_t read; ///< whether the other thread has finished, release store and acquire load
} told_t;

static void rise_and_fall(size_t index, void *context)
{
    told_t *told = context;
    int readings = memrt__options.check ? 100 : 20000; /* checking fills each block three times */
    if (index == 1) {
        for (int i = 0; i < readings; i++) {
            memrt_stats_t stats = stats_of(told->policy); /* with an error if reports disturb it */
            REQUIRE(stats.peak <= MUCH + stats.peak_error / MEMRT__GAUGE_PARTS);
        }
        memrt__store_release(&told->read, 1);
        return;
    }
    do {
        api->block_free(told->policy, api->block_alloc(told->policy, MUCH), MUCH);
    } while (memrt__load_acquire(&told->read) == 0);
}

TEST(concurrent_reads_never_double_count_the_peak)
{
    told_t told = {create_policy(), 0};
    crew_run(2, rise_and_fall, &told);
    ck_assert_uint_eq(stats_of(told.policy).peak, MUCH);
    api->policy_release(told.policy);
}

static void reset_peak_on_a_fresh_thread(size_t index, void *policy)
{
    (void)index;
    api->stats_reset_peak(policy); /* without a record */
    void *data = api->block_alloc(NULL, 1000);
    api->stats_reset_peak(policy); /* with a record, but no shard for the policy */
    api->block_free(NULL, data, 1000);
}

TEST(peak_can_be_reset_by_a_thread_new_to_the_policy)
{
    memrt_policy_t *policies[MEMRT__CHUNK + 1];
    for (size_t i = 0; i <= MEMRT__CHUNK; i++) {
        ck_assert_int_eq(api->policy_new(NULL, &policies[i]), MEMRT_OK);
    }
    memrt_policy_t *policy = policies[MEMRT__CHUNK];
    void *held = api->block_alloc(policy, 2000);
    api->block_free(policy, api->block_alloc(policy, 4000000), 4000000);
    ck_assert_uint_ge(stats_of(policy).peak, 4002000);
    crew_run(1, reset_peak_on_a_fresh_thread, policy);
    ck_assert_uint_ge(stats_of(policy).peak, 2000);
    ck_assert_uint_lt(stats_of(policy).peak, 2000000);
    api->block_free(policy, held, 2000);
    for (size_t i = 0; i <= MEMRT__CHUNK; i++) {
        api->policy_release(policies[i]);
    }
}

typedef struct turns {
    memrt_policy_t *policy;
    void (*change)(memrt_policy_t *);
    size_t turn; ///< number of the next turn, release store and acquire load
} turns_t;

static void wait_for_turn(turns_t *turns, size_t turn)
{
    while (memrt__load_acquire(&turns->turn) != turn) {
    }
}

/// Rise and fall, so that the gauge has a rise above the bytes in use.
static void rise_and_fall_once(memrt_policy_t *policy)
{
    api->block_free(policy, api->block_alloc(policy, 40000), 0);
}

/// Reach a peak of 4 MiB, and rise again far below the peak, so that the gauge reports ahead.
static void report_ahead(memrt_policy_t *policy)
{
    api->block_free(policy, api->block_alloc(policy, 4 << 20), 0);
    api->block_free(policy, api->block_alloc(policy, 100000), 0);
}

static void change_before_the_reset(size_t index, void *context)
{
    turns_t *turns = context;
    if (index == 0) {
        void *low = api->block_alloc(turns->policy, 10000);
        turns->change(turns->policy);
        memrt__store_release(&turns->turn, 1);
        wait_for_turn(turns, 2);
        api->block_free(turns->policy, low, 0);
        return;
    }
    wait_for_turn(turns, 1);
    api->stats_reset_peak(turns->policy);
    memrt_stats_t stats = stats_of(turns->policy);
    REQUIRE(stats.peak <= 10000 + stats.peak_error);
    memrt__store_release(&turns->turn, 2);
}

TEST(peak_reset_by_another_thread_stays_within_peak_error)
{
    void (*const changes[])(memrt_policy_t *) = {rise_and_fall_once, report_ahead};
    for (size_t i = 0; i < sizeof(changes) / sizeof(*changes); i++) {
        turns_t turns = {.policy = create_policy(), .change = changes[i]};
        crew_run(2, change_before_the_reset, &turns);
        /* the threads have ended, and no gauge has unreported bytes */
        api->stats_reset_peak(turns.policy);
        ck_assert_uint_eq(stats_of(turns.policy).peak, 0);
        ck_assert_uint_eq(stats_of(turns.policy).peak_error, 0);
        api->policy_release(turns.policy);
    }
}

TEST(peak_error_covers_bytes_of_a_released_policy)
{
    memrt_policy_t *policy = create_policy();
    api->block_free(NULL, allocate_block(NULL, 10), 0);
    api->stats_reset_peak(NULL);
    uint64_t live = stats_of(NULL).live;
    void *first = allocate_block(NULL, 50000);
    api->block_free(policy, allocate_block(policy, 40000), 0);
    api->policy_release(policy);
    api->block_free(NULL, first, 0);
    memrt_stats_t stats = stats_of(NULL);
    ck_assert_uint_ge(stats.peak + stats.peak_error, live + 90000);
    ck_assert_uint_le(stats.peak, live + 90000 + stats.peak_error);
    ck_assert_uint_ge(stats.peak, live + 50000);
}

TEST(reset_peak_equals_live_after_free_of_bytes_past_gauges)
{
    if (api->tracking_enabled()) { /* the live set would get no memory either */
        return;
    }
    api->block_free(NULL, allocate_block(NULL, 10), 0); /* the thread has a record */
    memrt_policy_t *policies[MEMRT__CHUNK + 1];
    for (size_t i = 0; i <= MEMRT__CHUNK; i++) {
        policies[i] = create_policy();
    }
    memrt_policy_t *last = policies[MEMRT__CHUNK];
    memrt_failure_plan_t plan = {
        .struct_size = sizeof(plan), .nth = 2, .every = 1, .this_thread_only = 1};
    ck_assert_int_eq(api->fail_allocations(&plan), MEMRT_OK);
    void *data = api->block_alloc(last, 700);
    ck_assert_int_eq(api->fail_allocations(NULL), MEMRT_OK);
    ck_assert_ptr_nonnull(data);
    api->block_free(last, data, 0);
    for (size_t i = 0; i <= MEMRT__CHUNK; i++) {
        api->policy_release(policies[i]);
    }
    api->stats_reset_peak(NULL);
    ck_assert_uint_eq(stats_of(NULL).peak, stats_of(NULL).live);
}

TEST(process_peak_can_be_reset)
{
    api->block_free(NULL, allocate_block(NULL, (size_t)3 << 20), 0);
    api->stats_reset_peak(NULL);
    memrt_stats_t stats = stats_of(NULL);
    ck_assert_uint_le(stats.peak, stats.live + stats.peak_error);
}

typedef struct oracle {
    memrt_policy_t *policy;
    pthread_barrier_t together; ///< keeps all threads at about the same step
    pthread_mutex_t lock;
    size_t live, peak; ///< under the lock
} oracle_t;

/// Allocate and free under one lock, together with the oracle's own counters.
static void grow_and_shrink(size_t index, void *context)
{
    enum { OWN = 8 };
    oracle_t *oracle = context;
    void *data[OWN] = {NULL};
    size_t sizes[OWN] = {0};
    unsigned seed = (unsigned)index + 17;
    for (int step = 0; step < 3000; step++) {
        if (step % 10 == 0) {
            pthread_barrier_wait(&oracle->together);
        }
        size_t i = (size_t)rand_r(&seed) % OWN;
        pthread_mutex_lock(&oracle->lock);
        oracle->live -= sizes[i];
        api->block_free(oracle->policy, data[i], 0);
        sizes[i] = step < 2800 ? (size_t)rand_r(&seed) % 100000 : 0;
        data[i] = sizes[i] == 0 ? NULL : api->block_alloc(oracle->policy, sizes[i]);
        oracle->live += sizes[i];
        oracle->peak = oracle->live > oracle->peak ? oracle->live : oracle->peak;
        pthread_mutex_unlock(&oracle->lock);
    }
    for (size_t i = 0; i < OWN; i++) {
        REQUIRE(data[i] == NULL);
    }
}

TEST(peak_of_several_threads_is_within_its_error)
{
    oracle_t oracle = {.policy = create_policy()};
    memrt__options.peak_mode = 0;
    pthread_mutex_init(&oracle.lock, NULL);
    pthread_barrier_init(&oracle.together, NULL, 4);
    crew_run(4, grow_and_shrink, &oracle);
    pthread_barrier_destroy(&oracle.together);
    pthread_mutex_destroy(&oracle.lock);
    memrt_stats_t stats = stats_of(oracle.policy);
    ck_assert_uint_eq(stats.live, 0);
    ck_assert_uint_gt(stats.peak_error, 0);
    ck_assert_uint_le(stats.peak, oracle.peak + stats.peak_error);
    ck_assert_uint_ge(stats.peak + stats.peak_error, oracle.peak);
    api->policy_release(oracle.policy);
}

#define HANDED 4000
#define PLACES 64

/* At most one block in each place and one with each of the two threads are live. The factor 2
 * leaves room for changes during one reading. The sum of all blocks handed over is 30 times as
 * much. */
#define LIVE_BOUND ((uint64_t)2 * (PLACES + 2) * HANDED)

typedef struct handover {
    memrt_policy_t *policy;
    void *slots[PLACES]; ///< any thread, release store and acquire load; NULL: free
} handover_t;

static void allocate_and_publish(handover_t *handover)
{
    for (size_t i = 0; i < HANDED; i++) {
        size_t *slot = (size_t *)&handover->slots[i % PLACES];
        while (memrt__load_acquire(slot) != 0) {
        }
        void *data = api->block_alloc(handover->policy, 1 + i);
        REQUIRE(data != NULL);
        memrt__store_release(slot, (size_t)data);
    }
}

static void receive_and_free(handover_t *handover)
{
    for (size_t i = 0; i < HANDED; i++) {
        size_t *slot = (size_t *)&handover->slots[i % PLACES];
        size_t data;
        while ((data = memrt__load_acquire(slot)) == 0) {
        }
        memrt__store_release(slot, 0);
        api->block_free(handover->policy, (void *)data, 0);
    }
}

static void watch_numbers(handover_t *handover)
{
    memrt_stats_t stats = {.struct_size = sizeof(stats)};
    do {
        REQUIRE(api->stats_read(handover->policy, &stats) == MEMRT_OK);
        REQUIRE(stats.free <= stats.alloc);
        REQUIRE(stats.live <= LIVE_BOUND);
        REQUIRE(stats.peak >= stats.live);
        REQUIRE(stats.peak <= LIVE_BOUND + stats.peak_error);
    } while (stats.free < HANDED);
}

static void produce_consume_or_watch(size_t index, void *context)
{
    void (*const parts[])(handover_t *) = {allocate_and_publish, receive_and_free, watch_numbers};
    parts[index](context);
}

/* With exact peaks, each free takes the slow path, after a moment in which a reader sees the block
 * as freed although the free does not count yet. */
static void check_handover(size_t exact_peak)
{
    handover_t handover = {.policy = create_policy()};
    memrt__options.peak_mode = exact_peak;
    crew_run(3, produce_consume_or_watch, &handover);
    memrt_stats_t stats = stats_of(handover.policy);
    ck_assert_uint_eq(stats.alloc, HANDED);
    ck_assert_uint_eq(stats.free, HANDED);
    ck_assert_uint_eq(stats.total, (uint64_t)HANDED * (HANDED + 1) / 2);
    ck_assert_uint_eq(stats.live + stats.reserved, 0);
    ck_assert_uint_ge(stats.peak + stats.peak_error, HANDED);
    api->policy_release(handover.policy);
}

TEST(frees_by_another_thread_keep_statistics_consistent)
{
    check_handover(0);
}

TEST(frees_on_the_slow_path_keep_statistics_consistent)
{
    check_handover(1);
}

TEST(statistics_stay_consistent_when_tracking_is_switched)
{
    enum { BLOCKS = 1000 };
    void *data[BLOCKS];
    memrt_stats_t before = stats_of(NULL);
    for (size_t i = 0; i < BLOCKS; i++) {
        data[i] = allocate_block(NULL, 64);
    }
    int was = api->tracking(1);
    for (size_t i = 0; i < BLOCKS; i += 2) {
        api->block_free(NULL, data[i], 64);
        data[i] = allocate_block(NULL, 32);
    }
    api->tracking(0);
    for (size_t i = 0; i < BLOCKS; i++) {
        api->block_free(NULL, data[i], 64);
    }
    api->tracking(was);
    memrt_stats_t after = stats_of(NULL);
    ck_assert_uint_eq(after.live, before.live);
    ck_assert_uint_eq(after.alloc - before.alloc, BLOCKS + BLOCKS / 2);
    ck_assert_uint_eq(after.free - before.free, BLOCKS + BLOCKS / 2);
}
