#include "runtime/runtime.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/alloc/adaptors/thread_safe.h"
#include "runtime/alloc/exported.h"
#include "runtime/alloc/heap/central/central_list.h"
#include "runtime/alloc/heap/central/detour.h"
#include "runtime/alloc/heap/handover.h"
#include "runtime/alloc/heap/heap.h"
#include "runtime/alloc/heap/large_cache.h"
#include "runtime/alloc/heap/pages/page_heap.h"
#include "runtime/alloc/heap/purger.h"
#include "runtime/alloc/heap/retention_budget.h"
#include "runtime/alloc/heap/thread_cache.h"
#include "runtime/alloc/mapped.h"
#include "runtime/alloc/placed/pool_fork.h"
#include "runtime/config/options.h"
#include "runtime/cuda/driver.h"
#include "runtime/cuda/memory.h"
#include "runtime/cuda/pinned_cache.h"
#include "runtime/event/guard_sampling.h"
#include "runtime/event/hooks.h"
#include "runtime/event/operation_log.h"
#include "runtime/meminfo/references.h"
#include "runtime/observe/live_set.h"
#include "runtime/observe/named_refs.h"
#include "runtime/observe/sites.h"
#include "runtime/observe/tracking.h"
#include "runtime/os/lock.h"
#include "runtime/os/os.h"
#include "runtime/os/unwind.h"
#include "runtime/policy/fork_accounts.h"
#include "runtime/policy/home.h"
#include "runtime/policy/memory_limit.h"
#include "runtime/policy/policy.h"
#include "runtime/policy/policy_allocators.h"
#include "runtime/policy/policy_table.h"
#include "runtime/policy/reclaim.h"
#include "runtime/policy/scope.h"
#include "runtime/policy/scope_tree.h"
#include "runtime/policy/soft_limit.h"
#include "runtime/pressure/pressure_thread.h"
#include "runtime/report/leak_report.h"
#include "runtime/report/stats_page.h"
#include "runtime/stats/gauges.h"
#include "runtime/stats/stats.h"
#include "runtime/stats/thread_stats.h"
#include "runtime/symbols/symbols.h"
#include "runtime/trace/event_trace.h"

#if MEMRT_DEBUG

static size_t process; /* id of the process whose structures are checked at exit */

bool memrt__runtime_is_valid(void)
{
    return memrt__options_is_valid() && memrt__thread_is_valid() &&
           memrt__thread_cache_is_valid() && memrt__central_list_is_valid() &&
           memrt__handover_is_valid() && memrt__page_heap_is_valid() &&
           memrt__large_cache_is_valid() && memrt__pinned_cache_is_valid() &&
           memrt__retention_budget_is_valid() && memrt__purger_is_valid() &&
           memrt__pressure_is_valid() && memrt__stats_is_valid() && memrt__live_is_valid() &&
           memrt__named_refs_is_valid() && memrt__sites_is_valid() && memrt__trace_is_valid() &&
           memrt__policy_table_is_valid() && memrt__policy_allocators_is_valid() &&
           memrt__reclaim_is_valid() && memrt__scope_tree_is_valid() && memrt__home_is_valid() &&
           memrt__symbols_is_valid();
}

/// Check all structures at exit. A child made without fork handlers, for example by clone(), may
/// find locks held and is not checked.
static void check_at_exit(void)
{
    if (process == memrt__os_process_id() && !memrt__lock_is_mine() && !memrt__runtime_is_valid()) {
        memrt__abort("broken invariant at exit: %s", memrt__invariant_broken());
    }
}

static void register_check(void)
{
    process = memrt__os_process_id();
    (void)atexit(check_at_exit); /* fails only without memory; then nothing is checked */
}

static void follow_fork(void)
{
    process = memrt__os_process_id();
}

#else

static inline void register_check(void)
{
}

static inline void follow_fork(void)
{
}

#endif

static void prepare_fork(void)
{
    memrt__stats_page_pause();
    memrt__pressure_stop();
    memrt__purger_stop();
    memrt__thread_safe_hold();
    memrt__lock_all();
    memrt__unwind_pause();
    memrt__pool_fork_prepare();
}

