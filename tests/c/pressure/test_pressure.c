#include "support/suite.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/alloc/allocator.h"
#include "runtime/base/atomics.h"
#include "runtime/config/options.h"
#include "runtime/os/lock.h"
#include "runtime/policy/memory_limit.h"
#include "runtime/pressure/pressure_callbacks.h"
#include "runtime/pressure/pressure_thread.h"
#include "runtime/stats/stats.h"
#include "support/books.h"
#include "support/child.h"
#include "support/crew.h"
#include "support/kernel.h"
#include "support/system_tree.h"

#define MIB ((size_t)1 << 20)
#define LIMIT (100 * MIB)

/* Counts of calls, and the last level. Relaxed. */
static size_t calls, last_level;

/* Callback that waits until `may_return` is set. Relaxed. */
static size_t entered, may_return, returned;

/// Without forks, all tests run in one process.
void suite_prepare(void)
{
    size_t *const words[] = {&calls, &last_level, &entered, &may_return, &returned};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        memrt__store_relaxed(words[i], 0);
    }
}

static void note_level(void *context, uint64_t level)
{
    memrt__store_relaxed(&last_level, (size_t)level);
    (void)memrt__fetch_add_relaxed((size_t *)context, 1);
}

static void await_rest(void)
{
    while (memrt__load_relaxed(&memrt__pressure_runs) != 0) {
        usleep(1000);
    }
}

static uint64_t add(memrt_pressure_level_t level)
{
    uint64_t id = 0;
    REQUIRE(api->pressure_add(note_level, &calls, level, &id) == MEMRT_OK && id != 0);
    return id;
}

static void remove_callback(uint64_t id)
{
    REQUIRE(api->pressure_remove(id) == MEMRT_OK);
}

#if MEMRT_COUNTERS

static size_t get_calls(void)
{
    return memrt__load_relaxed(&calls);
}

static void await_calls(size_t count)
{
    while (get_calls() < count) {
        usleep(1000);
    }
}

static memrt_pressure_t read_pressure(void)
{
    memrt_pressure_t pressure = {.struct_size = sizeof(pressure)};
    REQUIRE(api->pressure_read(&pressure) == MEMRT_OK);
    return pressure;
}

/// Limit the process to LIMIT bytes more than are live.
static void begin_limit(void)
{
    memrt_stats_t stats = {.struct_size = sizeof(stats)};
    REQUIRE(api->stats_read(NULL, &stats) == MEMRT_OK);
    REQUIRE(api->limit_set(NULL, NULL, stats.live + LIMIT) == MEMRT_OK);
}

static void end_limit(void)
{
    REQUIRE(api->limit_set(NULL, NULL, MEMRT_NO_LIMIT) == MEMRT_OK);
}

/// Allocate a percentage of LIMIT. Memory that is never written is not resident.
static void *fill(size_t percent)
{
    void *block = api->block_alloc(NULL, LIMIT / 100 * percent);
    REQUIRE(block != NULL);
    return block;
}

static void clear(void *block, size_t percent)
{
    api->block_free(NULL, block, LIMIT / 100 * percent);
}

TEST(reading_is_of_the_nearest_limit)
{
    begin_limit();
    void *block = fill(92);
    memrt_pressure_t pressure = read_pressure();
    ck_assert_str_eq(pressure.of, "of the process");
    ck_assert_uint_eq(pressure.level, MEMRT_PRESSURE_MEDIUM);
    ck_assert_uint_eq(pressure.source, MEMRT_PRESSURE_HEADROOM);
    ck_assert_uint_eq(pressure.used + pressure.headroom, pressure.limit);
    ck_assert_uint_eq(pressure.headroom, 8 * MIB);
    clear(block, 92);
    end_limit();
}

TEST(callback_is_called_after_each_rise)
{
    begin_limit();
    uint64_t id = add(MEMRT_PRESSURE_MEDIUM);
    usleep(700000);
    ck_assert_uint_eq(get_calls(), 0);
    void *block = fill(92);
    await_calls(1);
    ck_assert_uint_eq(memrt__load_relaxed(&last_level), MEMRT_PRESSURE_MEDIUM);
    usleep(400000);
    ck_assert_uint_eq(get_calls(), 1);
    void *more = fill(4);
    await_calls(2);
    ck_assert_uint_eq(memrt__load_relaxed(&last_level), MEMRT_PRESSURE_CRITICAL);
    clear(more, 4);
    clear(block, 92);
    while (read_pressure().level != MEMRT_PRESSURE_NONE) {
        usleep(1000);
    }
    ck_assert_uint_eq(get_calls(), 2);
    remove_callback(id);
    await_rest();
    end_limit();
}

