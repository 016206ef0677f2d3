/// Tests of soft limits: memory is freed when the use of a level rises above a bound.

#include "support/suite.h"

#include <string.h>
#include <unistd.h>

#include "runtime/base/atomics.h"
#include "runtime/config/options.h"
#include "runtime/policy/memory_limit.h"
#include "runtime/policy/soft_limit.h"
#include "runtime/pressure/pressure_thread.h"
#include "runtime/stats/promise.h"
#include "support/books.h"
#include "support/child.h"
#include "support/crew.h"
#include "support/kernel.h"
#include "support/system_tree.h"

#define MIB ((size_t)1 << 20)

#if MEMRT_COUNTERS

/// Object of a soft limit, and the policy whose blocks count.
enum { PROCESS, POLICY, SCOPE, OUTER_SCOPE, PLACES };

typedef struct place {
    memrt_policy_t *policy, *limited_policy;
    memrt_scope_t *outer, *scope, *limited_scope;
    uint64_t before;       ///< live bytes of the level when the place was made
    uint64_t rises_before; ///< rises at that time
} place_t;

static size_t calls, last_level, reclaimed, last_wanted; ///< of callbacks; relaxed

/// With sanitizers, all tests run in one process.
void suite_prepare(void)
{
    size_t *const words[] = {&calls, &last_level, &reclaimed, &last_wanted};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        memrt__store_relaxed(words[i], 0);
    }
}

static memrt_limit_t read_limit(const place_t *place)
{
    memrt_limit_t limit = {.struct_size = sizeof(limit)};
    REQUIRE(api->limit_read(place->limited_policy, place->limited_scope, &limit) == MEMRT_OK);
    return limit;
}

/// Return the rises since the place was made.
static uint64_t get_rises(const place_t *place)
{
    return read_limit(place).rises - place->rises_before;
}

/// Set a soft limit `room` bytes above the live bytes at the beginning.
static memrt_status_t try_room(const place_t *place, uint64_t room)
{
    uint64_t soft = room == MEMRT_NO_LIMIT ? room : place->before + room;
    return api->limit_set_soft(place->limited_policy, place->limited_scope, soft);
}

static void set_room(const place_t *place, uint64_t room)
{
    REQUIRE(try_room(place, room) == MEMRT_OK);
}

static void set_limit(const place_t *place, uint64_t bytes)
{
    REQUIRE(api->limit_set(place->limited_policy, place->limited_scope, bytes) == MEMRT_OK);
}

static place_t enter_place(int where)
{
    place_t place = {0};
    memrt_policy_options_t options = {.struct_size = sizeof(options), .name = "soft"};
    ck_assert_int_eq(api->policy_new(&options, &place.policy), MEMRT_OK);
    ck_assert_int_eq(api->scope_open(NULL, "outer", &place.outer), MEMRT_OK);
    ck_assert_int_eq(api->scope_open(place.outer, "inner", &place.scope), MEMRT_OK);
    ck_assert_int_eq(api->scope_enter(place.scope, NULL), MEMRT_OK);
    place.limited_policy = where == POLICY ? place.policy : NULL;
    place.limited_scope = where == SCOPE ? place.scope : where == OUTER_SCOPE ? place.outer : NULL;
    place.before = where == PROCESS ? stats_of(NULL).live : 0;
    place.rises_before = read_limit(&place).rises;
    return place;
}

static void await_rest(void)
{
    while (memrt__load_relaxed(&memrt__pressure_runs) != 0) {
        usleep(1000);
    }
}

static void leave_place(place_t *place)
{
    set_room(place, MEMRT_NO_LIMIT);
    set_limit(place, MEMRT_NO_LIMIT);
    ck_assert_int_eq(api->scope_enter(NULL, NULL), MEMRT_OK);
    api->scope_release(place->scope);
    api->scope_release(place->outer);
    api->policy_release(place->policy);
    await_rest();
}

static void *alloc(const place_t *place, size_t size)
{
    void *block = api->block_alloc(place->policy, size);
    REQUIRE(block != NULL);
    return block;
}

