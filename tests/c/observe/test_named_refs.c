#include "support/suite.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/atomics.h"
#include "runtime/config/fault_injection.h"
#include "runtime/config/options.h"
#include "runtime/observe/named_refs.h"
#include "runtime/os/os.h"
#include "support/child.h"
#include "support/crew.h"

#define REFERENCE MEMRT_HOLDER_REFERENCE
#define EXPORT MEMRT_HOLDER_EXPORT
#define MANY 1000
#define FORKS 400

static void hold_meminfo(memrt_meminfo_t *mi, memrt_holder_kind_t kind, const char *name)
{
    ck_assert_int_eq(api->acquire_as(mi, kind, name), MEMRT_OK);
}

static size_t count_holders(const memrt_meminfo_t *mi)
{
    return api->holders(mi, NULL, 0, 0);
}

/// Return a row, which the next call overwrites.
static const memrt_holder_t *read_row(const memrt_meminfo_t *mi, size_t index)
{
    static memrt_holder_t rows[4];
    ck_assert_uint_gt(api->holders(mi, rows, sizeof(rows[0]), 4), index);
    return &rows[index];
}

/// Count the named references recorded for a key without a MemInfo.
static size_t count_left_over(const memrt_meminfo_t *mi)
{
    return memrt__named_refs_list((uintptr_t)mi, NULL, 0, 0);
}

TEST(named_reference_adds_refcount_and_holder_row)
{
    memrt_meminfo_t *mi = api->allocate(100);
    ck_assert_uint_eq(count_holders(mi), 0);
    hold_meminfo(mi, REFERENCE, "loader");
    ck_assert_uint_eq(api->refcount(mi), 2);
    memrt_holder_t row = *read_row(mi, 0);
    ck_assert_str_eq(row.name, "loader");
    ck_assert_uint_eq(row.count, 1);
    ck_assert_uint_eq(row.kind, REFERENCE);
    ck_assert_uint_eq(row.thread, memrt__os_thread_id());
    ck_assert_uint_lt(row.age_ns, UINT64_C(60000000000));
    api->release_as(mi, REFERENCE, "loader");
    ck_assert_uint_eq(api->refcount(mi), 1);
    ck_assert_uint_eq(count_holders(mi), 0);
    api->release(mi);
}

TEST(holder_row_counts_references_of_same_kind_and_name)
{
    memrt_meminfo_t *mi = api->allocate(100);
    hold_meminfo(mi, REFERENCE, "a");
    hold_meminfo(mi, EXPORT, "a");
    hold_meminfo(mi, REFERENCE, "b");
    hold_meminfo(mi, REFERENCE, "a");
    ck_assert_uint_eq(count_holders(mi), 3);
    ck_assert_uint_eq(read_row(mi, 0)->count, 2);
    ck_assert_uint_eq(read_row(mi, 1)->kind, EXPORT);
    ck_assert_str_eq(read_row(mi, 2)->name, "b");
    api->release_as(mi, REFERENCE, "a");
    ck_assert_uint_eq(read_row(mi, 0)->count, 1);
    api->release_as(mi, REFERENCE, "a");
    ck_assert_uint_eq(read_row(mi, 0)->kind, EXPORT);
    api->release_as(mi, EXPORT, "a");
    api->release_as(mi, REFERENCE, "b");
    ck_assert_uint_eq(count_holders(mi), 0);
    api->release(mi);
}

