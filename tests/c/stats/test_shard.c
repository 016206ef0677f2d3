#include "support/suite.h"

#include "runtime/config/options.h"
#include "runtime/os/lock.h"
#include "runtime/stats/promise.h"
#include "runtime/stats/shard.h"
#include "support/chance.h"

#define RISE ((size_t)MEMRT__GAUGE_RISE)
#define FALL ((size_t)MEMRT__GAUGE_FALL)
#define AHEAD (MEMRT__GAUGE_AHEAD_PARTS * RISE)

/// Account separate from memrt's own, with the shard of one thread. At the end no bytes remain
/// reported to the process, and the gauge is at rest.
typedef struct setup {
    memrt__account_t account;
    memrt__level_t policy, scope, outer;
    memrt__shard_t shard, shared;
} setup_t;

static void create_setup(setup_t *setup)
{
    memrt__options.peak_mode = 0;
    *setup = (setup_t){
        .account = {.index = 7, .policy = &setup->policy, .shared = &setup->shared},
        .policy.up = &memrt__process,
        .scope.up = &setup->outer,
    };
}

static void grow_account(setup_t *setup, size_t bytes)
{
    memrt__shard_grow(&setup->shard, &setup->account, bytes);
}

static void shrink_account(setup_t *setup, size_t bytes)
{
    memrt__shard_shrink(&setup->shard, &setup->account, bytes);
}

/// Check the invariants of shard.h for the only shard.
static void verify_setup(const setup_t *setup)
{
    ck_assert_uint_eq(setup->policy.flushed, setup->shard.reported);
#if MEMRT_DEBUG
    ck_assert(memrt__shard_is_valid(&setup->shard));
#endif
}

static void destroy_setup(setup_t *setup)
{
    ck_assert_uint_eq(memrt__shard_net(&setup->shard), 0);
    memrt__gauge_rest(&setup->shard, &setup->account);
    ck_assert_uint_eq(setup->policy.flushed, 0);
}

TEST(gauge_reports_a_rise_beyond_its_limit)
{
    setup_t setup;
    create_setup(&setup);
    grow_account(&setup, RISE);
    ck_assert_uint_eq(setup.policy.flushed, 0);
    grow_account(&setup, 1);
    ck_assert_uint_eq(setup.policy.flushed, RISE + 1);
    ck_assert_uint_eq(setup.policy.peak, RISE + 1);
    verify_setup(&setup);
    shrink_account(&setup, RISE + 1);
    destroy_setup(&setup);
}

TEST(gauge_reports_a_fall_beyond_its_limit)
{
    setup_t setup;
    create_setup(&setup);
    grow_account(&setup, 3 * FALL);
    shrink_account(&setup, FALL);
    ck_assert_uint_eq(setup.policy.flushed, 3 * FALL);
    shrink_account(&setup, 1);
    ck_assert_uint_eq(setup.policy.flushed, 2 * FALL - 1);
    ck_assert_uint_eq(setup.policy.peak, 3 * FALL);
    verify_setup(&setup);
    shrink_account(&setup, 2 * FALL - 1);
    destroy_setup(&setup);
}

/// Reach a peak and free everything, so that the gauge reports.
static void reach_peak(setup_t *setup, size_t peak)
{
    grow_account(setup, peak);
    shrink_account(setup, peak);
    ck_assert_uint_eq(setup->policy.flushed, 0);
    ck_assert_uint_eq(setup->policy.peak, peak);
}

TEST(gauge_reports_ahead_below_the_peak)
{
    setup_t setup;
    create_setup(&setup);
    reach_peak(&setup, 8 * FALL);
    grow_account(&setup, RISE + 1);
    ck_assert_uint_eq(setup.policy.flushed, RISE + 1 + AHEAD);
    ck_assert(memrt__shard_grow_fast(&setup.shard, AHEAD));
    verify_setup(&setup);
    ck_assert(!memrt__shard_grow_fast(&setup.shard, 1));
    shrink_account(&setup, FALL);
    ck_assert_uint_eq(setup.policy.flushed, RISE + 1 + AHEAD);
    memrt__gauge_rest(&setup.shard, &setup.account);
    ck_assert_uint_eq(setup.policy.flushed, RISE + 1 + AHEAD - FALL);
    ck_assert_uint_eq(setup.policy.peak, 8 * FALL);
    shrink_account(&setup, RISE + 1 + AHEAD - FALL);
    destroy_setup(&setup);
}

