/// Peaks against an oracle: every change happens under one lock, together with the oracle's own
/// books, so that there is one order of all of them.

#include "support/suite.h"

#include <pthread.h>
#include <string.h>

#include "runtime/base/atomics.h"
#include "runtime/base/options.h"
#include "support/chance.h"
#include "support/crew.h"

/// The levels whose peaks are followed: the process, a policy, a scope and one inside of it.
enum { PROCESS, POLICY, OUTER, INNER, LEVELS };

#define THREADS 4
#define STEPS (memrt__options.check ? 1500 : 6000)

typedef struct oracle {
    memrt_policy_t *policy;
    memrt_scope_t *outer, *inner;
    bool switches; ///< threads change the option, too
    unsigned seed;
    pthread_mutex_t lock;
    uint64_t live[LEVELS], peak[LEVELS]; ///< under the lock
} oracle_t;

static void set_peak(const char *how)
{
    REQUIRE(api->option_set("peak", how, NULL, 0) == MEMRT_OK);
}

static memrt_stats_t figures(const oracle_t *oracle, int level)
{
    memrt_stats_t stats = {.struct_size = sizeof(stats)};
    memrt_scope_t *scope = level == OUTER ? oracle->outer : oracle->inner;
    memrt_status_t status = level >= OUTER
                                ? api->scope_stats(scope, &stats)
                                : api->stats_read(level == POLICY ? oracle->policy : NULL, &stats);
    REQUIRE(status == MEMRT_OK);
    return stats;
}

static void reset(oracle_t *oracle, int level)
{
    if (level >= OUTER) {
        api->scope_reset_peak(level == OUTER ? oracle->outer : oracle->inner);
    } else {
        api->stats_reset_peak(level == POLICY ? oracle->policy : NULL);
    }
    oracle->peak[level] = oracle->live[level];
}

static void begin(oracle_t *oracle)
{
    memset(oracle, 0, sizeof(*oracle));
    oracle->seed = suite_number("STRESS_SEED", 1);
    pthread_mutex_init(&oracle->lock, NULL);
    ck_assert_int_eq(api->policy_new(NULL, &oracle->policy), MEMRT_OK);
    ck_assert_int_eq(api->scope_open(NULL, "outer", &oracle->outer), MEMRT_OK);
    ck_assert_int_eq(api->scope_open(oracle->outer, "inner", &oracle->inner), MEMRT_OK);
    oracle->live[PROCESS] = figures(oracle, PROCESS).live;
    for (int level = 0; level < LEVELS; level++) {
        reset(oracle, level);
    }
}

static void end(oracle_t *oracle)
{
    api->policy_release(oracle->policy);
    api->scope_release(oracle->inner);
    api->scope_release(oracle->outer);
    pthread_mutex_destroy(&oracle->lock);
}

/// A buffer of a thread, and the levels that it is of, a bit each.
typedef struct own {
    void *data;
    size_t size;
    unsigned levels;
} own_t;

static void change(oracle_t *oracle, unsigned levels, size_t more)
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

static size_t some_size(chance_t *chance)
{
    static const size_t most[] = {60, 2000, 70000, 3000000};
    return 1 + chance_below(chance, most[chance_below(chance, 100) / 33]);
}

static void make(oracle_t *oracle, own_t *own, chance_t *chance)
{
    size_t place = chance_below(chance, 3);
    bool of_policy = chance_below(chance, 2) == 0;
    memrt_scope_t *scopes[] = {NULL, oracle->outer, oracle->inner};
    const unsigned levels[] = {0, 1u << OUTER, 1u << OUTER | 1u << INNER};
    own->size = some_size(chance);
    own->levels = 1u << PROCESS | levels[place] | (of_policy ? 1u << POLICY : 0);
    REQUIRE(api->scope_enter(scopes[place], NULL) == MEMRT_OK);
    own->data = api->block_alloc(of_policy ? oracle->policy : NULL, own->size);
    REQUIRE(own->data != NULL && api->scope_enter(NULL, NULL) == MEMRT_OK);
    change(oracle, own->levels, own->size);
}

static void drop(oracle_t *oracle, own_t *own)
{
    api->block_free(NULL, own->data, 0);
    change(oracle, own->levels, (size_t)0 - own->size);
    own->data = NULL;
}

static void resize(oracle_t *oracle, own_t *own, chance_t *chance)
{
    size_t size = some_size(chance);
    own->data = api->block_realloc(NULL, own->data, size);
    REQUIRE(own->data != NULL);
    change(oracle, own->levels, size - own->size);
    own->size = size;
}

/// A policy that comes and goes with what it had.
static void pass_by(oracle_t *oracle, chance_t *chance)
{
    memrt_policy_t *policy;
    size_t size = some_size(chance);
    REQUIRE(api->policy_new(NULL, &policy) == MEMRT_OK);
    void *data = api->block_alloc(policy, size);
    change(oracle, 1u << PROCESS, size);
    api->block_free(NULL, data, 0);
    change(oracle, 1u << PROCESS, (size_t)0 - size);
    api->policy_release(policy);
}

static void verify(const oracle_t *oracle, int level)
{
    memrt_stats_t stats = figures(oracle, level);
    REQUIRE(stats.live == oracle->live[level]);
    REQUIRE(stats.peak <= oracle->peak[level] + stats.peak_error);
    REQUIRE(stats.peak + stats.peak_error >= oracle->peak[level]);
}

