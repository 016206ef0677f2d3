/// Compare peaks with an oracle. Each change happens under one lock, together with the oracle's own
/// counters, so that all changes have one order.

#include "support/suite.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>

#include "runtime/base/atomics.h"
#include "runtime/config/options.h"
#include "support/chance.h"
#include "support/crew.h"
#include "support/kernel.h"

/// Levels with a peak: the process, a policy, a scope and a nested scope.
enum { PROCESS, POLICY, OUTER, INNER, LEVELS };

#define THREADS 4
#define STEPS (memrt__options.check ? 1500 : 6000)

typedef struct oracle {
    memrt_policy_t *policy;
    memrt_scope_t *outer, *inner;
    bool switches; ///< threads also change the option
    bool is_close; ///< the error is checked, and no thread resets a peak
    unsigned seed;
    pthread_mutex_t lock;
    uint64_t live[LEVELS], peak[LEVELS]; ///< under the lock
} oracle_t;

static void set_peak(const char *how)
{
    REQUIRE(api->option_set("peak", how, NULL, 0) == MEMRT_OK);
}

static memrt_stats_t read_level_stats(const oracle_t *oracle, int level)
{
    memrt_stats_t stats = {.struct_size = sizeof(stats)};
    memrt_scope_t *scope = level == OUTER ? oracle->outer : oracle->inner;
    memrt_status_t status = level >= OUTER
                                ? api->scope_stats(scope, &stats)
                                : api->stats_read(level == POLICY ? oracle->policy : NULL, &stats);
    REQUIRE(status == MEMRT_OK);
    return stats;
}

static void reset_level(oracle_t *oracle, int level)
{
    if (level >= OUTER) {
        api->scope_reset_peak(level == OUTER ? oracle->outer : oracle->inner);
    } else {
        api->stats_reset_peak(level == POLICY ? oracle->policy : NULL);
    }
    oracle->peak[level] = oracle->live[level];
}

static void create_oracle(oracle_t *oracle)
{
    memset(oracle, 0, sizeof(*oracle));
    oracle->seed = suite_number("STRESS_SEED", 1);
    pthread_mutex_init(&oracle->lock, NULL);
    ck_assert_int_eq(api->policy_new(NULL, &oracle->policy), MEMRT_OK);
    ck_assert_int_eq(api->scope_open(NULL, "outer", &oracle->outer), MEMRT_OK);
    ck_assert_int_eq(api->scope_open(oracle->outer, "inner", &oracle->inner), MEMRT_OK);
    oracle->live[PROCESS] = read_level_stats(oracle, PROCESS).live;
    for (int level = 0; level < LEVELS; level++) {
        reset_level(oracle, level);
    }
}

static void destroy_oracle(oracle_t *oracle)
{
    api->policy_release(oracle->policy);
    api->scope_release(oracle->inner);
    api->scope_release(oracle->outer);
    pthread_mutex_destroy(&oracle->lock);
}

/// Buffer of a thread; `levels` has a bit for each level of the buffer.
typedef struct own {
    void *data;
    size_t size;
    unsigned levels;
} own_t;

static void change_levels(oracle_t *oracle, unsigned levels, size_t more)
{
    for (int level = 0; level < LEVELS; level++) {
        if ((levels >> level & 1) != 0) {
            oracle->live[level] += more;
            if (oracle->live[level] > oracle->peak[level]) {
                oracle->peak[level] = oracle->live[level];
            }
        }
    }
}

static size_t choose_size(chance_t *chance)
{
    static const size_t most[] = {60, 2000, 70000, 3000000};
    return 1 + chance_below(chance, most[chance_below(chance, 100) / 33]);
}