TEST(named_reference_refuses_invalid_name_or_kind)
{
    memrt_meminfo_t *mi = api->allocate(100);
    char name[MEMRT_NAME_MAX + 2];
    memset(name, 'n', sizeof(name));
    name[MEMRT_NAME_MAX + 1] = '\0';
    ck_assert_int_eq(api->acquire_as(mi, REFERENCE, name), MEMRT_EINVAL);
    ck_assert_int_eq(api->acquire_as(mi, REFERENCE, ""), MEMRT_EINVAL);
    ck_assert_int_eq(api->acquire_as(mi, REFERENCE, NULL), MEMRT_EINVAL);
    ck_assert_int_eq(api->acquire_as(mi, (memrt_holder_kind_t)0, "a"), MEMRT_EINVAL);
    ck_assert_int_eq(api->acquire_as(mi, (memrt_holder_kind_t)3, "a"), MEMRT_EINVAL);
    ck_assert_uint_eq(api->refcount(mi), 1);
    name[MEMRT_NAME_MAX] = '\0';
    hold_meminfo(mi, REFERENCE, name);
    ck_assert_str_eq(read_row(mi, 0)->name, name);
    api->release_as(mi, REFERENCE, name);
    api->release(mi);
}

TEST(failed_named_reference_adds_no_refcount_and_no_row)
{
    memrt_meminfo_t *mi = api->allocate(100);
    suite_fail_all_requests();
    ck_assert_int_eq(api->acquire_as(mi, REFERENCE, "a"), MEMRT_ENOMEM);
    suite_allow_requests();
    ck_assert_uint_eq(api->refcount(mi), 1);
    ck_assert_uint_eq(count_holders(mi), 0);
    api->release(mi);
}

TEST(holder_rows_are_cut_to_count_and_row_size_of_caller)
{
    char rows[2 * sizeof(memrt_holder_t)];
    size_t count;
    memrt_meminfo_t *mi = api->allocate(100);
    hold_meminfo(mi, REFERENCE, "a");
    hold_meminfo(mi, REFERENCE, "b");
    memset(rows, 'x', sizeof(rows));
    ck_assert_uint_eq(api->holders(mi, (memrt_holder_t *)(void *)rows, sizeof(count), 1), 2);
    memcpy(&count, rows, sizeof(count));
    ck_assert_uint_eq(count, 1);
    ck_assert_int_eq(rows[sizeof(count)], 'x');
    memset(rows, 'x', sizeof(rows));
    /* as if the caller's header were newer than the library */
    size_t larger = sizeof(memrt_holder_t) + 8;
    ck_assert_uint_eq(api->holders(mi, (memrt_holder_t *)(void *)rows, larger, 1), 2);
    ck_assert_int_eq(rows[sizeof(memrt_holder_t)], 'x');
    api->release_as(mi, REFERENCE, "a");
    api->release_as(mi, REFERENCE, "b");
    api->release(mi);
}

TEST(leftover_holder_rows_are_removed_with_meminfo)
{
    memrt_meminfo_t *mi = api->allocate(100);
    hold_meminfo(mi, REFERENCE, "a");
    hold_meminfo(mi, REFERENCE, "b");
    api->release(mi);
    api->release(mi);
    /* all remaining references count as plain references */
    ck_assert_uint_eq(count_holders(mi), 2);
    api->release(mi);
    ck_assert_uint_eq(count_left_over(mi), 0);
}

TEST(holder_rows_end_with_tiny_adopted_or_resizable_meminfo)
{
    static char foreign[8];
    memrt_meminfo_t *mis[3];
    void *tiny = api->block_alloc(NULL, 8);
    ck_assert_int_eq(api->block_meminfo(tiny, &mis[0]), MEMRT_OK);
    ck_assert_int_eq(api->meminfo_adopt(foreign, 8, NULL, &mis[1]), MEMRT_OK);
    ck_assert_int_eq(api->resizable_new(8, NULL, &mis[2]), MEMRT_OK);
    for (size_t i = 0; i < 3; i++) {
        hold_meminfo(mis[i], REFERENCE, "a");
        api->release(mis[i]);
    }
    api->block_free(NULL, tiny, 8);
    for (size_t i = 0; i < 3; i++) {
        ck_assert_uint_eq(count_holders(mis[i]), 1);
        api->release(mis[i]);
        ck_assert_uint_eq(count_left_over(mis[i]), 0);
    }
}

