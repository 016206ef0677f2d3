#include "support/suite.h"

#include <string.h>

#include "runtime/base/atomics.h"
#include "runtime/os/lock.h"
#include "runtime/os/os.h"
#include "runtime/policy/policy_sweep.h"
#include "runtime/stats/account.h"
#include "runtime/stats/level.h"
#include "runtime/stats/pause.h"
#include "support/child.h"
#include "support/crew.h"

enum { MOST = 256, MOVERS = 3, BETWEEN = 50, HELD = 20, SNAPSHOTS = 200 };
#define SIZE ((size_t)1000)

static memrt_level_stats_t levels[MOST];
static memrt_thread_stats_t threads[MOST];

static memrt_snapshot_t make_snapshot(void)
{
    for (size_t i = 0; i < MOST; i++) {
        levels[i].struct_size = sizeof(*levels);
        threads[i].struct_size = sizeof(*threads);
    }
    return (memrt_snapshot_t){.struct_size = sizeof(memrt_snapshot_t),
                              .levels = levels,
                              .level_count = MOST,
                              .threads = threads,
                              .thread_count = MOST};
}

/// Take a snapshot into `levels` and `threads`. Returns false if the counters did not come to rest.
static bool take_snapshot(void)
{
    memrt_snapshot_t snapshot = make_snapshot();
    memrt_status_t status = api->snapshot(&snapshot);
    REQUIRE(status == MEMRT_OK || status == MEMRT_EBUSY);
    REQUIRE(snapshot.readings >= 1 && snapshot.level_count <= MOST);
    REQUIRE(levels[0].kind == MEMRT_LEVEL_PROCESS);
    return status == MEMRT_OK;
}

static const memrt_stats_t *find_level(memrt_level_kind_t kind, uint64_t id)
{
    for (size_t i = 0; i < MOST; i++) {
        if (levels[i].kind == (uint64_t)kind && levels[i].id == id) {
            return &levels[i].stats;
        }
    }
    suite_fail(__FILE__, __LINE__, "the level is listed");
}

static memrt_policy_t *make_policy(const char *name)
{
    memrt_policy_options_t options = {
        .struct_size = sizeof(options), .name = name, .alignment = 64};
    memrt_policy_t *policy;
    REQUIRE(api->policy_new(&options, &policy) == MEMRT_OK);
    return policy;
}

TEST(snapshot_has_process_policies_scopes_and_threads)
{
    memrt_policy_t *gone = make_policy("gone"), *policy = make_policy("snapshot");
    memrt_scope_t *outer, *inner, *before;
    REQUIRE(api->scope_open(NULL, "outer", &outer) == MEMRT_OK);
    REQUIRE(api->scope_open(outer, "inner", &inner) == MEMRT_OK);
    REQUIRE(api->scope_enter(inner, &before) == MEMRT_OK);
    void *block = api->block_alloc(policy, SIZE);
    REQUIRE(block != NULL && api->scope_enter(before, NULL) == MEMRT_OK);
    api->policy_release(gone);
    memrt__policy_sweep(); /* leaves a free index before the policy */
    ck_assert(take_snapshot());
    memrt_stats_t stats = {.struct_size = sizeof(stats)};
    REQUIRE(api->stats_read(NULL, &stats) == MEMRT_OK);
    ck_assert_uint_eq(levels[0].stats.live, stats.live);
    ck_assert_uint_eq(levels[0].stats.alloc, stats.alloc);
    uint64_t expected = MEMRT_COUNTERS ? SIZE : 0;
    ck_assert_uint_eq(find_level(MEMRT_LEVEL_POLICY, api->policy_index(policy))->live, expected);
    ck_assert_uint_eq(find_level(MEMRT_LEVEL_SCOPE, api->scope_id(inner))->live, expected);
    ck_assert_uint_eq(find_level(MEMRT_LEVEL_SCOPE, api->scope_id(outer))->live, expected);
    size_t found = 0;
    for (size_t i = 0; i < MOST; i++) {
        found += levels[i].kind == MEMRT_LEVEL_SCOPE && levels[i].parent == api->scope_id(outer) &&
                 strcmp(levels[i].name, "inner") == 0;
        found += levels[i].kind == MEMRT_LEVEL_POLICY && strcmp(levels[i].name, "snapshot") == 0;
        ck_assert_str_ne(levels[i].name, "gone");
    }
    ck_assert_uint_eq(found, 2);
    ck_assert_uint_eq(threads[0].id, memrt__os_thread_id());
    api->block_free(policy, block, SIZE);
    api->policy_release(policy);
    api->scope_release(inner);
    api->scope_release(outer);
}