static void allocate_own_block(oracle_t *oracle, own_t *own, chance_t *chance)
{
    size_t place = chance_below(chance, 3);
    bool of_policy = chance_below(chance, 2) == 0;
    memrt_scope_t *scopes[] = {NULL, oracle->outer, oracle->inner};
    const unsigned levels[] = {0, 1u << OUTER, 1u << OUTER | 1u << INNER};
    own->size = choose_size(chance);
    own->levels = 1u << PROCESS | levels[place] | (of_policy ? 1u << POLICY : 0);
    REQUIRE(api->scope_enter(scopes[place], NULL) == MEMRT_OK);
    own->data = api->block_alloc(of_policy ? oracle->policy : NULL, own->size);
    REQUIRE(own->data != NULL && api->scope_enter(NULL, NULL) == MEMRT_OK);
    change_levels(oracle, own->levels, own->size);
}

static void free_own_block(oracle_t *oracle, own_t *own)
{
    api->block_free(NULL, own->data, 0);
    change_levels(oracle, own->levels, (size_t)0 - own->size);
    own->data = NULL;
}

static void resize_own_block(oracle_t *oracle, own_t *own, chance_t *chance)
{
    size_t size = choose_size(chance);
    own->data = api->block_realloc(NULL, own->data, size);
    REQUIRE(own->data != NULL);
    change_levels(oracle, own->levels, size - own->size);
    own->size = size;
}

/// Create a policy, use a block of the policy, and release both.
static void use_short_lived_policy(oracle_t *oracle, chance_t *chance)
{
    memrt_policy_t *policy;
    size_t size = choose_size(chance);
    REQUIRE(api->policy_new(NULL, &policy) == MEMRT_OK);
    void *data = api->block_alloc(policy, size);
    change_levels(oracle, 1u << PROCESS, size);
    api->block_free(NULL, data, 0);
    change_levels(oracle, 1u << PROCESS, (size_t)0 - size);
    api->policy_release(policy);
}

static void verify_level(const oracle_t *oracle, int level)
{
    memrt_stats_t stats = read_level_stats(oracle, level);
    REQUIRE(stats.live == oracle->live[level]);
    REQUIRE(stats.peak <= oracle->peak[level] + stats.peak_error);
    REQUIRE(stats.peak + stats.peak_error >= oracle->peak[level]);
    REQUIRE(!oracle->is_close || stats.peak_error <= stats.peak / 50);
}

static void run_step(oracle_t *oracle, own_t *own, chance_t *chance)
{
    size_t what = chance_below(chance, 100);
    if (own->data == NULL) {
        allocate_own_block(oracle, own, chance);
    } else if (what < 60) {
        free_own_block(oracle, own);
    } else {
        resize_own_block(oracle, own, chance);
    }
    if (what < 2) {
        use_short_lived_policy(oracle, chance);
    } else if (what < 4 && !oracle->is_close) {
        reset_level(oracle, (int)chance_below(chance, LEVELS));
    } else if (what < 6 && oracle->switches) {
        const char *const modes[] = {"exact", "bounded", "close"};
        set_peak(modes[chance_below(chance, 3)]);
    }
    verify_level(oracle, (int)chance_below(chance, LEVELS));
}

static void run_steps(size_t index, void *context)
{
    enum { OWN = 12 };
    oracle_t *oracle = context;
    own_t owns[OWN] = {{NULL, 0, 0}};
    chance_t chance = chance_from(oracle->seed + index);
    for (int i = 0; i < STEPS; i++) {
        pthread_mutex_lock(&oracle->lock);
        run_step(oracle, &owns[chance_below(&chance, OWN)], &chance);
        pthread_mutex_unlock(&oracle->lock);
    }
    for (size_t i = 0; i < OWN; i++) {
        pthread_mutex_lock(&oracle->lock);
        if (owns[i].data != NULL) {
            free_own_block(oracle, &owns[i]);
        }
        pthread_mutex_unlock(&oracle->lock);
    }
}

TEST(exact_peak_equals_the_oracle_on_every_level)
{
    oracle_t oracle;
    set_peak("exact");
    create_oracle(&oracle);
    crew_run(THREADS, run_steps, &oracle);
    for (int level = 0; level < LEVELS; level++) {
        memrt_stats_t stats = read_level_stats(&oracle, level);
        ck_assert_uint_eq(stats.peak, oracle.peak[level]);
        ck_assert_uint_eq(stats.peak_error, 0);
        ck_assert_uint_gt(stats.peak, stats.live);
    }
    destroy_oracle(&oracle);
}