/// Start the threads that were running before a fork. Runs on an allocating thread, under unknown
/// locks.
static void start_threads(void)
{
    if (memrt__lock_is_forking()) { /* no thread of memrt may start during a fork */
        memrt__gauge_call_once(start_threads);
        return;
    }
    memrt__stats_page_start_in_child();
    memrt__pressure_start();
}

/// Have the threads started by the next larger allocation. A child that does not allocate, for
/// example before exec, gets no threads, and Python sees no threads right after a fork.
static void start_threads_later(void)
{
    if (memrt__pressure_is_wanted() || memrt__stats_page_is_late()) {
        memrt__gauge_call_once(start_threads);
    }
}

static void finish_fork_in_parent(void)
{
    memrt__pool_fork_in_parent();
    memrt__unwind_resume();
    memrt__central_list_settle();
    memrt__unlock_all();
    memrt__thread_safe_release();
    memrt__stats_page_resume();
    start_threads_later();
}

/// Repair a child before another library's fork handler uses memrt there.
static void repair_child(void)
{
    memrt__pool_fork_in_child();
    memrt__detour_forget();
    memrt__handover_forked();
    memrt__live_repair();
    memrt__named_refs_repair();
    memrt__trace_forked();
    memrt__hooks_forked();
    memrt__reclaim_forked();
}

static void finish_fork_in_child(void)
{
    memrt__lock_renew_all();
    memrt__thread_safe_release();
    repair_child();
    memrt__unwind_forked();
    memrt__purger_forked();
    memrt__pressure_forked();
    memrt__thread_forked();
    memrt__stats_forked();
    memrt__fork_accounts_forked();
    memrt__live_forked();
    memrt__driver_forked();
    memrt__stats_page_forked();
    start_threads_later();
    follow_fork();
}

static void start_stats_page(void)
{
    char why[256];
    if (!memrt__stats_page_follow(why, sizeof(why))) {
        memrt__options_warn(why);
    }
}

/// Set the limit and the soft limit of the process by the environment.
static void start_limits(void)
{
    memrt__limit_start(memrt__pressure_start);
    if (memrt__load_relaxed(&memrt__options.limit) != SIZE_MAX &&
        memrt__limit_follow_option() != MEMRT_OK) {
        memrt__options_warn("MEMRT_LIMIT has no effect: this build of memrt has no counters");
    }
    if (memrt__load_relaxed(&memrt__options.soft_limit) != SIZE_MAX &&
        memrt__soft_limit_follow_option() != MEMRT_OK) {
        memrt__store_relaxed(&memrt__options.soft_limit, SIZE_MAX);
        memrt__options_warn(
            "MEMRT_SOFT_LIMIT must be at most MEMRT_LIMIT, in a build with counters: "
            "the value is ignored");
    }
}

static void start_guards(void)
{
    if (!memrt__guard_sampling_start()) {
        memrt__options_warn("MEMRT_GUARD_SAMPLE has no effect: MEMRT_CHECK is on, or the system "
                            "refused memory or the signal handler");
    }
}

static size_t allocator_is_due; /* relaxed; 1: the library of MEMRT_ALLOCATOR is to be loaded */

/// Return NULL, or why the allocator of the option cannot serve the default policy.
static const char *use_allocator(const char *source, char *why, size_t length)
{
    const memrt_allocator_t *table = memrt__exported_allocator(source, why, length);
    if (table == NULL) {
        return why;
    }
    switch (memrt__policy_default_set_allocator(table)) {
    case MEMRT_OK:
        return NULL;
    case MEMRT_EBUSY:
        return "the default policy was used during the load";
    case MEMRT_ENOMEM:
        return "no memory for its guard";
    default:
        return "the table has another version, or lacks alloc or free";
    }
}

/// Load the allocator of the option, once. Runs after the start, because the constructors of the
/// library may use memrt. Another thread that starts memrt at the same time does not wait, because
/// the thread may hold the lock of the loader.
MEMRT__COLD static void load_allocator(void)
{
    char source[MEMRT__TEXT_MAX], why[120], warning[256];
    if (!memrt__cas_relaxed(&allocator_is_due, 1, 0)) {
        return;
    }
    memrt__options_text(&memrt__options.allocator, source);
    const char *failure = use_allocator(source, why, sizeof(why));
    if (failure != NULL) {
        memrt__options_drop_allocator();
        snprintf(
            warning, sizeof(warning),
            "MEMRT_ALLOCATOR must be LIBRARY:SYMBOL of an allocator, got '%.50s' (%.110s): the "
            "value is ignored",
            source, failure);
        memrt__options_warn(warning);
    }
}