TEST(use_around_the_threshold_calls_once)
{
    begin_limit();
    uint64_t id = add(MEMRT_PRESSURE_MEDIUM);
    void *block = fill(88);
    for (int round = 0; round < 8; round++) {
        void *more = fill(3);
        await_calls(1);
        usleep(120000);
        clear(more, 3);
        usleep(120000);
    }
    ck_assert_uint_eq(get_calls(), 1);
    clear(block, 88);
    remove_callback(id);
    end_limit();
}

TEST(callback_added_at_its_level_is_called_at_once)
{
    begin_limit();
    void *block = fill(96);
    uint64_t low = add(MEMRT_PRESSURE_LOW), critical = add(MEMRT_PRESSURE_CRITICAL);
    await_calls(2);
    clear(block, 96);
    remove_callback(low);
    remove_callback(critical);
    end_limit();
}

TEST(rise_to_medium_releases_cached_memory)
{
    if (!memrt__options.cache) {
        return;
    }
    suite_set_decay(MEMRT__DECAY_NEVER);
    begin_limit();
    clear(fill(40), 40);
    ck_assert_uint_ge(stats_of(NULL).cached, 40 * MIB);
    void *block = fill(60), *more = fill(32);
    uint64_t id = add(MEMRT_PRESSURE_CRITICAL);
    while (stats_of(NULL).cached >= MIB) {
        usleep(1000);
    }
    ck_assert_uint_eq(get_calls(), 0);
    clear(more, 32);
    clear(block, 60);
    remove_callback(id);
    end_limit();
}

#endif

TEST(bad_arguments_are_refused)
{
    uint64_t id = 7;
    memrt_pressure_t pressure = {.struct_size = 0};
    await_rest();
    ck_assert_int_eq(api->pressure_read(&pressure), MEMRT_EINVAL);
    ck_assert_int_eq(api->pressure_add(NULL, NULL, MEMRT_PRESSURE_LOW, &id), MEMRT_EINVAL);
    ck_assert_int_eq(api->pressure_add(note_level, NULL, MEMRT_PRESSURE_LOW, NULL), MEMRT_EINVAL);
    ck_assert_int_eq(api->pressure_add(note_level, NULL, MEMRT_PRESSURE_NONE, &id), MEMRT_EINVAL);
    ck_assert_int_eq(api->pressure_add(note_level, NULL, (memrt_pressure_level_t)4, &id),
                     MEMRT_EINVAL);
    ck_assert_uint_eq(id, 7);
    ck_assert_int_eq(api->pressure_remove(0), MEMRT_ENOENT);
    ck_assert_int_eq(api->pressure_remove(99), MEMRT_ENOENT);
    ck_assert_uint_eq(memrt__load_relaxed(&memrt__pressure_runs), 0);
}

TEST(short_struct_is_filled_up_to_its_size)
{
    memrt_pressure_t pressure = {.struct_size = offsetof(memrt_pressure_t, used), .used = 5};
    ck_assert_int_eq(api->pressure_read(&pressure), MEMRT_OK);
    ck_assert_uint_gt(pressure.limit, 0);
    ck_assert_uint_eq(pressure.used, 5);
}

TEST(more_callbacks_than_the_table_has_are_refused)
{
    uint64_t ids[MEMRT_PRESSURE_CALLBACKS], id;
    for (size_t i = 0; i < MEMRT_PRESSURE_CALLBACKS; i++) {
        ids[i] = add(MEMRT_PRESSURE_CRITICAL);
    }
    ck_assert_int_eq(api->pressure_add(note_level, NULL, MEMRT_PRESSURE_LOW, &id), MEMRT_ELIMIT);
    for (size_t i = 0; i < MEMRT_PRESSURE_CALLBACKS; i++) {
        remove_callback(ids[i]);
        ck_assert_int_eq(api->pressure_remove(ids[i]), MEMRT_ENOENT);
    }
    await_rest();
}

TEST(thread_exists_only_while_callbacks_are_registered)
{
    size_t threads = kernel_calls(KERNEL_THREAD);
    for (size_t round = 1; round <= 3; round++) {
        uint64_t first = add(MEMRT_PRESSURE_LOW), second = add(MEMRT_PRESSURE_LOW);
        ck_assert_uint_eq(kernel_calls(KERNEL_THREAD), threads + round);
        remove_callback(first);
        ck_assert_uint_eq(memrt__load_relaxed(&memrt__pressure_runs), 1);
        remove_callback(second);
        await_rest();
    }
}