TEST(bounded_peak_is_always_within_its_error_on_every_level)
{
    oracle_t oracle;
    set_peak("bounded");
    create_oracle(&oracle);
    crew_run(THREADS, run_steps, &oracle);
    ck_assert_uint_gt(read_level_stats(&oracle, PROCESS).peak_error, 0);
    destroy_oracle(&oracle);
}

TEST(close_peak_has_two_percent_of_error_on_every_level)
{
    oracle_t oracle;
    set_peak("close");
    create_oracle(&oracle);
    oracle.is_close = true;
    crew_run(THREADS, run_steps, &oracle);
    ck_assert_uint_gt(read_level_stats(&oracle, PROCESS).peak_error, 0);
    destroy_oracle(&oracle);
}

/// Program whose threads allocate `blocks` blocks each, with temporary blocks in between, and free
/// all blocks after a meeting. `peak` is the maximum by construction: no thread frees a block
/// before the meeting, except for the temporary blocks, which are smaller than the last block.
typedef struct program {
    size_t threads, blocks, size;
} program_t;

typedef struct run {
    program_t program;
    memrt_policy_t *policy;
    pthread_barrier_t meeting;
} run_t;

static void allocate_to_peak(size_t index, void *context)
{
    enum { MOST = 1000 };
    run_t *run = context;
    void *blocks[MOST];
    (void)index;
    for (size_t i = 0; i < run->program.blocks; i++) {
        void *temporary = api->block_alloc(run->policy, run->program.size / 2);
        api->block_free(run->policy, temporary, 0);
        blocks[i] = api->block_alloc(run->policy, run->program.size);
    }
    pthread_barrier_wait(&run->meeting);
    for (size_t i = 0; i < run->program.blocks; i++) {
        api->block_free(run->policy, blocks[i], 0);
    }
}

static memrt_stats_t run_program(const program_t *program)
{
    run_t run = {.program = *program};
    ck_assert_int_eq(api->policy_new(NULL, &run.policy), MEMRT_OK);
    pthread_barrier_init(&run.meeting, NULL, (unsigned)program->threads);
    crew_run(program->threads, allocate_to_peak, &run);
    pthread_barrier_destroy(&run.meeting);
    memrt_stats_t stats = {.struct_size = sizeof(stats)};
    ck_assert_int_eq(api->stats_read(run.policy, &stats), MEMRT_OK);
    api->policy_release(run.policy);
    return stats;
}

TEST(close_peak_of_programs_is_within_two_percent)
{
    static const program_t programs[] = {{1, 10, 100},  {1, 500, 100000}, {2, 10, 100},
                                         {2, 1000, 16}, {2, 500, 100000}, {8, 10, 100},
                                         {8, 500, 500}, {8, 40, 3000000}};
    set_peak("close");
    for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++) {
        const program_t *program = &programs[i];
        size_t peak = program->threads * program->blocks * program->size;
        memrt_stats_t stats = run_program(program);
        ck_assert_uint_le(stats.peak_error, stats.peak / 50);
        ck_assert_uint_le(stats.peak, peak + stats.peak_error);
        ck_assert_uint_ge(stats.peak + stats.peak_error, peak);
        ck_assert(program->threads > 1 || stats.peak_error == 0);
    }
}

TEST(peak_error_stays_correct_while_the_peak_mode_changes)
{
    oracle_t oracle;
    set_peak("bounded");
    create_oracle(&oracle);
    oracle.switches = true;
    crew_run(THREADS, run_steps, &oracle);
    destroy_oracle(&oracle);
}

/* --- Without a lock. --- */

typedef struct race {
    pthread_barrier_t still;
    memrt_policy_t *policy;
    size_t most_own;   ///< any thread, raised; maximum of a single thread
    size_t live;       ///< any thread, add; bytes in use when all threads stand still
    size_t most_still; ///< by thread 0; maximum of `live`
} race_t;

