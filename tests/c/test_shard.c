#include "support/suite.h"

#include "runtime/base/lock.h"
#include "runtime/base/options.h"
#include "runtime/stats/shard.h"

#define RISE ((size_t)MEMRT__GAUGE_RISE)
#define FALL ((size_t)MEMRT__GAUGE_FALL)

/// An account apart from memrt's own, with the shard of one thread. What it tells the process is
/// taken back at the end.
typedef struct setup {
    memrt__account_t account;
    memrt__level_t policy, scope, outer;
    memrt__shard_t shard, shared;
} setup_t;

static void begin(setup_t *setup)
{
    memrt__options.exact_peak = 0;
    *setup = (setup_t){
        .account = {.index = 7, .policy = &setup->policy, .shared = &setup->shared},
        .policy.up = &memrt__process,
        .scope.up = &setup->outer,
    };
}

static void grow(setup_t *setup, size_t bytes)
{
    memrt__shard_grow(&setup->shard, &setup->account, bytes);
}

static void shrink(setup_t *setup, size_t bytes)
{
    memrt__shard_shrink(&setup->shard, &setup->account, bytes);
}

/// The invariant of shard.h, for the one shard that there is.
static void verify(const setup_t *setup)
{
    ck_assert_uint_eq(setup->policy.flushed, setup->shard.told);
}

static void end(setup_t *setup)
{
    ck_assert_uint_eq(memrt__shard_net(&setup->shard), 0);
    memrt__gauge_tell(&setup->shard, &setup->account);
    ck_assert_uint_eq(setup->policy.flushed, 0);
}

TEST(a_rise_is_told_when_it_is_more_than_the_gauge_may_hide)
{
    setup_t setup;
    begin(&setup);
    grow(&setup, RISE);
    ck_assert_uint_eq(setup.policy.flushed, 0);
    grow(&setup, 1);
    ck_assert_uint_eq(setup.policy.flushed, RISE + 1);
    ck_assert_uint_eq(setup.policy.peak, RISE + 1);
    verify(&setup);
    shrink(&setup, RISE + 1);
    end(&setup);
}

TEST(a_fall_is_told_when_it_is_more_than_the_gauge_may_hide)
{
    setup_t setup;
    begin(&setup);
    grow(&setup, 3 * FALL);
    shrink(&setup, FALL);
    ck_assert_uint_eq(setup.policy.flushed, 3 * FALL);
    shrink(&setup, 1);
    ck_assert_uint_eq(setup.policy.flushed, 2 * FALL - 1);
    ck_assert_uint_eq(setup.policy.peak, 3 * FALL);
    verify(&setup);
    shrink(&setup, 2 * FALL - 1);
    end(&setup);
}

TEST(a_high_that_fell_again_is_told_as_peak_and_not_as_bytes_in_use)
{
    setup_t setup;
    begin(&setup);
    grow(&setup, RISE / 2);
    shrink(&setup, RISE / 2);
    ck_assert_uint_eq(setup.policy.peak, 0);
    memrt__gauge_tell(&setup.shard, &setup.account);
    ck_assert_uint_eq(setup.policy.peak, RISE / 2);
    end(&setup);
}

TEST(an_exact_gauge_tells_every_change_and_rests)
{
    setup_t setup;
    begin(&setup);
    memrt__options.exact_peak = 1;
    setup.account.scope = &setup.scope;
    const memrt__level_t *levels[] = {&setup.policy, &setup.scope, &setup.outer};
    const size_t steps[] = {10, 3 * FALL, 10};
    size_t live = 0;
    for (size_t i = 0; i < 3; i++) {
        grow(&setup, steps[i]);
        live += steps[i];
        shrink(&setup, 5);
        live -= 5;
        for (size_t j = 0; j < 3; j++) {
            ck_assert_uint_eq(levels[j]->flushed, live);
            ck_assert_uint_eq(levels[j]->peak, live + 5);
            ck_assert_uint_eq(levels[j]->gauges + levels[j]->most_gauges, 0);
        }
    }
    shrink(&setup, live);
    end(&setup);
}

TEST(levels_count_the_gauges_that_hide_something_and_the_most_at_once)
{
    setup_t setup;
    memrt__shard_t other = {0};
    begin(&setup);
    grow(&setup, 1);
    memrt__shard_grow(&other, &setup.account, 1);
    ck_assert_uint_eq(setup.policy.gauges, 2);
    memrt__gauge_rest(&other, &setup.account);
    memrt__gauge_rest(&setup.shard, &setup.account);
    memrt__gauge_rest(&setup.shard, &setup.account);
    ck_assert_uint_eq(setup.policy.gauges, 0);
    ck_assert_uint_eq(setup.policy.most_gauges, 2);
    ck_assert_uint_eq(setup.policy.flushed, 2);
    memrt__shard_shrink(&other, &setup.account, 1);
    ck_assert_uint_eq(setup.policy.gauges, 1);
    memrt__gauge_rest(&other, &setup.account);
    shrink(&setup, 1);
    end(&setup);
    memrt__gauge_rest(&setup.shard, &setup.account);
}