static void release(const place_t *place, void *block, size_t size)
{
    api->block_free(place->policy, block, size);
}

static void note_level(void *context, uint64_t level)
{
    (void)context;
    memrt__store_relaxed(&last_level, (size_t)level);
    (void)memrt__fetch_add_relaxed(&calls, 1);
}

static uint64_t add_callback(void)
{
    uint64_t id = 0;
    REQUIRE(api->pressure_add(note_level, NULL, MEMRT_PRESSURE_MEDIUM, &id) == MEMRT_OK);
    return id;
}

static void remove_callback(uint64_t id)
{
    REQUIRE(api->pressure_remove(id) == MEMRT_OK);
}

static void await_word(const size_t *word, size_t value)
{
    while (memrt__load_relaxed(word) < value) {
        usleep(1000);
    }
}

static void await_rises(const place_t *place, uint64_t rises)
{
    while (get_rises(place) < rises) {
        usleep(1000);
    }
}

static memrt__level_t *get_level(const place_t *place)
{
    return memrt__limit_level(place->limited_policy, place->limited_scope);
}

/// Wait until the thread has noted a use below the soft limit.
static void await_fall(const place_t *place)
{
    while (memrt__load_relaxed(&get_level(place)->soft_state) != MEMRT__SOFT_BELOW) {
        usleep(1000);
    }
}

TEST_EACH(rise_above_soft_limit_calls_callbacks_and_refuses_nothing, PLACES)
{
    place_t place = enter_place(index);
    uint64_t id = add_callback();
    set_room(&place, 8 * MIB);
    void *first = alloc(&place, 6 * MIB);
    usleep(20000);
    ck_assert_uint_eq(memrt__load_relaxed(&calls), 0);
    ck_assert_uint_eq(get_rises(&place), 0);
    void *second = alloc(&place, 3 * MIB);
    await_word(&calls, 1);
    ck_assert_uint_eq(memrt__load_relaxed(&last_level), MEMRT_PRESSURE_MEDIUM);
    memrt_pressure_t pressure = {.struct_size = sizeof(pressure)};
    ck_assert_int_eq(api->pressure_read(&pressure), MEMRT_OK);
    ck_assert_uint_eq(pressure.above_soft, 1);
    ck_assert_uint_ge(pressure.level, MEMRT_PRESSURE_MEDIUM);
    void *third = alloc(&place, 20 * MIB);
    ck_assert_uint_eq(get_rises(&place), 1);
    ck_assert_uint_eq(read_limit(&place).soft, place.before + 8 * MIB);
    release(&place, first, 6 * MIB);
    release(&place, second, 3 * MIB);
    release(&place, third, 20 * MIB);
    remove_callback(id);
    leave_place(&place);
}

static const size_t sizes[] = {16, 64, 1024, 48 << 10, 256 << 10, 2 << 20};
enum { SIZES = sizeof(sizes) / sizeof(sizes[0]), FILL = 8 << 20 };

/// A rise is noted at the latest when the live bytes exceed the soft limit, and at the earliest
/// when they are `held` bytes below.
TEST_EACH(rise_is_noted_within_the_stated_bounds, PLACES *SIZES)
{
    size_t size = sizes[index % SIZES], count = FILL / size, made = 0;
    if (memrt__options.check && size < 1024) {
        return; /* slow */
    }
    place_t place = enter_place(index / (int)SIZES);
    static void *blocks[FILL / 16 + 1];
    release(&place, alloc(&place, size), size); /* the thread has its counters from now on */
    set_room(&place, FILL);
    size_t soft = place.before + FILL, early = MEMRT__PROMISE_AHEAD;
    memrt__level_t *level = get_level(&place);
    while (made <= count && memrt__load_relaxed(&level->soft_state) == MEMRT__SOFT_BELOW) {
        blocks[made++] = alloc(&place, size);
    }
    ck_assert_uint_le(made, count + 1);
    ck_assert_uint_ge(place.before + made * size + early + size, soft);
    await_rises(&place, 1);
    for (size_t i = 0; i < made; i++) {
        release(&place, blocks[i], size);
    }
    leave_place(&place);
}