TEST(gauge_reports_ahead_by_half_of_the_least_distance)
{
    setup_t setup;
    create_setup(&setup);
    setup.account.scope = &setup.scope;
    setup.outer.peak = 50 * FALL;
    reach_peak(&setup, FALL + 1);
    setup.policy.peak = 50 * FALL;
    grow_account(&setup, 3 * RISE + 1);
    ck_assert_uint_eq(setup.scope.flushed, 3 * RISE + 1 + (FALL - 3 * RISE) / 2);
    memrt__gauge_rest(&setup.shard, &setup.account);
    ck_assert_uint_eq(setup.scope.peak, FALL + 1);
    shrink_account(&setup, 3 * RISE + 1);
    destroy_setup(&setup);
}

TEST(report_ahead_beyond_a_peak_leaves_the_peak_unproven)
{
    memrt__level_t level = {.flushed = 100, .peak = 300};
    memrt__level_report(&level, 200, 50);
    ck_assert_uint_eq(level.past_gauges, 0);
    memrt__level_report(&level, 2, 1);
    ck_assert_uint_eq(level.past_gauges, 1);
    ck_assert_uint_eq(level.peak, 302);
}

TEST(single_gauge_keeps_the_exact_peak)
{
    setup_t setup;
    create_setup(&setup);
    chance_t chance = chance_from(3);
    size_t peak = 0;
    for (int i = 0; i < 100000; i++) {
        size_t net = memrt__shard_net(&setup.shard), size = 1 + chance_below(&chance, 200000);
        if (chance_below(&chance, 4000000) < net) {
            shrink_account(&setup, size < net ? size : net);
        } else {
            grow_account(&setup, size);
        }
        net = memrt__shard_net(&setup.shard);
        peak = net > peak ? net : peak;
        size_t seen = setup.policy.flushed + memrt__gauge_rise(&setup.shard);
        seen = setup.policy.peak > seen ? setup.policy.peak : seen;
        ck_assert_uint_eq(seen, peak);
    }
    verify_setup(&setup);
    ck_assert_uint_eq(setup.policy.past_gauges, 0);
    shrink_account(&setup, memrt__shard_net(&setup.shard));
    destroy_setup(&setup);
}

TEST(gauge_reports_a_past_high_as_peak_not_as_live_bytes)
{
    setup_t setup;
    create_setup(&setup);
    grow_account(&setup, RISE / 2);
    shrink_account(&setup, RISE / 2);
    ck_assert_uint_eq(setup.policy.peak, 0);
    memrt__gauge_report(&setup.shard, &setup.account);
    ck_assert_uint_eq(setup.policy.peak, RISE / 2);
    destroy_setup(&setup);
}

TEST(growth_without_a_free_takes_the_fast_path_until_a_report)
{
    setup_t setup;
    create_setup(&setup);
    grow_account(&setup, 100);
    size_t high = setup.shard.high, limit = RISE - 100;
    ck_assert(memrt__shard_grow_fast(&setup.shard, limit - 1));
    ck_assert_uint_eq(setup.shard.high, high);
    ck_assert_uint_eq(memrt__gauge_rise(&setup.shard), RISE - 1);
    verify_setup(&setup);
    ck_assert(memrt__shard_grow_fast(&setup.shard, 1));
    ck_assert(!memrt__shard_grow_fast(&setup.shard, 1));
    ck_assert_uint_eq(setup.policy.flushed, 0);
    grow_account(&setup, 1);
    ck_assert_uint_eq(setup.policy.flushed, RISE + 1);
    shrink_account(&setup, RISE + 1);
    destroy_setup(&setup);
}

TEST(free_after_growth_keeps_the_maximum)
{
    setup_t setup;
    create_setup(&setup);
    grow_account(&setup, 100);
    grow_account(&setup, 1000);
    ck_assert(!memrt__shard_shrink_fast(&setup.shard, 1));
    shrink_account(&setup, 700);
    ck_assert(!memrt__gauge_climbs(&setup.shard));
    ck_assert_uint_eq(setup.shard.high, 1100);
    ck_assert_uint_eq(memrt__gauge_rise(&setup.shard), 1100);
    ck_assert(memrt__shard_shrink_fast(&setup.shard, 100));
    ck_assert(memrt__shard_grow_fast(&setup.shard, 800));
    ck_assert(!memrt__shard_grow_fast(&setup.shard, 1));
    verify_setup(&setup);
    shrink_account(&setup, 1100);
    destroy_setup(&setup);
    ck_assert_uint_eq(setup.policy.peak, 1100);
}