TEST(a_shard_can_grow_to_its_high_and_shrink_to_its_low_without_news)
{
    setup_t setup;
    begin(&setup);
    ck_assert(memrt__shard_can_grow(&setup.shard, 0));
    ck_assert(!memrt__shard_can_grow(&setup.shard, 1));
    grow(&setup, 2 * FALL);
    shrink(&setup, 100);
    ck_assert(memrt__shard_can_grow(&setup.shard, 100));
    ck_assert(!memrt__shard_can_grow(&setup.shard, 101));
    ck_assert(memrt__shard_can_shrink(&setup.shard, FALL - 100));
    ck_assert(!memrt__shard_can_shrink(&setup.shard, FALL - 99));
    shrink(&setup, 2 * FALL - 100);
    end(&setup);
}

TEST(a_thread_that_frees_what_others_made_has_less_than_nothing_in_use)
{
    setup_t setup;
    begin(&setup);
    shrink(&setup, 10 * FALL);
    ck_assert_int_eq((ptrdiff_t)memrt__shard_net(&setup.shard), -10 * MEMRT__GAUGE_FALL);
    ck_assert_int_eq((ptrdiff_t)setup.policy.flushed, -10 * MEMRT__GAUGE_FALL);
    ck_assert_uint_eq(setup.policy.peak, 0);
    ck_assert(!memrt__shard_can_grow(&setup.shard, 1));
    ck_assert(memrt__shard_can_shrink(&setup.shard, FALL));
    verify(&setup);
    grow(&setup, 10 * FALL);
    end(&setup);
}

TEST(what_is_told_reaches_the_process_too)
{
    setup_t setup;
    begin(&setup);
    size_t before = memrt__load_relaxed(&memrt__process.flushed);
    grow(&setup, 5 * FALL);
    ck_assert_uint_eq(memrt__load_relaxed(&memrt__process.flushed), before + 5 * FALL);
    shrink(&setup, 5 * FALL);
    end(&setup);
    ck_assert_uint_eq(memrt__load_relaxed(&memrt__process.flushed), before);
}

TEST(what_is_told_reaches_the_scope_and_those_around_it)
{
    setup_t setup;
    begin(&setup);
    setup.account.scope = &setup.scope;
    grow(&setup, 5 * FALL);
    shrink(&setup, 2 * FALL);
    const memrt__level_t *levels[] = {&setup.policy, &setup.scope, &setup.outer};
    for (size_t i = 0; i < 3; i++) {
        ck_assert_uint_eq(levels[i]->flushed, 3 * FALL);
        ck_assert_uint_eq(levels[i]->peak, 5 * FALL);
        ck_assert_uint_eq(levels[i]->past_gauges, 0);
        ck_assert(memrt__account_is_in(&setup.account, levels[i]));
    }
    memrt__account_add_shared(&setup.account, 1);
    memrt__account_add_shared(&setup.account, (size_t)-1);
    for (size_t i = 0; i < 3; i++) {
        ck_assert_uint_eq(levels[i]->past_gauges, 1);
    }
    shrink(&setup, 3 * FALL);
    end(&setup);
}

TEST(an_account_is_in_its_policy_and_scopes_and_the_process_alone)
{
    setup_t setup, other;
    begin(&setup);
    begin(&other);
    ck_assert(memrt__account_is_in(&setup.account, &memrt__process));
    ck_assert(memrt__account_is_in(&setup.account, &setup.policy));
    ck_assert(!memrt__account_is_in(&setup.account, &setup.scope));
    ck_assert(!memrt__account_is_in(&setup.account, &other.policy));
    setup.account.scope = &setup.outer;
    ck_assert(memrt__account_is_in(&setup.account, &setup.outer));
    ck_assert(!memrt__account_is_in(&setup.account, &setup.scope));
}

TEST(bytes_without_a_gauge_are_told_at_once_and_leave_their_mark)
{
    setup_t setup;
    begin(&setup);
    memrt__account_add_shared(&setup.account, 500);
    ck_assert_uint_eq(setup.policy.flushed, 500);
    ck_assert_uint_eq(setup.policy.peak, 500);
    ck_assert_uint_eq(setup.policy.past_gauges, 1);
    memrt__account_add_shared(&setup.account, (size_t)0 - 500);
    ck_assert_uint_eq(setup.policy.peak, 500);
    end(&setup);
}

static size_t entered(const memrt__account_t *account)
{
    size_t count = 0;
    memrt__lock(MEMRT__RANK_THREADS);
    for (memrt__account_t *a = memrt__account_first(); a != NULL; a = a->next) {
        count += account == NULL || a == account;
    }
    memrt__unlock(MEMRT__RANK_THREADS);
    return count;
}

static void leave(memrt__account_t *account)
{
    memrt__lock(MEMRT__RANK_THREADS);
    memrt__account_leave(account);
    memrt__unlock(MEMRT__RANK_THREADS);
}

TEST(accounts_leave_in_any_order_and_the_others_stay)
{
    setup_t setups[3];
    size_t before = entered(NULL);
    for (size_t i = 0; i < 3; i++) {
        begin(&setups[i]);
        memrt__account_enter(&setups[i].account);
    }
    leave(&setups[1].account);
    ck_assert_uint_eq(entered(&setups[1].account), 0);
    ck_assert_uint_eq(entered(&setups[0].account) + entered(&setups[2].account), 2);
    leave(&setups[2].account);
    leave(&setups[0].account);
    ck_assert_uint_eq(entered(NULL), before);
}