TEST_EACH(use_around_the_soft_limit_is_one_rise, PLACES)
{
    place_t place = enter_place(index);
    set_room(&place, 100 * MIB);
    void *block = alloc(&place, 97 * MIB);
    for (int round = 0; round < 2; round++) {
        void *more = alloc(&place, 5 * MIB);
        await_rises(&place, 1);
        usleep(120000);
        release(&place, more, 5 * MIB);
        usleep(120000);
    }
    ck_assert_uint_eq(get_rises(&place), 1);
    release(&place, block, 97 * MIB);
    await_fall(&place);
    block = alloc(&place, 101 * MIB);
    await_rises(&place, 2);
    release(&place, block, 101 * MIB);
    leave_place(&place);
}

TEST(rise_releases_cached_memory)
{
    if (!memrt__options.cache) {
        return;
    }
    suite_set_decay(MEMRT__DECAY_NEVER);
    place_t place = enter_place(SCOPE);
    release(&place, alloc(&place, 40 * MIB), 40 * MIB);
    ck_assert_uint_ge(stats_of(NULL).cached, 40 * MIB);
    set_room(&place, MIB);
    void *block = alloc(&place, 2 * MIB);
    await_rises(&place, 1);
    while (stats_of(NULL).cached >= 2 * MIB) {
        usleep(1000);
    }
    release(&place, block, 2 * MIB);
    leave_place(&place);
}

TEST(cached_memory_is_released_within_soft_limit_of_process)
{
    suite_set_decay(MEMRT__DECAY_NEVER);
    place_t place = enter_place(PROCESS);
    set_room(&place, 64 * MIB);
    release(&place, alloc(&place, 48 * MIB), 48 * MIB);
    void *blocks[24];
    for (size_t i = 0; i < 24; i++) {
        blocks[i] = alloc(&place, 2 * MIB);
        memrt_stats_t stats = stats_of(NULL);
        ck_assert_uint_le(stats.live + stats.cached, place.before + 65 * MIB);
    }
    ck_assert_uint_eq(get_rises(&place), 0);
    for (size_t i = 0; i < 24; i++) {
        release(&place, blocks[i], 2 * MIB);
    }
    leave_place(&place);
}

static void *cached_block; ///< of the program's cache; NULL: dropped

static size_t drop_cache(void *context, size_t wanted)
{
    const place_t *place = context;
    memrt__store_relaxed(&last_wanted, wanted);
    if (cached_block != NULL) {
        release(place, cached_block, 5 * MIB);
        cached_block = NULL;
    }
    memrt__fetch_add_relaxed(&reclaimed, 1);
    return 5 * MIB;
}

static size_t count_run(void *context, size_t wanted)
{
    (void)wanted;
    memrt__fetch_add_relaxed(context, 1);
    return 0;
}

TEST_EACH(reclaim_callbacks_run_until_the_use_is_low, PLACES)
{
    place_t place = enter_place(index);
    size_t second = 0;
    uint64_t id = add_callback();
    cached_block = alloc(&place, 5 * MIB);
    ck_assert_int_eq(api->reclaim_add(drop_cache, &place, 1), MEMRT_OK);
    ck_assert_int_eq(api->reclaim_add(count_run, &second, 2), MEMRT_OK);
    set_room(&place, 8 * MIB);
    void *block = alloc(&place, 4 * MIB);
    await_word(&reclaimed, 1);
    await_rises(&place, 1);
    await_fall(&place);
    ck_assert_uint_ge(memrt__load_relaxed(&last_wanted), MIB);
    remove_callback(id); /* waits for a running call */
    ck_assert_uint_eq(memrt__load_relaxed(&second), 0);
    ck_assert_uint_eq(memrt__load_relaxed(&calls), 0);
    ck_assert_int_eq(api->reclaim_remove(drop_cache, &place), MEMRT_OK);
    ck_assert_int_eq(api->reclaim_remove(count_run, &second), MEMRT_OK);
    release(&place, block, 4 * MIB);
    leave_place(&place);
}