TEST_EACH(leftover_holder_rows_are_removed_when_block_is_resized, 2)
{
    memrt_meminfo_t *mi;
    void *data = api->block_alloc(NULL, 100);
    ck_assert_int_eq(api->block_meminfo(data, &mi), MEMRT_OK);
    hold_meminfo(mi, REFERENCE, "a");
    api->release(mi);
    api->release(mi);
    data = api->block_realloc(NULL, data, index == 0 ? 101 : 3000000);
    ck_assert_ptr_nonnull(data);
    ck_assert_uint_eq(count_left_over(mi), 0);
    api->block_free(NULL, data, 0);
}

TEST(realloc_of_block_with_named_reference_makes_a_copy)
{
    memrt_meminfo_t *mi;
    void *data = api->block_alloc(NULL, 100);
    ck_assert_int_eq(api->block_meminfo(data, &mi), MEMRT_OK);
    hold_meminfo(mi, EXPORT, "a");
    api->release(mi);
    void *copy = api->block_realloc(NULL, data, 200);
    ck_assert_ptr_ne(copy, data);
    ck_assert_uint_eq(count_holders(mi), 1);
    api->release_as(mi, EXPORT, "a");
    api->block_free(NULL, copy, 0);
}

TEST(release_under_unknown_name_drops_plain_reference)
{
    if (memrt__options.check) {
        return; /* the process would abort; test_checking_table.c covers this case */
    }
    memrt_meminfo_t *mi = api->allocate(100);
    hold_meminfo(mi, REFERENCE, "a");
    api->release_as(mi, REFERENCE, "b");
    ck_assert_uint_eq(api->refcount(mi), 1);
    ck_assert_uint_eq(count_holders(mi), 1);
    api->release_as(mi, REFERENCE, NULL);
}

TEST(holder_rows_of_many_meminfos_stay_separate)
{
    static memrt_meminfo_t *mis[MANY];
    char name[16];
    for (size_t i = 0; i < MANY; i++) {
        mis[i] = api->allocate(i);
        snprintf(name, sizeof(name), "%zu", i);
        hold_meminfo(mis[i], REFERENCE, name);
        hold_meminfo(mis[i], REFERENCE, "all");
    }
    for (size_t i = 0; i < MANY; i++) {
        snprintf(name, sizeof(name), "%zu", i);
        ck_assert_uint_eq(count_holders(mis[i]), 2);
        ck_assert_str_eq(read_row(mis[i], 0)->name, name);
        api->release_as(mis[i], REFERENCE, name);
        ck_assert_str_eq(read_row(mis[i], 0)->name, "all");
        api->release_as(mis[i], REFERENCE, "all");
        api->release(mis[i]);
    }
}

TEST(holder_rows_survive_failed_table_growth)
{
    /* For each MemInfo, the first request succeeds and each later request fails. Each later request
     * is for a larger table. */
    static memrt_meminfo_t *mis[MANY];
    memrt_failure_plan_t plan = {.struct_size = sizeof(plan), .nth = 2, .every = 1};
    for (size_t i = 0; i < MANY; i++) {
        mis[i] = api->allocate(i);
        ck_assert_int_eq(api->fail_allocations(&plan), MEMRT_OK);
        hold_meminfo(mis[i], REFERENCE, "a");
        ck_assert_int_eq(api->fail_allocations(NULL), MEMRT_OK);
    }
    for (size_t i = 0; i < MANY; i++) {
        ck_assert_uint_eq(count_holders(mis[i]), 1);
        api->release_as(mis[i], REFERENCE, "a");
        api->release(mis[i]);
    }
}

/// Acquire and release repeatedly, under the name of the thread.
static void hold_and_release(size_t index, void *context)
{
    memrt_meminfo_t *mi = context;
    char name[16];
    snprintf(name, sizeof(name), "%zu", index % 3);
    for (int i = 0; i < 200; i++) {
        REQUIRE(api->acquire_as(mi, REFERENCE, name) == MEMRT_OK);
        REQUIRE(api->holders(mi, NULL, 0, 0) >= 1);
        api->release_as(mi, REFERENCE, name);
    }
}