#define ROUNDS 40

static void check_at_barrier(size_t index, race_t *race)
{
    pthread_barrier_wait(&race->still);
    if (index == 0) {
        memrt_stats_t stats = {.struct_size = sizeof(stats)};
        REQUIRE(api->stats_read(race->policy, &stats) == MEMRT_OK);
        REQUIRE(stats.live == race->live && stats.peak_error == 0);
        race->most_still = stats.live > race->most_still ? stats.live : race->most_still;
    }
    pthread_barrier_wait(&race->still);
}

static void run_until_barrier(size_t index, void *context)
{
    enum { OWN = 10 };
    race_t *race = context;
    void *data[OWN] = {NULL};
    size_t sizes[OWN] = {0}, live = 0;
    chance_t chance = chance_from(index);
    for (int i = 0; i < ROUNDS * 100; i++) {
        size_t at = chance_below(&chance, OWN), before = live;
        api->block_free(race->policy, data[at], 0);
        live -= sizes[at];
        sizes[at] = i < ROUNDS * 100 - 50 ? choose_size(&chance) : 0;
        data[at] = sizes[at] == 0 ? NULL : api->block_alloc(race->policy, sizes[at]);
        live += sizes[at];
        memrt__raise_release(&race->most_own, live);
        memrt__fetch_add_relaxed(&race->live, live - before);
        if (i % 100 == 0) {
            check_at_barrier(index, race);
        }
    }
    for (size_t i = 0; i < OWN; i++) {
        api->block_free(race->policy, data[i], 0);
    }
}

TEST(exact_peak_of_racing_threads_is_between_live_and_total)
{
    race_t race = {.policy = NULL};
    set_peak("exact");
    ck_assert_int_eq(api->policy_new(NULL, &race.policy), MEMRT_OK);
    pthread_barrier_init(&race.still, NULL, THREADS);
    crew_run(THREADS, run_until_barrier, &race);
    pthread_barrier_destroy(&race.still);
    memrt_stats_t stats = {.struct_size = sizeof(stats)};
    ck_assert_int_eq(api->stats_read(race.policy, &stats), MEMRT_OK);
    ck_assert_uint_eq(stats.peak_error, 0);
    ck_assert_uint_ge(stats.peak, race.most_own);
    ck_assert_uint_ge(stats.peak, race.most_still);
    ck_assert_uint_le(stats.peak, stats.total);
    api->policy_release(race.policy);
}

/* --- Switching. --- */

typedef struct turns {
    size_t turn; ///< number of the next turn, release store and acquire load
} turns_t;

static void wait_for_turn(turns_t *turns, size_t turn)
{
    while (memrt__load_acquire(&turns->turn) != turn) {
    }
}

/// Return the statistics of the process after a reset of the peak and one allocation.
static memrt_stats_t read_stats_after_reset(void)
{
    memrt_stats_t stats = {.struct_size = sizeof(stats)};
    api->stats_reset_peak(NULL);
    api->block_free(NULL, api->block_alloc(NULL, 1000), 0);
    REQUIRE(api->stats_read(NULL, &stats) == MEMRT_OK);
    return stats;
}

static void hide_bytes_or_switch_to_exact(size_t index, void *context)
{
    turns_t *turns = context;
    if (index == 0) {
        void *small = api->block_alloc(NULL, 100);
        memrt__store_release(&turns->turn, 1);
        wait_for_turn(turns, 2);
        api->block_free(NULL, small, 0);
        memrt__store_release(&turns->turn, 3);
        wait_for_turn(turns, 4);
        return;
    }
    wait_for_turn(turns, 1);
    set_peak("exact");
    REQUIRE(read_stats_after_reset().peak_error > 0);
    memrt__store_release(&turns->turn, 2);
    wait_for_turn(turns, 3);
    REQUIRE(read_stats_after_reset().peak_error == 0);
    memrt__store_release(&turns->turn, 4);
}

TEST(peak_becomes_exact_after_other_thread_runs_and_reset)
{
    turns_t turns = {0};
    set_peak("bounded");
    crew_run(2, hide_bytes_or_switch_to_exact, &turns);
}