TEST(rise_of_second_level_calls_callbacks_again)
{
    place_t outer = enter_place(OUTER_SCOPE), inner = outer;
    inner.limited_scope = outer.scope;
    inner.rises_before = read_limit(&inner).rises;
    uint64_t id = add_callback();
    set_room(&inner, MIB);
    set_room(&outer, 8 * MIB);
    void *first = alloc(&inner, 2 * MIB);
    await_word(&calls, 1);
    void *second = alloc(&inner, 8 * MIB);
    await_word(&calls, 2);
    ck_assert_uint_eq(get_rises(&inner), 1);
    ck_assert_uint_eq(get_rises(&outer), 1);
    ck_assert_uint_eq(memrt__load_relaxed(&memrt__soft_limits_above), 2);
    release(&inner, first, 2 * MIB);
    release(&inner, second, 8 * MIB);
    set_room(&inner, MEMRT_NO_LIMIT);
    remove_callback(id);
    leave_place(&outer);
}

TEST_EACH(soft_limit_changes_while_exceeded, PLACES)
{
    place_t place = enter_place(index);
    void *block = alloc(&place, 10 * MIB);
    set_room(&place, 8 * MIB); /* below the use: a rise at once */
    await_rises(&place, 1);
    set_room(&place, 8 * MIB); /* the same again changes nothing */
    set_room(&place, 20 * MIB);
    await_fall(&place);
    set_room(&place, 9 * MIB);
    await_rises(&place, 2);
    set_room(&place, 5 * MIB); /* lower, and still exceeded: a rise of its own */
    await_rises(&place, 3);
    set_room(&place, MEMRT_NO_LIMIT);
    await_rest();
    ck_assert_uint_eq(memrt__load_relaxed(&memrt__soft_limits_above), 0);
    ck_assert_uint_eq(read_limit(&place).soft, MEMRT_NO_LIMIT);
    release(&place, block, 10 * MIB);
    leave_place(&place);
}

TEST_EACH(soft_limit_above_the_limit_is_refused, PLACES)
{
    place_t place = enter_place(index);
    set_limit(&place, place.before + 8 * MIB);
    ck_assert_int_eq(try_room(&place, 8 * MIB + 1), MEMRT_EINVAL);
    ck_assert_uint_eq(read_limit(&place).soft, MEMRT_NO_LIMIT);
    set_room(&place, 8 * MIB);
    set_limit(&place, place.before + 4 * MIB); /* the soft limit has no effect now */
    void *block = alloc(&place, 4 * MIB);
    ck_assert_ptr_null(api->block_alloc(place.policy, 1));
    usleep(20000);
    ck_assert_uint_eq(get_rises(&place), 0);
    release(&place, block, 4 * MIB);
    ck_assert_int_eq(api->limit_set_soft(place.policy, place.scope, 1), MEMRT_EINVAL);
    leave_place(&place);
}

/// Without the pressure thread, which could count the request before the refusal.
TEST(refused_request_is_no_rise)
{
    place_t place = enter_place(POLICY);
    ck_assert_int_eq(api->limit_set(NULL, place.scope, 4 * MIB), MEMRT_OK);
    kernel_refuse(KERNEL_THREAD, 0, 1);
    set_room(&place, 2 * MIB);
    ck_assert_ptr_null(api->block_alloc(place.policy, 5 * MIB));
    ck_assert_uint_eq(memrt__load_relaxed(&get_level(&place)->soft_state), MEMRT__SOFT_BELOW);
    ck_assert_uint_eq(memrt__load_relaxed(&memrt__pressure_runs), 0);
    ck_assert_uint_eq(get_rises(&place), 0);
    leave_place(&place);
}