/// Movers: threads with HELD blocks each, or one more, in two policies.
typedef struct movers {
    memrt_policy_t *policies[2];
    size_t started; ///< relaxed; movers with HELD blocks
    size_t stop;    ///< relaxed
    size_t taken;   ///< consistent snapshots
} movers_t;

static void move_blocks(movers_t *movers)
{
    void *blocks[HELD];
    for (size_t i = 0; i < HELD; i++) {
        REQUIRE((blocks[i] = api->block_alloc(movers->policies[0], SIZE)) != NULL);
    }
    memrt__fetch_add_relaxed(&movers->started, 1);
    for (size_t step = 0; memrt__load_relaxed(&movers->stop) == 0; step++) {
        void **block = &blocks[step % HELD];
        void *moved = api->block_alloc(movers->policies[(step / HELD + 1) % 2], SIZE);
        REQUIRE(moved != NULL);
        api->block_free(NULL, *block, SIZE);
        *block = moved;
    }
    for (size_t i = 0; i < HELD; i++) {
        api->block_free(NULL, blocks[i], SIZE);
    }
}

static void expect_sum(const movers_t *movers)
{
    uint64_t live = 0, blocks = 0;
    for (size_t i = 0; i < 2; i++) {
        const memrt_stats_t *stats =
            find_level(MEMRT_LEVEL_POLICY, api->policy_index(movers->policies[i]));
        live += stats->live;
        blocks += stats->alloc - stats->free;
    }
    REQUIRE(live >= MOVERS * HELD * SIZE && live <= MOVERS * (HELD + 1) * SIZE);
    REQUIRE(blocks >= MOVERS * (HELD - 1) && blocks <= MOVERS * (HELD + 2));
}

static void watch_sum(movers_t *movers)
{
    while (memrt__load_relaxed(&movers->started) != MOVERS) {
    }
    for (size_t i = 0; i < SNAPSHOTS; i++) {
        if (take_snapshot()) {
            expect_sum(movers);
            movers->taken++;
        }
    }
    memrt__store_relaxed(&movers->stop, 1);
}

static void work(size_t index, void *context)
{
    if (index == 0) {
        watch_sum(context);
    } else {
        move_blocks(context);
    }
}

/// The sum over both policies is constant, except for a block of each thread that moves.
TEST(snapshot_sees_the_sum_over_levels_while_blocks_move)
{
    if (!MEMRT_COUNTERS) {
        return;
    }
    movers_t movers = {0};
    memrt_policy_t *between[BETWEEN];
    movers.policies[0] = make_policy("from");
    for (size_t i = 0; i < BETWEEN; i++) { /* so that a snapshot takes longer */
        between[i] = make_policy("between");
    }
    movers.policies[1] = make_policy("to");
    crew_run(MOVERS + 1, work, &movers);
    for (size_t i = 0; i < BETWEEN; i++) {
        api->policy_release(between[i]);
    }
    ck_assert_uint_ge(movers.taken, SNAPSHOTS / 2);
    api->policy_release(movers.policies[0]);
    api->policy_release(movers.policies[1]);
}

TEST(snapshot_at_rest_needs_one_reading)
{
    memrt_snapshot_t snapshot = make_snapshot();
    ck_assert_int_eq(api->snapshot(&snapshot), MEMRT_OK);
    ck_assert_uint_eq(snapshot.readings, 1);
}

static void require_next_generation(void *context)
{
    memrt_snapshot_t snapshot = make_snapshot();
    REQUIRE(api->snapshot(&snapshot) == MEMRT_OK);
    REQUIRE(snapshot.generation == *(uint64_t *)context + 1);
}

TEST(forked_child_is_of_the_next_generation)
{
    memrt_snapshot_t snapshot = make_snapshot();
    ck_assert_int_eq(api->snapshot(&snapshot), MEMRT_OK);
    child_expect_success(require_next_generation, &snapshot.generation);
    memrt_snapshot_t again = make_snapshot();
    ck_assert_int_eq(api->snapshot(&again), MEMRT_OK);
    ck_assert_uint_eq(again.generation, snapshot.generation);
}

TEST(snapshot_of_an_older_program_has_no_generation)
{
    memrt_snapshot_t snapshot = make_snapshot();
    snapshot.struct_size = offsetof(memrt_snapshot_t, generation);
    snapshot.generation = 77;
    ck_assert_int_eq(api->snapshot(&snapshot), MEMRT_OK);
    ck_assert_uint_eq(snapshot.generation, 77);
    ck_assert_uint_ne(snapshot.nanoseconds, 0);
}

