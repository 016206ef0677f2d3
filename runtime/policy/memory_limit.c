#include "runtime/policy/memory_limit.h"

#include <sched.h>
#include <string.h>

#include "runtime/alloc/heap/thread_cache.h"
#include "runtime/base/size.h"
#include "runtime/config/options.h"
#include "runtime/os/latency.h"
#include "runtime/os/lock.h"
#include "runtime/os/os.h"
#include "runtime/policy/policy_allocators.h"
#include "runtime/policy/scope_tree.h"
#include "runtime/stats/gauges.h"
#include "runtime/stats/promise.h"
#include "runtime/stats/stats.h"

/// Time to wait for other threads to return promised bytes.
#define PATIENCE MEMRT__MS

/// Part of the limit of the process that cached memory may have without a release.
#define CACHED_SHARE 64u

/// Bytes that may be admitted before cached memory is measured again, as a signed number. Relaxed.
static size_t unmeasured;

/// Function of memrt__limit_start().
static void (*wake_thread)(void);

void memrt__limit_start(void (*wake)(void))
{
    wake_thread = wake;
}

void memrt__limit_wake(void)
{
    wake_thread();
}

memrt__level_t *memrt__limit_level(const memrt_policy_t *policy, const memrt_scope_t *scope)
{
    if (policy != NULL) {
        return &policy->base->level;
    }
    return scope == NULL ? &memrt__process : (memrt__level_t *)&scope->level;
}

memrt_status_t memrt__limit_change(memrt__level_t *level, size_t before, size_t bytes,
                                   void (*set)(memrt__level_t *level, size_t bytes))
{
    if (!MEMRT_COUNTERS) {
        return MEMRT_ENOTSUP;
    }
    if (before == bytes) {
        return MEMRT_OK; /* each entry of a scope repeats its limit */
    }
    set(level, bytes);
    memrt__store_relaxed(&unmeasured, 0);
    memrt__thread_reap();
    memrt__stats_rest_gauges();
    memrt__thread_cache_drain_others(memrt__thread_or_null());
    return MEMRT_OK;
}

static memrt_status_t set_limit(memrt__level_t *level, size_t bytes)
{
    return memrt__limit_change(level, memrt__level_limit(level), bytes, memrt__level_set_limit);
}

/// Set the limit of the process. The lock orders the call and memrt__limit_follow_system().
static memrt_status_t set_process_limit(size_t bytes)
{
    memrt__lock(MEMRT__RANK_OPTIONS);
    memrt_status_t status = set_limit(&memrt__process, bytes);
    if (status == MEMRT_OK) {
        memrt__store_relaxed(&memrt__options.limit, bytes);
    }
    memrt__unlock(MEMRT__RANK_OPTIONS);
    return status;
}

memrt_status_t memrt__limit_set(memrt_policy_t *policy, memrt_scope_t *scope, uint64_t bytes)
{
    if (policy != NULL && scope != NULL) {
        return MEMRT_EINVAL;
    }
    memrt__level_t *level = memrt__limit_level(policy, scope);
    return level == &memrt__process ? set_process_limit((size_t)bytes)
                                    : set_limit(level, (size_t)bytes);
}

size_t memrt__limit_of_system(void)
{
    memrt__os_limit_t limits[MEMRT__OS_LIMITS];
    size_t count = memrt__os_limits(limits), lowest = SIZE_MAX;
    for (size_t i = 0; i < count; i++) {
        lowest = memrt__size_min(lowest, (size_t)limits[i].bytes);
    }
    return lowest;
}

/// Return 90 % of the memory that the system allows, less resident memory that is not memrt's.
static size_t choose_automatic_limit(size_t allowed)
{
    memrt_stats_t stats = {.struct_size = sizeof(stats)};
    memrt__stats_read(&memrt__process, &stats);
    size_t own = (size_t)stats.live + memrt__policy_cached(NULL), resident = memrt__os_resident();
    size_t other = resident > own ? resident - own : 0, most = allowed / 10 * 9;
    return most > other ? most - other : 0;
}

/// Limit of the system at the last computation of the limit of the process. Under the lock of rank
/// OPTIONS, and at the start of the runtime.
static size_t followed;

bool memrt__limit_is_relative(size_t option)
{
    return option == MEMRT__LIMIT_AUTO || option - MEMRT__LIMIT_PERCENT - 1 < 100;
}

size_t memrt__limit_choose(size_t option, size_t allowed)
{
    return option == MEMRT__LIMIT_AUTO ? choose_automatic_limit(allowed)
                                       : allowed / 100 * (option - MEMRT__LIMIT_PERCENT);
}

memrt_status_t memrt__limit_follow_option(void)
{
    size_t limit = memrt__load_relaxed(&memrt__options.limit);
    if (memrt__limit_is_relative(limit)) {
        followed = memrt__limit_of_system();
        limit = memrt__limit_choose(limit, followed);
    }
    return set_limit(&memrt__process, limit);
}

bool memrt__limit_follows_system(void)
{
    return MEMRT_COUNTERS && memrt__limit_is_relative(memrt__load_relaxed(&memrt__options.limit));
}

void memrt__limit_follow_system(void)
{
    memrt__lock(MEMRT__RANK_OPTIONS);
    if (memrt__limit_follows_system() && memrt__limit_of_system() != followed) {
        (void)!memrt__limit_follow_option(); /* fails only without counters */
    }
    memrt__unlock(MEMRT__RANK_OPTIONS);
}