TEST(soft_limit_of_scope_ends_with_last_reference)
{
    place_t place = enter_place(SCOPE);
    set_room(&place, MIB);
    ck_assert_int_eq(api->scope_enter(NULL, NULL), MEMRT_OK);
    api->scope_release(place.scope);
    await_rest();
    ck_assert_int_eq(api->scope_open(place.outer, "inner", &place.scope), MEMRT_OK);
    place.limited_scope = place.scope;
    ck_assert_uint_eq(read_limit(&place).soft, MEMRT_NO_LIMIT);
    leave_place(&place);
}

TEST(thread_that_was_refused_starts_at_the_next_rise)
{
    place_t place = enter_place(POLICY);
    kernel_refuse(KERNEL_THREAD, 0, 1);
    set_room(&place, MIB);
    ck_assert_uint_eq(memrt__load_relaxed(&memrt__pressure_runs), 0);
    void *block = alloc(&place, 2 * MIB);
    await_rises(&place, 1);
    release(&place, block, 2 * MIB);
    leave_place(&place);
}

TEST(failed_allocation_leaves_soft_limit_usable)
{
    place_t place = enter_place(POLICY);
    set_room(&place, 4 * MIB);
    memrt_failure_plan_t plan = {.struct_size = sizeof(plan), .nth = 1, .every = 1};
    ck_assert_int_eq(api->fail_allocations(&plan), MEMRT_OK);
    ck_assert_ptr_null(api->block_alloc(place.policy, 2 * MIB));
    ck_assert_int_eq(api->fail_allocations(NULL), MEMRT_OK);
    ck_assert_uint_eq(get_rises(&place), 0);
    void *block = alloc(&place, 5 * MIB);
    await_rises(&place, 1);
    release(&place, block, 5 * MIB);
    leave_place(&place);
}

enum { THREADS = 8, ROUNDS = 200 };

/// Threads that rise and fall together, so that the sum crosses the soft limit again and again.
static void rise_and_fall(size_t index, void *context)
{
    const place_t *place = context;
    REQUIRE(api->scope_enter(place->scope, NULL) == MEMRT_OK);
    for (size_t round = 0; round < ROUNDS; round++) {
        size_t size = (index + 1) * 100000 + round;
        void *block = alloc(place, size);
        if (round % 16 == 0) {
            usleep(1000);
        }
        release(place, block, size);
    }
    REQUIRE(api->scope_enter(NULL, NULL) == MEMRT_OK);
}

TEST_EACH(threads_across_soft_limit_leave_no_rise_behind, PLACES)
{
    place_t place = enter_place(index);
    uint64_t id = add_callback();
    set_room(&place, MIB);
    crew_run(THREADS, rise_and_fall, &place);
    uint64_t rises = get_rises(&place);
    await_fall(&place);
    void *block = alloc(&place, 2 * MIB); /* the next rise is seen in any case */
    await_rises(&place, rises + 1);
    release(&place, block, 2 * MIB);
    remove_callback(id);
    leave_place(&place);
}

static void change_soft_limits(size_t index, void *context)
{
    const place_t *place = context;
    REQUIRE(api->scope_enter(place->scope, NULL) == MEMRT_OK);
    for (size_t round = 0; round < 100; round++) {
        if (index == 0) {
            set_room(place, round % 3 == 0 ? MEMRT_NO_LIMIT : round * 10000);
        } else {
            release(place, alloc(place, 300000), 300000);
        }
    }
    REQUIRE(api->scope_enter(NULL, NULL) == MEMRT_OK);
}

TEST_EACH(soft_limit_changes_beside_allocations, PLACES)
{
    place_t place = enter_place(index);
    crew_run(3, change_soft_limits, &place);
    leave_place(&place);
}

static void expect_rise_in_child(void *context)
{
    const place_t *place = context;
    if (SUITE_THREAD_SANITIZER) { /* refuses threads in a child */
        return;
    }
    memrt__store_relaxed(&calls, 0);
    void *block = alloc(place, 9 * MIB);
    await_word(&calls, 1);
    release(place, block, 9 * MIB);
}