TEST(peak_error_returns_after_switch_to_bounded)
{
    set_peak("exact");
    ck_assert_uint_eq(read_stats_after_reset().peak_error, 0);
    memrt_policy_t *policy;
    ck_assert_int_eq(api->policy_new(NULL, &policy), MEMRT_OK);
    set_peak("bounded");
    api->block_free(NULL, api->block_alloc(NULL, 1000), 0);
    api->block_free(policy, api->block_alloc(policy, 1000), 0);
    memrt_stats_t stats = {.struct_size = sizeof(stats)};
    ck_assert_int_eq(api->stats_read(NULL, &stats), MEMRT_OK);
    ck_assert_uint_gt(stats.peak_error, 0);
    api->policy_release(policy);
}

static void *hide_bytes_and_exit(void *meeting)
{
    api->block_free(NULL, api->block_alloc(NULL, 5), 0);
    if (meeting != NULL) {
        pthread_barrier_wait(meeting);
        pthread_barrier_wait(meeting);
    }
    return NULL;
}

TEST(bounded_peak_is_exact_for_consecutive_threads)
{
    pthread_t thread;
    set_peak("bounded");
    api->stats_reset_peak(NULL);
    uint64_t live = read_stats_after_reset().live;
    ck_assert_int_eq(pthread_create(&thread, NULL, hide_bytes_and_exit, NULL), 0);
    pthread_join(thread, NULL);
    set_peak("exact"); /* brings the gauge of this thread to rest, too */
    set_peak("bounded");
    api->stats_reset_peak(NULL);
    ck_assert_int_eq(pthread_create(&thread, NULL, hide_bytes_and_exit, NULL), 0);
    pthread_join(thread, NULL);
    api->block_free(NULL, api->block_alloc(NULL, 1000), 0);
    memrt_stats_t stats = {.struct_size = sizeof(stats)};
    ck_assert_int_eq(api->stats_read(NULL, &stats), MEMRT_OK);
    ck_assert_uint_eq(stats.peak_error, 0);
    ck_assert_uint_eq(stats.peak, live + 1000);
}

static pthread_t parting;
static pthread_barrier_t meeting;

static void join_parting_thread(void)
{
    pthread_barrier_wait(&meeting);
    pthread_join(parting, NULL);
}

/// A Python thread also counts as joined a moment before the thread ends.
TEST(exact_peak_waits_for_an_exiting_thread)
{
    set_peak("bounded");
    api->stats_reset_peak(NULL);
    pthread_barrier_init(&meeting, NULL, 2);
    ck_assert_int_eq(pthread_create(&parting, NULL, hide_bytes_and_exit, &meeting), 0);
    pthread_barrier_wait(&meeting);
    kernel_at_yield(join_parting_thread);
    set_peak("exact");
    memrt_stats_t stats = read_stats_after_reset();
    ck_assert_uint_eq(stats.peak_error, 0);
    ck_assert_uint_eq(stats.peak, stats.live + 1000);
    pthread_barrier_destroy(&meeting);
}

static void fail_test(void)
{
    ck_abort_msg("called after kernel_obey()");
}

TEST(kernel_obey_ends_the_call_at_a_yield)
{
    kernel_at_yield(fail_test);
    kernel_obey();
    sched_yield();
}

TEST(exact_peak_reports_error_while_idle_thread_lives)
{
    pthread_t thread;
    pthread_barrier_t together;
    set_peak("bounded");
    pthread_barrier_init(&together, NULL, 2);
    ck_assert_int_eq(pthread_create(&thread, NULL, hide_bytes_and_exit, &together), 0);
    pthread_barrier_wait(&together);
    set_peak("exact");
    ck_assert_uint_gt(read_stats_after_reset().peak_error, 0);
    pthread_barrier_wait(&together);
    pthread_join(thread, NULL);
    ck_assert_uint_eq(read_stats_after_reset().peak_error, 0);
    pthread_barrier_destroy(&together);
}