static void start_log(void)
{
    memrt__log_choose(memrt__options.log_operations);
    memrt__slow_path_set(MEMRT__SLOW_HOOKS, memrt__options.log);
}

static void start_runtime(void)
{
    memrt__options_read();
    start_log();
    memrt__policy_start();
    memrt__gauges_start();
    memrt__thread_stats_start();
    memrt__scope_start();
    memrt__dtor_start();
    memrt__tracking_start();
    start_guards();
    start_limits();
    /* Fails only without memory; then a child of a threaded process may find locks held. */
    memrt__lock_at_fork(repair_child);
    (void)pthread_atfork(prepare_fork, finish_fork_in_parent, finish_fork_in_child);
    memrt__leak_report_start();
    register_check();
    start_stats_page();
    memrt__store_relaxed(&allocator_is_due, strcmp(memrt__options.allocator, "none") != 0);
    memrt__pressure_start();
    /* Fails only without memory; then the last freed blocks are not verified. */
    if (memrt__options.check) {
        (void)atexit(memrt__policy_verify_dead);
    }
}

void memrt__runtime_start(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, start_runtime);
    if (MEMRT__UNLIKELY(memrt__load_relaxed(&allocator_is_due) != 0)) {
        load_allocator();
    }
}

/// Make all gauges publish their counts. Gauges of other threads publish when these threads next
/// return small blocks, or end.
static void rest_gauges(void)
{
    memrt__thread_reap();
    memrt__stats_rest_gauges();
    memrt__thread_cache_drain_others(memrt__self);
}

/// Set the soft limit of the process to the option's value, or the option back to `before`.
static memrt_status_t follow_soft_limit(size_t before, const char *value, char *why, size_t length)
{
    memrt_status_t status = memrt__soft_limit_follow_option();
    if (status != MEMRT_OK) {
        memrt__store_relaxed(&memrt__options.soft_limit, before);
        snprintf(why, length, "soft_limit must be at most the limit of %zu bytes, got '%.60s'",
                 memrt__level_limit(&memrt__process), value);
    }
    return status;
}

memrt_status_t memrt__runtime_set_option(const char *name, const char *value, char *why,
                                         size_t length)
{
    memrt__lock(MEMRT__RANK_OPTIONS);
    memrt__huge_t before = memrt__huge_of(MEMRT__INHERIT);
    size_t mode_before = memrt__load_relaxed(&memrt__options.peak_mode), mode = mode_before;
    size_t limit = memrt__load_relaxed(&memrt__options.limit);
    size_t soft = memrt__load_relaxed(&memrt__options.soft_limit);
    memrt_status_t status = memrt__options_set(name, value, why, length);
    if (status == MEMRT_OK && limit != memrt__load_relaxed(&memrt__options.limit)) {
        status = memrt__limit_follow_option();
    }
    if (status == MEMRT_OK && memrt__options_is_named(name, &memrt__options.soft_limit)) {
        status = follow_soft_limit(soft, value, why, length);
    }
    if (status == MEMRT_OK) {
        memrt__log_choose(memrt__options.log_operations);
        memrt__heap_follow(before);
        mode = memrt__load_relaxed(&memrt__options.peak_mode);
        if (mode != mode_before && mode != MEMRT__PEAK_BOUNDED) {
            rest_gauges();
        }
        if (!memrt__stats_page_follow(why, length)) {
            memrt__store_relaxed(&memrt__options.share, 0);
            status = MEMRT_EINVAL;
        }
    }
    memrt__unlock(MEMRT__RANK_OPTIONS);
    memrt__pressure_start();
    /* A joined thread may still be ending, as with joins in Python. */
    if (mode != mode_before && mode == MEMRT__PEAK_EXACT) {
        memrt__stats_await_rest();
    }
    return status;
}

size_t memrt__runtime_release_unused(void)
{
    /* Guards of policies give their blocks to the allocators, which may keep pinned memory. */
    size_t bytes = memrt__policy_release_unused();
    return bytes + memrt__memory_release_unused();
}