TEST(refused_thread_refuses_the_callback)
{
    uint64_t id = 7;
    kernel_refuse(KERNEL_THREAD, 0, 1);
    ck_assert_int_eq(api->pressure_add(note_level, &calls, MEMRT_PRESSURE_LOW, &id), MEMRT_ENOMEM);
    ck_assert_uint_eq(id, 7);
    remove_callback(add(MEMRT_PRESSURE_LOW));
    await_rest();
}

#if MEMRT_COUNTERS

static void wait_inside(void *context, uint64_t level)
{
    (void)context;
    (void)level;
    memrt__store_relaxed(&entered, 1);
    while (memrt__load_relaxed(&may_return) == 0) {
        usleep(1000);
    }
    usleep(50000);
    memrt__store_relaxed(&returned, 1);
}

/// Register `callback` and wait until the callback runs.
static uint64_t enter_callback(memrt_pressure_callback callback)
{
    uint64_t id;
    REQUIRE(api->pressure_add(callback, NULL, MEMRT_PRESSURE_LOW, &id) == MEMRT_OK);
    while (memrt__load_relaxed(&entered) == 0) {
        usleep(1000);
    }
    return id;
}

TEST(removal_waits_for_the_running_callback)
{
    begin_limit();
    void *block = fill(92);
    uint64_t id = enter_callback(wait_inside);
    memrt__store_relaxed(&may_return, 1);
    remove_callback(id);
    ck_assert_uint_eq(memrt__load_relaxed(&returned), 1);
    clear(block, 92);
    end_limit();
}

static uint64_t own_id;

/// Removes its own registration, allocates, sets a limit, and adds another callback.
static void use_memrt_inside(void *context, uint64_t level)
{
    uint64_t other;
    (void)context;
    (void)level;
    REQUIRE(api->pressure_remove(own_id) == MEMRT_OK);
    void *block = api->block_alloc(NULL, 1000);
    REQUIRE(block != NULL);
    api->block_free(NULL, block, 1000);
    REQUIRE(api->pressure_add(note_level, &calls, MEMRT_PRESSURE_LOW, &other) == MEMRT_OK);
    REQUIRE(api->pressure_remove(other) == MEMRT_OK);
    REQUIRE(api->limit_set(NULL, NULL, MEMRT_NO_LIMIT) == MEMRT_OK);
    memrt__store_relaxed(&entered, 1);
}

TEST(callback_may_use_memrt_and_remove_itself)
{
    begin_limit();
    void *block = fill(92);
    uint64_t id;
    REQUIRE(api->pressure_add(use_memrt_inside, NULL, MEMRT_PRESSURE_CRITICAL, &id) == MEMRT_OK);
    own_id = id;
    void *more = fill(5);
    while (memrt__load_relaxed(&entered) == 0) {
        usleep(1000);
    }
    await_rest();
    clear(more, 5);
    clear(block, 92);
}

/// Wait until the pressure thread has seen that the level is low.
static void await_fall(void)
{
    memrt__pressure_state_t state;
    do {
        usleep(1000);
        memrt__lock(MEMRT__RANK_PRESSURE);
        (void)memrt__pressure_last_state(&state);
        memrt__unlock(MEMRT__RANK_PRESSURE);
    } while (state.level != MEMRT_PRESSURE_NONE);
}

/// In the child, callbacks continue after the first larger allocation.
static void expect_calls_in_child(void)
{
    REQUIRE(memrt__load_relaxed(&memrt__pressure_runs) == 0);
    if (SUITE_THREAD_SANITIZER) { /* refuses threads in a child */
        return;
    }
    child_start_watchdog();
    memrt__store_relaxed(&calls, 0);
    void *block = fill(92);
    await_calls(1);
    clear(block, 92);
}

TEST(callbacks_continue_in_parent_and_child_after_fork)
{
    begin_limit();
    uint64_t id = add(MEMRT_PRESSURE_MEDIUM);
    for (size_t round = 1; round <= 3; round++) {
        pid_t child = fork();
        REQUIRE(child >= 0);
        if (child == 0) {
            expect_calls_in_child();
            _exit(0);
        }
        ck_assert_uint_eq(memrt__load_relaxed(&memrt__pressure_runs), 0);
        ck_assert_int_eq(child_wait(child), 0);
        void *block = fill(92);
        await_calls(round);
        clear(block, 92);
        await_fall(); /* the child calls the callback for a rise only */
    }
    remove_callback(id);
    end_limit();
}