TEST(exact_gauge_reports_every_change_at_once)
{
    setup_t setup;
    create_setup(&setup);
    memrt__options.peak_mode = 1;
    setup.account.scope = &setup.scope;
    const memrt__level_t *levels[] = {&setup.policy, &setup.scope, &setup.outer};
    const size_t steps[] = {10, 3 * FALL, 10};
    size_t live = 0;
    for (size_t i = 0; i < 3; i++) {
        grow_account(&setup, steps[i]);
        live += steps[i];
        shrink_account(&setup, 5);
        live -= 5;
        for (size_t j = 0; j < 3; j++) {
            ck_assert_uint_eq(levels[j]->flushed, live);
            ck_assert_uint_eq(levels[j]->peak, live + 5);
            ck_assert_uint_eq(levels[j]->gauges + levels[j]->most_gauges, 0);
        }
    }
    shrink_account(&setup, live);
    destroy_setup(&setup);
}

TEST(levels_count_active_gauges_and_their_maximum)
{
    setup_t setup;
    memrt__shard_t other = {0};
    create_setup(&setup);
    grow_account(&setup, 1);
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
    shrink_account(&setup, 1);
    destroy_setup(&setup);
    memrt__gauge_rest(&setup.shard, &setup.account);
}

TEST(shard_changes_between_high_and_low_need_no_report)
{
    setup_t setup;
    create_setup(&setup);
    ck_assert(memrt__shard_grow_fast(&setup.shard, 0));
    ck_assert(!memrt__shard_grow_fast(&setup.shard, 1));
    grow_account(&setup, 2 * FALL);
    shrink_account(&setup, 100);
    ck_assert(!memrt__shard_grow_fast(&setup.shard, 101));
    ck_assert(!memrt__shard_shrink_fast(&setup.shard, FALL - 99));
    ck_assert_uint_eq(memrt__shard_net(&setup.shard), 2 * FALL - 100);
    ck_assert(memrt__shard_grow_fast(&setup.shard, 100));
    ck_assert(memrt__shard_shrink_fast(&setup.shard, FALL - 100));
    ck_assert_uint_eq(memrt__shard_net(&setup.shard), FALL + 100);
    ck_assert_uint_eq(setup.policy.flushed, 2 * FALL);
    verify_setup(&setup);
    shrink_account(&setup, FALL + 100);
    destroy_setup(&setup);
}

TEST(shard_falls_in_steps_are_measured_before_a_report)
{
    setup_t setup;
    create_setup(&setup);
    grow_account(&setup, 2 * FALL);
    for (int i = 0; i < 10; i++) { /* more than FALL in all */
        shrink_account(&setup, FALL / 2 + 1);
        ck_assert(memrt__shard_grow_fast(&setup.shard, FALL / 2 + 1));
    }
    ck_assert_uint_eq(setup.policy.flushed, 2 * FALL);
    ck_assert_uint_eq(setup.shard.falls, 0);
    shrink_account(&setup, 2 * FALL);
    destroy_setup(&setup);
}

TEST(shard_net_is_negative_when_frees_exceed_allocations)
{
    setup_t setup;
    create_setup(&setup);
    shrink_account(&setup, 10 * FALL);
    ck_assert_int_eq((ptrdiff_t)memrt__shard_net(&setup.shard), -10 * MEMRT__GAUGE_FALL);
    ck_assert_int_eq((ptrdiff_t)setup.policy.flushed, -10 * MEMRT__GAUGE_FALL);
    ck_assert_uint_eq(setup.policy.peak, 0);
    ck_assert(!memrt__shard_grow_fast(&setup.shard, 1));
    ck_assert(memrt__shard_shrink_fast(&setup.shard, FALL));
    ck_assert(memrt__shard_grow_fast(&setup.shard, FALL));
    verify_setup(&setup);
    grow_account(&setup, 10 * FALL);
    destroy_setup(&setup);
}

TEST(gauge_reports_reach_the_process)
{
    setup_t setup;
    create_setup(&setup);
    size_t before = memrt__load_relaxed(&memrt__process.flushed);
    grow_account(&setup, 5 * FALL);
    ck_assert_uint_eq(memrt__load_relaxed(&memrt__process.flushed), before + 5 * FALL);
    shrink_account(&setup, 5 * FALL);
    destroy_setup(&setup);
    ck_assert_uint_eq(memrt__load_relaxed(&memrt__process.flushed), before);
}