TEST_EACH(soft_limit_continues_in_parent_and_child_after_fork, PLACES)
{
    place_t place = enter_place(index);
    uint64_t id = add_callback();
    set_room(&place, 8 * MIB);
    child_expect_success(expect_rise_in_child, &place);
    ck_assert_uint_eq(memrt__load_relaxed(&calls), 0);
    void *block = alloc(&place, 9 * MIB);
    await_word(&calls, 1);
    child_expect_success(expect_rise_in_child, &place); /* forked above the soft limit */
    release(&place, block, 9 * MIB);
    remove_callback(id);
    leave_place(&place);
}

TEST(percentage_follows_the_limit_of_the_system)
{
    place_t place = enter_place(PROCESS);
    system_tree_begin();
    system_tree_write("/proc/self/cgroup", "0::/job\n");
    system_tree_write("/proc/self/mountinfo", "41 31 0:38 / /cg rw - cgroup2 cgroup2 rw\n");
    system_tree_write("/cg/job/memory.current", "0\n");
    system_tree_write("/cg/job/memory.max", "104857600\n");
    ck_assert_int_eq(api->option_set("soft_limit", "80%", NULL, 0), MEMRT_OK);
    ck_assert_uint_eq(read_limit(&place).soft, 80 * MIB);
    system_tree_write("/cg/job/memory.max", "209715200\n");
    while (read_limit(&place).soft != 160 * MIB) {
        usleep(1000);
    }
    leave_place(&place);
    system_tree_end();
}

TEST(option_sets_soft_limit_of_process)
{
    place_t place = enter_place(PROCESS);
    char why[200] = "";
    ck_assert_int_eq(api->option_set("limit", "64M", NULL, 0), MEMRT_OK);
    ck_assert_int_eq(api->option_set("soft_limit", "48M", NULL, 0), MEMRT_OK);
    ck_assert_uint_eq(read_limit(&place).soft, 48 * MIB);
    ck_assert_int_eq(api->option_set("soft_limit", "65M", why, sizeof(why)), MEMRT_EINVAL);
    ck_assert_str_eq(why, "soft_limit must be at most the limit of 67108864 bytes, got '65M'");
    ck_assert_uint_eq(read_limit(&place).soft, 48 * MIB);
    ck_assert_uint_eq(memrt__options.soft_limit, 48 * MIB);
    ck_assert_int_eq(api->option_set("limit", "32M", NULL, 0), MEMRT_OK);
    ck_assert_int_eq(api->option_set("soft_limit", "48M", NULL, 0), MEMRT_EINVAL); /* in force */
    ck_assert_int_eq(api->option_set("limit", "64M", NULL, 0), MEMRT_OK);
    ck_assert_int_eq(api->option_set("soft_limit", "auto", NULL, 0), MEMRT_OK);
    ck_assert_uint_eq(read_limit(&place).soft, 64 * MIB / 10 * 9);
    ck_assert_int_eq(api->option_set("soft_limit", "100%", NULL, 0), MEMRT_OK);
    ck_assert_uint_eq(read_limit(&place).soft, 64 * MIB); /* within the limit */
    ck_assert_int_eq(api->option_set("soft_limit", "auto", NULL, 0), MEMRT_OK);
    ck_assert_int_eq(api->limit_set(NULL, NULL, 32 * MIB), MEMRT_OK);
    while (read_limit(&place).soft != 32 * MIB / 10 * 9) { /* follows the limit */
        usleep(1000);
    }
    ck_assert_int_eq(api->option_set("limit", "none", NULL, 0), MEMRT_OK);
    ck_assert_int_eq(api->option_set("soft_limit", "auto", NULL, 0), MEMRT_OK);
    ck_assert_uint_gt(read_limit(&place).soft, MIB);
    leave_place(&place);
    ck_assert_uint_eq(memrt__options.soft_limit, SIZE_MAX);
}

#else

TEST(soft_limit_needs_counters)
{
    ck_assert_int_eq(api->limit_set_soft(NULL, NULL, MIB), MEMRT_ENOTSUP);
}

#endif