TEST(fork_does_not_wait_for_a_callback)
{
    begin_limit();
    void *block = fill(92);
    uint64_t id = enter_callback(wait_inside);
    pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        REQUIRE(api->pressure_remove(id) == MEMRT_OK); /* no thread of the child runs the call */
        _exit(0);
    }
    ck_assert_int_eq(child_wait(child), 0);
    memrt__store_relaxed(&may_return, 1);
    remove_callback(id);
    ck_assert_uint_eq(memrt__load_relaxed(&returned), 1);
    clear(block, 92);
    end_limit();
}

static void fork_inside(void *context, uint64_t level)
{
    (void)context;
    (void)level;
    pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        if (!SUITE_THREAD_SANITIZER) { /* refuses threads in a child */
            remove_callback(add(MEMRT_PRESSURE_CRITICAL));
        }
        _exit(0);
    }
    REQUIRE(child_wait(child) == 0);
    memrt__store_relaxed(&entered, 1);
}

TEST(callback_may_fork)
{
    begin_limit();
    void *block = fill(92);
    uint64_t id = enter_callback(fork_inside);
    remove_callback(id);
    clear(block, 92);
    end_limit();
}

#endif

static void exit_with_callback(void *context)
{
    (void)context;
    (void)add(MEMRT_PRESSURE_LOW);
    usleep(20000);
    exit(3);
}

TEST(process_with_a_callback_exits)
{
    if (!SUITE_THREAD_SANITIZER) { /* refuses threads in a child */
        /* LeakSanitizer writes that the thread was running. */
        child_expect_exit(exit_with_callback, NULL, 3, SUITE_ADDRESS_SANITIZER ? "" : NULL);
    }
}

static void add_and_remove(size_t index, void *context)
{
    (void)context;
    for (size_t i = 0; i < 100; i++) {
        uint64_t id = add(MEMRT_PRESSURE_LOW);
        if (index == 0 && i % 10 == 0) {
            pid_t child = fork();
            REQUIRE(child >= 0);
            if (child == 0) {
                _exit(0);
            }
            REQUIRE(child_wait(child) == 0);
        }
        remove_callback(id);
    }
}

TEST(concurrent_registrations_and_forks_end_at_rest)
{
    crew_run(3, add_and_remove, NULL);
    await_rest();
}

#if MEMRT_COUNTERS

static void write_limit(const char *bytes)
{
    system_tree_write("/cg/job/memory.max", bytes);
}

static uint64_t read_limit(void)
{
    memrt_limit_t limit = {.struct_size = sizeof(limit)};
    REQUIRE(api->limit_read(NULL, NULL, &limit) == MEMRT_OK);
    return limit.limit;
}

static void begin_group(void)
{
    system_tree_begin();
    system_tree_write("/proc/self/cgroup", "0::/job\n");
    system_tree_write("/proc/self/mountinfo", "41 31 0:38 / /cg rw - cgroup2 cgroup2 rw\n");
    system_tree_write("/cg/job/memory.current", "0\n");
    write_limit("104857600\n");
}

TEST(percentage_follows_the_limit_of_the_system)
{
    begin_group();
    ck_assert_int_eq(api->option_set("limit", "80%", NULL, 0), MEMRT_OK);
    ck_assert_uint_eq(read_limit(), 80 * MIB);
    write_limit("209715200\n");
    while (read_limit() != 160 * MIB) {
        usleep(1000);
    }
    ck_assert_int_eq(api->option_set("limit", "none", NULL, 0), MEMRT_OK);
    await_rest();
    system_tree_end();
}

TEST(automatic_limit_follows_until_another_limit_is_set)
{
    begin_group();
    write_limit("10737418240\n");
    ck_assert_int_eq(api->option_set("limit", "auto", NULL, 0), MEMRT_OK);
    uint64_t before = read_limit();
    ck_assert_uint_lt(before, 9216 * MIB + 1);
    write_limit("5368709120\n");
    while (read_limit() >= before) {
        usleep(1000);
    }
    ck_assert_int_eq(api->limit_set(NULL, NULL, 300 * MIB), MEMRT_OK);
    write_limit("104857600\n");
    await_rest();
    ck_assert_uint_eq(read_limit(), 300 * MIB);
    end_limit();
    system_tree_end();
}

#endif