TEST(concurrent_named_references_leave_correct_refcount)
{
    memrt_meminfo_t *mi = api->allocate(100);
    crew_run(6, hold_and_release, mi);
    ck_assert_uint_eq(count_holders(mi), 0);
    ck_assert_uint_eq(api->refcount(mi), 1);
    api->release(mi);
}

TEST(block_can_be_resized_after_its_named_references_are_released)
{
    char *data = api->block_alloc(NULL, 100);
    memrt_meminfo_t *mi;
    ck_assert_int_eq(api->block_meminfo(data, &mi), MEMRT_OK);
    hold_meminfo(mi, REFERENCE, "loader");
    api->release_as(mi, REFERENCE, "loader");
    api->release(mi);
    data = api->block_realloc(NULL, data, 3000);
    ck_assert_ptr_nonnull(data);
    ck_assert_int_eq(api->block_meminfo(data, &mi), MEMRT_OK);
    ck_assert_uint_eq(count_holders(mi), 0);
    api->release(mi);
    api->block_free(NULL, data, 0);
}

TEST(forked_child_lists_named_references_of_its_parent)
{
    memrt_meminfo_t *mi = api->allocate(100);
    hold_meminfo(mi, REFERENCE, "loader");
    pid_t child = fork();
    if (child == 0) {
        child_start_watchdog();
        _exit(count_holders(mi) == 1 ? 0 : 1);
    }
    ck_assert_int_eq(child_wait(child), 0);
    api->release_as(mi, REFERENCE, "loader");
    api->release(mi);
}

#if MEMRT_DEBUG

/// A thread that adds and removes named references, and that a signal stops at any instruction.
static size_t stopped, resumed, ended, rounds;

static void stop_thread(int signal)
{
    (void)signal;
    size_t turn = memrt__load_relaxed(&resumed);
    memrt__store_release(&stopped, turn + 1);
    while (memrt__load_acquire(&resumed) == turn) {
    }
}

static void *add_and_remove(void *context)
{
    while (memrt__load_acquire(&ended) == 0) {
        REQUIRE(memrt__named_refs_add(1, REFERENCE, "loader"));
        REQUIRE(memrt__named_refs_remove(1, REFERENCE, "loader"));
        memrt__own_add(&rounds, 1);
    }
    return context;
}

/// Fork while the thread is stopped. Returns whether the count of records in the child is right.
static bool fork_while_stopped(pthread_t thread, size_t turn)
{
    ck_assert_int_eq(pthread_kill(thread, SIGUSR1), 0);
    while (memrt__load_acquire(&stopped) != turn) {
    }
    pid_t child = fork();
    if (child == 0) {
        child_start_watchdog();
        _exit(memrt__named_refs_is_valid() ? 0 : 1);
    }
    memrt__store_release(&resumed, turn);
    return child_wait(child) == 0;
}

/// A fork may find a thread between a change of the records and the change of their count.
TEST(forked_child_counts_named_references_anew)
{
    pthread_t thread;
    struct sigaction action = {.sa_handler = stop_thread};
    if (!suite_measures_memory()) {
        return; /* the thread may hold a lock of the tool's malloc, which the fork needs */
    }
    stopped = resumed = ended = rounds = 0;
    ck_assert_int_eq(sigaction(SIGUSR1, &action, NULL), 0);
    ck_assert_int_eq(pthread_create(&thread, NULL, add_and_remove, NULL), 0);
    while (memrt__load_relaxed(&rounds) < 100) { /* then malloc serves the thread without a lock */
    }
    bool right = true;
    for (size_t turn = 1; turn <= FORKS && right; turn++) {
        right = fork_while_stopped(thread, turn);
    }
    memrt__store_release(&ended, 1);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert(right);
}

#endif