/// Read the bytes that are promised or reported, but not in use. Other threads may change both.
static uint64_t read_held(const memrt__level_t *level, uint64_t live)
{
    size_t used = memrt__level_used(level);
    return (ptrdiff_t)(used - live) < 0 ? 0 : used - live;
}

memrt_status_t memrt__limit_read(const memrt_policy_t *policy, const memrt_scope_t *scope,
                                 memrt_limit_t *out)
{
    if ((policy != NULL && scope != NULL) || out->struct_size < sizeof(out->struct_size)) {
        return MEMRT_EINVAL;
    }
    const memrt__level_t *level = memrt__limit_level(policy, scope);
    memrt_stats_t stats = {.struct_size = sizeof(stats)};
    memrt__stats_read(level, &stats);
    memrt_limit_t limit = {.struct_size = out->struct_size,
                           .limit = memrt__level_limit(level),
                           .live = stats.live,
                           .held = read_held(level, stats.live),
                           .soft = memrt__level_soft(level),
                           .rises = memrt__load_relaxed(&level->soft_rises)};
    memcpy(out, &limit, memrt__size_min(out->struct_size, sizeof(limit)));
    return MEMRT_OK;
}

/// Release cached memory if cached and live bytes together exceed the limit or soft limit of the
/// process, and enough is cached to be worth the work. Allow admissions of half the rest before the
/// next call.
static void bound_cached_memory(size_t limit)
{
    size_t cached = memrt__policy_cached(NULL);
    size_t room = memrt__level_room_below(&memrt__process, limit);
    if (cached > room && cached > limit / CACHED_SHARE) {
        cached -= memrt__size_min(cached, memrt__policy_release_unused());
    }
    size_t rest = room > cached ? room - cached : 0;
    memrt__store_relaxed(&unmeasured, memrt__size_max(rest / 2, limit / CACHED_SHARE / 4));
}

/// Bound cached memory before a thread uses `bytes`, if enough bytes were admitted since the last
/// time. Live and cached bytes together grow by no more than the admitted bytes and their rounding.
static void note_admission(size_t bytes)
{
    size_t limit = memrt__level_lowest_limit(&memrt__process);
    if (limit != SIZE_MAX &&
        (ptrdiff_t)memrt__fetch_add_relaxed(&unmeasured, (size_t)0 - bytes) < (ptrdiff_t)bytes) {
        bound_cached_memory(limit);
    }
}

/// Wake the pressure thread if a promise exceeded a soft limit.
static void wake_at_rise(void)
{
    if (MEMRT__UNLIKELY(memrt__load_relaxed(&memrt__soft_noted) != 0) &&
        memrt__cas_relaxed(&memrt__soft_noted, 1, 0)) {
        memrt__limit_wake();
    }
}

bool memrt__limit_ensure_slow(memrt__shard_t *shard, memrt__account_t *account, size_t bytes)
{
    if (memrt__shard_can_grow(shard, bytes)) {
        return true;
    }
    note_admission(bytes + MEMRT__QUANTUM_MAX); /* may end promises, so the new one comes last */
    bool fits = memrt__gauge_ensure(shard, account, bytes, false);
    wake_at_rise();
    return fits;
}

/// Admit a block if the limits have room now.
static bool try_admit(memrt__account_t *account, size_t bytes)
{
    memrt__tally_t tally = memrt__tally(account);
    return tally.own ? memrt__gauge_ensure(tally.shard, account, bytes, true)
                     : memrt__promise_shared(account, bytes);
}

static bool has_room(const memrt__level_t *level, size_t bytes)
{
    while (level != NULL && memrt__level_room(level) >= bytes) {
        level = level->up;
    }
    return level == NULL;
}

bool memrt__limit_has_room(const memrt__account_t *account, size_t bytes)
{
    return has_room(account->policy, bytes) && has_room(account->scope, bytes);
}

/// Admit a block when other threads return promised bytes. Threads that allocate and free do so at
/// their next free of a small block.
static bool await_room(memrt__account_t *account, size_t bytes)
{
    uint64_t until = memrt__os_now_ns() + PATIENCE;
    memrt__thread_cache_drain_others(memrt__thread_or_null());
    do {
        sched_yield();
        if (memrt__limit_has_room(account, bytes) && try_admit(account, bytes)) {
            return true;
        }
    } while (memrt__os_now_ns() < until);
    return false;
}

/// Admit a block after unused bytes were recalled, from own gauges and from other threads.
static bool recall_and_admit(memrt__account_t *account, size_t bytes)
{
    MEMRT__TIMED(MEMRT_LATENCY_RECALL);
    memrt__thread_reap();
    memrt__stats_rest_gauges();
    return try_admit(account, bytes) || await_room(account, bytes);
}

bool memrt__limit_admit_slow(memrt__account_t *account, size_t bytes)
{
    if (bytes > (size_t)PTRDIFF_MAX / 2) {
        return false;
    }
    bool admitted = try_admit(account, bytes) || recall_and_admit(account, bytes);
    if (admitted) {
        note_admission(bytes);
        wake_at_rise();
    }
    return admitted;
}

void memrt__limit_drop_slow(memrt__account_t *account, size_t bytes)
{
    memrt__tally_t tally = memrt__tally(account);
    if (tally.own) {
        memrt__gauge_drop(tally.shard, account, bytes);
    } else {
        memrt__promise_end_shared(account, bytes);
    }
}