/// One thread frees blocks, and another thread takes snapshots.
typedef struct frees {
    size_t done; ///< relaxed
} frees_t;

static void free_or_watch(size_t index, void *context)
{
    frees_t *frees = context;
    if (index == 0) {
        while (memrt__load_relaxed(&frees->done) == 0) {
            (void)take_snapshot(); /* may be refused, since frees do not wait */
        }
        return;
    }
    static void *blocks[20000];
    for (size_t i = 0; i < 20000; i++) {
        REQUIRE((blocks[i] = api->block_alloc(NULL, 64)) != NULL);
    }
    for (size_t i = 0; i < 20000; i++) {
        api->block_free(NULL, blocks[i], 64);
    }
    memrt__store_relaxed(&frees->done, 1);
}

TEST(frees_go_on_during_snapshots)
{
    frees_t frees = {0};
    crew_run(2, free_or_watch, &frees);
    ck_assert(take_snapshot());
}

/// The fingerprint covers each counter.
TEST(fingerprint_changes_with_each_counter)
{
    static memrt__shard_t shard = {.sequence = 1};
    memrt__account_t account = {.shared = &shard, .policy = &memrt__process};
    memrt__account_enter(&account);
    memrt__lock(MEMRT__RANK_THREADS);
    uint64_t last = memrt__stats_fingerprint();
    size_t *words = (size_t *)&shard;
    size_t skipped = offsetof(memrt__shard_t, promoted_in) / sizeof(size_t);
    for (size_t i = skipped; i < sizeof(shard) / sizeof(size_t); i++) {
        words[i]++;
        uint64_t now = memrt__stats_fingerprint();
        REQUIRE(now != last);
        last = now;
    }
    shard.bytes_in++;
    REQUIRE(memrt__stats_fingerprint() != last);
    last = memrt__stats_fingerprint();
    shard.bytes_out++;
    REQUIRE(memrt__stats_fingerprint() != last);
    memrt__account_leave(&account);
    memrt__unlock(MEMRT__RANK_THREADS);
}

TEST(snapshot_fills_the_elements_that_exist)
{
    memrt_snapshot_t snapshot = make_snapshot();
    snapshot.levels = NULL;
    snapshot.level_count = 0;
    snapshot.threads = NULL;
    snapshot.thread_count = 0;
    void *block = api->block_alloc(NULL, SIZE); /* so that the thread has a record */
    ck_assert_int_eq(api->snapshot(&snapshot), MEMRT_OK);
    api->block_free(NULL, block, SIZE);
    ck_assert_uint_ge(snapshot.level_count, 2);
    ck_assert_uint_ge(snapshot.thread_count, 1);
}

TEST(snapshot_refuses_missing_sizes_and_arrays)
{
    memrt_snapshot_t snapshot = make_snapshot();
    snapshot.struct_size = 0;
    ck_assert_int_eq(api->snapshot(&snapshot), MEMRT_EINVAL);
    snapshot = make_snapshot();
    snapshot.levels = NULL;
    ck_assert_int_eq(api->snapshot(&snapshot), MEMRT_EINVAL);
    snapshot = make_snapshot();
    levels[1].struct_size = 0;
    ck_assert_int_eq(api->snapshot(&snapshot), MEMRT_EINVAL);
    snapshot = make_snapshot();
    threads[1].struct_size = 0;
    ck_assert_int_eq(api->snapshot(&snapshot), MEMRT_EINVAL);
    snapshot = make_snapshot();
    snapshot.threads = NULL;
    ck_assert_int_eq(api->snapshot(&snapshot), MEMRT_EINVAL);
}

/// Threads allocate, resize and take snapshots, without a deadlock.
static void snap_and_allocate(size_t index, void *context)
{
    (void)context;
    for (size_t i = 0; i < 100; i++) {
        void *block = api->block_alloc(NULL, SIZE * (1 + i % 50));
        REQUIRE(block != NULL);
        block = api->block_realloc(NULL, block, SIZE * (2 + i % 40));
        REQUIRE(block != NULL);
        if (i % 10 == index) {
            memrt_snapshot_t snapshot = {.struct_size = sizeof(snapshot)};
            (void)!api->snapshot(&snapshot);
        }
        api->block_free(NULL, block, 0);
    }
}

TEST(threads_take_snapshots_side_by_side)
{
    crew_run(4, snap_and_allocate, NULL);
}

static void snap_in_child(void *context)
{
    (void)context;
    REQUIRE(take_snapshot());
}

TEST(forked_child_takes_a_snapshot)
{
    child_expect_success(snap_in_child, NULL);
}