static void step(oracle_t *oracle, own_t *own, chance_t *chance)
{
    size_t what = chance_below(chance, 100);
    if (own->data == NULL) {
        make(oracle, own, chance);
    } else if (what < 60) {
        drop(oracle, own);
    } else {
        resize(oracle, own, chance);
    }
    if (what < 2) {
        pass_by(oracle, chance);
    } else if (what < 4) {
        reset(oracle, (int)chance_below(chance, LEVELS));
    } else if (what < 6 && oracle->switches) {
        set_peak(what == 4 ? "exact" : "bounded");
    }
    verify(oracle, (int)chance_below(chance, LEVELS));
}

static void step_by_step(size_t index, void *context)
{
    enum { OWN = 12 };
    oracle_t *oracle = context;
    own_t owns[OWN] = {{NULL, 0, 0}};
    chance_t chance = chance_from(oracle->seed + index);
    for (int i = 0; i < STEPS; i++) {
        pthread_mutex_lock(&oracle->lock);
        step(oracle, &owns[chance_below(&chance, OWN)], &chance);
        pthread_mutex_unlock(&oracle->lock);
    }
    for (size_t i = 0; i < OWN; i++) {
        pthread_mutex_lock(&oracle->lock);
        if (owns[i].data != NULL) {
            drop(oracle, &owns[i]);
        }
        pthread_mutex_unlock(&oracle->lock);
    }
}

TEST(an_exact_peak_is_that_of_the_one_order_of_all_changes_on_every_level)
{
    oracle_t oracle;
    set_peak("exact");
    begin(&oracle);
    crew_run(THREADS, step_by_step, &oracle);
    for (int level = 0; level < LEVELS; level++) {
        memrt_stats_t stats = figures(&oracle, level);
        ck_assert_uint_eq(stats.peak, oracle.peak[level]);
        ck_assert_uint_eq(stats.peak_error, 0);
        ck_assert_uint_gt(stats.peak, stats.live);
    }
    end(&oracle);
}

TEST(a_bounded_peak_is_within_its_error_at_every_moment_on_every_level)
{
    oracle_t oracle;
    set_peak("bounded");
    begin(&oracle);
    crew_run(THREADS, step_by_step, &oracle);
    ck_assert_uint_gt(figures(&oracle, PROCESS).peak_error, 0);
    end(&oracle);
}

TEST(the_error_is_true_at_every_moment_while_the_option_changes)
{
    oracle_t oracle;
    set_peak("bounded");
    begin(&oracle);
    oracle.switches = true;
    crew_run(THREADS, step_by_step, &oracle);
    end(&oracle);
}

/* --- Without a lock. --- */

typedef struct race {
    pthread_barrier_t still;
    memrt_policy_t *policy;
    size_t most_own;   ///< any thread, raised; most that one thread had at once
    size_t live;       ///< any thread, add; bytes in use when all stand still
    size_t most_still; ///< by thread 0; most of it
} race_t;

#define ROUNDS 40

static void stand_still(size_t index, race_t *race)
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

static void run_free(size_t index, void *context)
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
        sizes[at] = i < ROUNDS * 100 - 50 ? some_size(&chance) : 0;
        data[at] = sizes[at] == 0 ? NULL : api->block_alloc(race->policy, sizes[at]);
        live += sizes[at];
        memrt__raise_release(&race->most_own, live);
        memrt__fetch_add_relaxed(&race->live, live - before);
        if (i % 100 == 0) {
            stand_still(index, race);
        }
    }
    for (size_t i = 0; i < OWN; i++) {
        api->block_free(race->policy, data[i], 0);
    }
}

TEST(an_exact_peak_without_a_lock_is_no_less_than_was_seen_and_no_more_than_was_made)
{
    race_t race = {.policy = NULL};
    set_peak("exact");
    ck_assert_int_eq(api->policy_new(NULL, &race.policy), MEMRT_OK);
    pthread_barrier_init(&race.still, NULL, THREADS);
    crew_run(THREADS, run_free, &race);
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
    size_t turn; ///< whose it is, release store and acquire load
} turns_t;

static void take_turn(turns_t *turns, size_t turn)
{
    while (memrt__load_acquire(&turns->turn) != turn) {
    }
}

/// Of the process, after a reset and what one thread then does.
static memrt_stats_t process_after_reset(void)
{
    memrt_stats_t stats = {.struct_size = sizeof(stats)};
    api->stats_reset_peak(NULL);
    api->block_free(NULL, api->block_alloc(NULL, 1000), 0);
    REQUIRE(api->stats_read(NULL, &stats) == MEMRT_OK);
    return stats;
}

static void be_asked_or_ask(size_t index, void *context)
{
    turns_t *turns = context;
    if (index == 0) {
        void *small = api->block_alloc(NULL, 100);
        memrt__store_release(&turns->turn, 1);
        take_turn(turns, 2);
        api->block_free(NULL, small, 0);
        memrt__store_release(&turns->turn, 3);
        take_turn(turns, 4);
        return;
    }
    take_turn(turns, 1);
    set_peak("exact");
    REQUIRE(process_after_reset().peak_error > 0);
    memrt__store_release(&turns->turn, 2);
    take_turn(turns, 3);
    REQUIRE(process_after_reset().peak_error == 0);
    memrt__store_release(&turns->turn, 4);
}

TEST(a_peak_becomes_exact_when_threads_that_hid_something_went_on_and_it_starts_again)
{
    turns_t turns = {0};
    set_peak("bounded");
    crew_run(2, be_asked_or_ask, &turns);
}

TEST(a_peak_is_exact_no_longer_when_the_option_says_so)
{
    set_peak("exact");
    ck_assert_uint_eq(process_after_reset().peak_error, 0);
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