TEST(close_gauge_hides_half_of_two_percent_of_the_least_peak)
{
    setup_t setup;
    create_setup(&setup);
    memrt__options.peak_mode = MEMRT__PEAK_CLOSE;
    setup.account.scope = &setup.scope;
    memrt__process.peak += 100 * FALL;
    setup.outer.peak = 100 * FALL;
    grow_account(&setup, 40); /* the peaks are too low: the gauge stays at rest */
    ck_assert_uint_eq(setup.scope.most_hidden, 0);
    grow_account(&setup, 99960);
    shrink_account(&setup, 1);
    ck_assert_uint_eq(setup.shard.allowance, 1000);
    ck_assert_uint_eq(setup.outer.hidden, 1000);
    verify_setup(&setup);
    grow_account(&setup, 300001);
    ck_assert_uint_eq(setup.shard.allowance, 1000);
    shrink_account(&setup, 5000);
    ck_assert_uint_eq(setup.shard.allowance, 4000);
    setup.outer.hidden += setup.outer.peak / MEMRT__CLOSE_PARTS - 3 * 1000;
    shrink_account(&setup, 5000); /* other gauges hide much now */
    ck_assert_uint_eq(setup.shard.allowance, 1500);
    verify_setup(&setup);
    setup.outer.hidden += FALL;
    shrink_account(&setup, 5000);
    ck_assert_uint_eq(setup.shard.allowance, 0);
    ck_assert_uint_eq(setup.scope.hidden, 0);
    ck_assert_uint_eq(setup.scope.most_hidden, 4000);
    verify_setup(&setup);
    memrt__process.peak -= 100 * FALL;
    shrink_account(&setup, 385000);
    destroy_setup(&setup);
}

TEST(level_hides_no_more_than_two_percent_of_each_close_peak)
{
    memrt__level_t outer = {.peak = 1000}, inner = {.up = &outer, .peak = 5000};
    ck_assert(memrt__level_hide(&inner, 20, true));
    ck_assert(!memrt__level_hide(&inner, 1, true));
    ck_assert_uint_eq(inner.hidden, 20);
    ck_assert(memrt__level_hide(&inner, 100, false));
    ck_assert(!memrt__level_hide(&inner, 1, true));
    memrt__level_unhide(&inner, 120);
    ck_assert_uint_eq(inner.hidden + outer.hidden, 0);
    ck_assert_uint_eq(outer.most_hidden, 120);
    ck_assert_uint_eq(memrt__level_close_allowance(&inner, 0), 10);
    ck_assert_uint_eq(memrt__level_close_allowance(NULL, 0), SIZE_MAX);
}

TEST(gauge_reports_reach_the_scope_and_outer_scopes)
{
    setup_t setup;
    create_setup(&setup);
    setup.account.scope = &setup.scope;
    grow_account(&setup, 5 * FALL);
    shrink_account(&setup, 2 * FALL);
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
    shrink_account(&setup, 3 * FALL);
    destroy_setup(&setup);
}

TEST(account_is_only_in_its_policy_scopes_and_process)
{
    setup_t setup, other;
    create_setup(&setup);
    create_setup(&other);
    ck_assert(memrt__account_is_in(&setup.account, &memrt__process));
    ck_assert(memrt__account_is_in(&setup.account, &setup.policy));
    ck_assert(!memrt__account_is_in(&setup.account, &setup.scope));
    ck_assert(!memrt__account_is_in(&setup.account, &other.policy));
    setup.account.scope = &setup.outer;
    ck_assert(memrt__account_is_in(&setup.account, &setup.outer));
    ck_assert(!memrt__account_is_in(&setup.account, &setup.scope));
}

TEST(bytes_past_the_gauges_are_reported_and_counted)
{
    setup_t setup;
    create_setup(&setup);
    memrt__account_add_shared(&setup.account, 500);
    ck_assert_uint_eq(setup.policy.flushed, 500);
    ck_assert_uint_eq(setup.policy.peak, 500);
    ck_assert_uint_eq(setup.policy.past_gauges, 1);
    memrt__account_add_shared(&setup.account, (size_t)0 - 500);
    ck_assert_uint_eq(setup.policy.peak, 500);
    destroy_setup(&setup);
}

static size_t count_entered_accounts(const memrt__account_t *account)
{
    size_t count = 0;
    memrt__lock(MEMRT__RANK_THREADS);
    for (memrt__account_t *a = memrt__account_first(); a != NULL; a = a->next) {
        count += account == NULL || a == account;
    }
    memrt__unlock(MEMRT__RANK_THREADS);
    return count;
}

static void leave_account(memrt__account_t *account)
{
    memrt__lock(MEMRT__RANK_THREADS);
    memrt__account_leave(account);
    memrt__unlock(MEMRT__RANK_THREADS);
}

TEST(accounts_can_leave_in_any_order)
{
    setup_t setups[3];
    size_t before = count_entered_accounts(NULL);
    for (size_t i = 0; i < 3; i++) {
        create_setup(&setups[i]);
        memrt__account_enter(&setups[i].account);
    }
    leave_account(&setups[1].account);
    ck_assert_uint_eq(count_entered_accounts(&setups[1].account), 0);
    ck_assert_uint_eq(
        count_entered_accounts(&setups[0].account) + count_entered_accounts(&setups[2].account), 2);
    leave_account(&setups[2].account);
    leave_account(&setups[0].account);
    ck_assert_uint_eq(count_entered_accounts(NULL), before);
}
