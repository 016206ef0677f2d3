#include "support/suite.h"

#include "runtime/pressure/pressure_level.h"

#define SECOND ((uint64_t)1000000000)

#define NONE MEMRT_PRESSURE_NONE
#define LOW MEMRT_PRESSURE_LOW
#define MEDIUM MEMRT_PRESSURE_MEDIUM
#define CRITICAL MEMRT_PRESSURE_CRITICAL

TEST(permille_is_the_part_of_the_limit_in_use)
{
    ck_assert_uint_eq(memrt__pressure_permille(0, 1000), 0);
    ck_assert_uint_eq(memrt__pressure_permille(899, 1000), 899);
    ck_assert_uint_eq(memrt__pressure_permille(1000, 1000), 1000);
    ck_assert_uint_eq(memrt__pressure_permille(5000, 1000), 1000);
    ck_assert_uint_eq(memrt__pressure_permille(0, 0), 1000);
    ck_assert_uint_eq(memrt__pressure_permille((uint64_t)9 << 59, (uint64_t)10 << 59), 900);
    ck_assert_uint_eq(memrt__pressure_permille(1, UINT64_MAX), 0);
}

/// Use of the limit, and the level that follows.
typedef struct step {
    uint32_t permille;
    int level;
} step_t;

static const step_t steps[] = {
    {0, NONE},       {799, NONE},     {800, LOW},    {751, LOW},    {750, LOW},       {749, NONE},
    {799, NONE},     {900, MEDIUM},   {899, MEDIUM}, {850, MEDIUM}, {849, LOW},       {899, LOW},
    {950, CRITICAL}, {900, CRITICAL}, {899, MEDIUM}, {949, MEDIUM}, {1000, CRITICAL}, {700, NONE},
};

TEST(level_ends_five_points_below_its_beginning)
{
    memrt__pressure_state_t state = {0};
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        int level = (int)memrt__pressure_update(&state, steps[i].permille, NONE, 1);
        ck_assert_msg(level == steps[i].level, "step %zu: level %d", i, level);
    }
}

TEST(use_around_a_threshold_changes_the_level_once)
{
    memrt__pressure_state_t state = {0};
    int changes = 0, before = NONE;
    for (uint32_t i = 0; i < 1000; i++) {
        int level = (int)memrt__pressure_update(&state, 880 + i % 40, NONE, i);
        changes += level != before;
        before = level;
    }
    ck_assert_int_eq(changes, 2); /* low at 880, medium at 900 */
}

TEST(signal_raises_the_level_for_five_seconds)
{
    memrt__pressure_state_t state = {0};
    ck_assert_int_eq(memrt__pressure_update(&state, 600, MEDIUM, SECOND), MEDIUM);
    ck_assert_int_eq(memrt__pressure_update(&state, 600, NONE, 6 * SECOND - 1), MEDIUM);
    ck_assert_int_eq(memrt__pressure_update(&state, 600, NONE, 6 * SECOND), NONE);
}

TEST(excess_over_soft_limits_raises_the_level_to_medium)
{
    ck_assert_int_eq(memrt__pressure_raise(MEMRT_PRESSURE_LOW, 0), LOW);
    ck_assert_int_eq(memrt__pressure_raise(MEMRT_PRESSURE_LOW, 1), MEDIUM);
    ck_assert_int_eq(memrt__pressure_raise(MEMRT_PRESSURE_CRITICAL, 1), CRITICAL);
}

TEST(higher_signal_wins_and_lower_signal_prolongs)
{
    memrt__pressure_state_t state = {0};
    ck_assert_int_eq(memrt__pressure_update(&state, 810, CRITICAL, SECOND), CRITICAL);
    ck_assert_int_eq(memrt__pressure_update(&state, 810, MEDIUM, 5 * SECOND), CRITICAL);
    ck_assert_int_eq(memrt__pressure_update(&state, 810, NONE, 9 * SECOND), CRITICAL);
    ck_assert_int_eq(memrt__pressure_update(&state, 810, MEDIUM, 10 * SECOND), MEDIUM);
    ck_assert_int_eq(memrt__pressure_update(&state, 960, NONE, 10 * SECOND), CRITICAL);
    ck_assert_int_eq(memrt__pressure_update(&state, 810, NONE, 15 * SECOND), LOW);
}

TEST(signal_below_half_of_the_limit_does_not_count)
{
    memrt__pressure_state_t state = {0};
    ck_assert_int_eq(memrt__pressure_update(&state, 499, CRITICAL, SECOND), NONE);
    ck_assert_int_eq(memrt__pressure_update(&state, 500, CRITICAL, SECOND), CRITICAL);
    ck_assert_int_eq(memrt__pressure_update(&state, 499, NONE, SECOND), NONE);
    ck_assert_int_eq(memrt__pressure_update(&state, 500, NONE, SECOND), NONE);
}
