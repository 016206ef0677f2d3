#include "runtime/policy/reclaim.h"

#include <limits.h>
#include <pthread.h>
#include <stdint.h>

#include "runtime/base/shield.h"
#include "runtime/base/slow_path.h"
#include "runtime/os/latency.h"
#include "runtime/os/lock.h"
#include "runtime/os/os.h"
#include "runtime/policy/memory_limit.h"
#include "runtime/policy/policy_allocators.h"

/// A registered callback, or a free entry.
typedef struct entry {
    memrt_reclaim_fn function; ///< NULL: removed or never used; free without runs
    void *context;
    int priority;
    uint64_t number; ///< order of addition, from 1 on, never reused
    size_t runs;     ///< threads inside of the callback
} entry_t;

/* Under the lock of rank POLICIES: */
static entry_t entries[MEMRT_RECLAIM_MAX];
static uint64_t last_number;

#define PATIENCE MEMRT__SECOND /* maximum of one wait */

static pthread_cond_t run_ended;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static MEMRT__THREAD_LOCAL bool in_round;     /* the thread reclaims memory */
static MEMRT__THREAD_LOCAL entry_t *run_here; /* callback that the thread runs; NULL: none */

static void make_condition(void)
{
    memrt__lock_condition(&run_ended);
}

static entry_t *find_entry(memrt_reclaim_fn function, const void *context)
{
    MEMRT__ASSERT_HELD(MEMRT__RANK_POLICIES);
    for (size_t i = 0; i < MEMRT_RECLAIM_MAX; i++) {
        if (entries[i].function == function && entries[i].context == context) {
            return &entries[i];
        }
    }
    return NULL;
}

static entry_t *find_free_entry(void)
{
    MEMRT__ASSERT_HELD(MEMRT__RANK_POLICIES);
    for (size_t i = 0; i < MEMRT_RECLAIM_MAX; i++) {
        if (entries[i].function == NULL && entries[i].runs == 0) {
            return &entries[i];
        }
    }
    return NULL;
}

static memrt_status_t add_entry(const entry_t *fresh)
{
    if (find_entry(fresh->function, fresh->context) != NULL) {
        return MEMRT_EINVAL;
    }
    entry_t *entry = find_free_entry();
    if (entry == NULL) {
        return MEMRT_ELIMIT;
    }
    *entry = *fresh;
    entry->number = ++last_number;
    return MEMRT_OK;
}

memrt_status_t memrt__reclaim_add(memrt_reclaim_fn function, void *context, int priority)
{
    entry_t fresh = {.function = function, .context = context, .priority = priority};
    if (function == NULL) {
        return MEMRT_EINVAL;
    }
    memrt__lock(MEMRT__RANK_POLICIES);
    memrt_status_t status = add_entry(&fresh);
    memrt__unlock(MEMRT__RANK_POLICIES);
    return status;
}

/// Wait until no thread runs the removed callback with this number. The lock is free meanwhile, so
/// another callback may get the entry.
static void await_runs(const entry_t *entry, uint64_t number)
{
    while (entry->number == number && entry->runs != 0) {
        (void)memrt__lock_wait(MEMRT__RANK_POLICIES, &run_ended, memrt__os_now_ns() + PATIENCE);
    }
}

static memrt_status_t remove_entry(entry_t *entry)
{
    if (entry == NULL) {
        return MEMRT_ENOENT;
    }
    if (run_here != NULL && entry->runs != (entry == run_here)) {
        return MEMRT_EBUSY;
    }
    entry->function = NULL;
    if (run_here == NULL) {
        await_runs(entry, entry->number);
    }
    return MEMRT_OK;
}

memrt_status_t memrt__reclaim_remove(memrt_reclaim_fn function, void *context)
{
    if (function == NULL) {
        return MEMRT_ENOENT;
    }
    pthread_once(&once, make_condition);
    memrt__lock(MEMRT__RANK_POLICIES);
    memrt_status_t status = remove_entry(find_entry(function, context));
    memrt__unlock(MEMRT__RANK_POLICIES);
    return status;
}

/// A round of callbacks on one thread, with the place of the latest callback.
typedef struct round {
    size_t wanted;
    uint64_t newest; ///< number of the last callback of the round
    int priority;
    uint64_t number;
} round_t;

static bool is_before(const entry_t *a, const entry_t *b)
{
    return a->priority < b->priority || (a->priority == b->priority && a->number < b->number);
}

/// Return the next callback of a round, or NULL. Under the lock of rank POLICIES.
static entry_t *find_next(const round_t *round)
{
    entry_t latest = {.priority = round->priority, .number = round->number}, *next = NULL;
    for (size_t i = 0; i < MEMRT_RECLAIM_MAX; i++) {
        entry_t *entry = &entries[i];
        if (entry->function != NULL && entry->number <= round->newest &&
            is_before(&latest, entry) && (next == NULL || is_before(entry, next))) {
            next = entry;
        }
    }
    return next;
}

/// Return whether the callback may have freed memory.
static bool call_back(entry_t *entry, memrt_reclaim_fn function, void *context, size_t wanted)
{
    MEMRT__SHIELD;
    MEMRT__TIMED(MEMRT_LATENCY_RECLAIM);
    run_here = entry;
    size_t freed = function(context, wanted);
    run_here = NULL;
    return freed != MEMRT_RECLAIM_NOTHING;
}

static void end_run(entry_t *entry)
{
    memrt__lock(MEMRT__RANK_POLICIES);
    MEMRT__ASSERT(entry->runs != 0);
    if (--entry->runs == 0) {
        pthread_cond_broadcast(&run_ended);
    }
    memrt__unlock(MEMRT__RANK_POLICIES);
}

/// Run the next callback of a round. `*helped`: whether the callback may have freed memory. Returns
/// false without a further callback.
static bool run_next(round_t *round, bool *helped)
{
    memrt__lock(MEMRT__RANK_POLICIES);
    entry_t *entry = find_next(round);
    if (entry == NULL) {
        memrt__unlock(MEMRT__RANK_POLICIES);
        return false;
    }
    memrt_reclaim_fn function = entry->function;
    void *context = entry->context;
    round->priority = entry->priority;
    round->number = entry->number;
    entry->runs++;
    memrt__unlock(MEMRT__RANK_POLICIES);
    *helped = call_back(entry, function, context, round->wanted);
    end_run(entry);
    return true;
}

static bool run_round(size_t wanted, memrt__attempt_fn attempt, void *context)
{
    round_t round = {.wanted = wanted, .priority = INT_MIN};
    bool done = false, helped;
    pthread_once(&once, make_condition);
    memrt__lock(MEMRT__RANK_POLICIES);
    round.newest = last_number;
    memrt__unlock(MEMRT__RANK_POLICIES);
    while (!done && run_next(&round, &helped)) {
        done = helped && attempt(context);
    }
    return done;
}

/// Return whether the system may lack memory. Cached memory counts for no limit, and an injected
/// failure has no cause.
static bool may_lack_memory(const memrt__account_t *account, size_t wanted)
{
    return memrt__limit_has_room(account, wanted) && !memrt__is_slow(MEMRT__SLOW_FAILURE);
}

/// Return whether freed memory may help. Address spaces have at most 56 bits.
static bool may_help(size_t wanted)
{
    return wanted >> (sizeof(wanted) * CHAR_BIT - CHAR_BIT) == 0;
}

bool memrt__reclaim(const memrt__account_t *account, size_t wanted, memrt__attempt_fn attempt,
                    void *context)
{
    if (in_round || memrt__lock_is_mine() || !may_help(wanted)) {
        return false;
    }
    in_round = true;
    bool done =
        may_lack_memory(account, wanted) && memrt__policy_release_unused() != 0 && attempt(context);
    done = done || run_round(wanted, attempt, context);
    in_round = false;
    return done;
}

void memrt__reclaim_until(size_t wanted, memrt__attempt_fn attempt, void *context)
{
    MEMRT__ASSERT(!in_round);
    in_round = true;
    (void)run_round(wanted, attempt, context);
    in_round = false;
}

void memrt__reclaim_forked(void)
{
    for (size_t i = 0; i < MEMRT_RECLAIM_MAX; i++) {
        entries[i].runs = &entries[i] == run_here;
    }
    make_condition();
}

#if MEMRT_DEBUG

bool memrt__reclaim_is_valid(void)
{
    bool valid = true;
    memrt__lock(MEMRT__RANK_POLICIES);
    for (size_t i = 0; i < MEMRT_RECLAIM_MAX; i++) {
        const entry_t *entry = &entries[i];
        valid = valid && MEMRT__HOLDS(entry->number <= last_number) &&
                MEMRT__HOLDS(entry->function == NULL ||
                             find_entry(entry->function, entry->context) == entry);
    }
    memrt__unlock(MEMRT__RANK_POLICIES);
    return valid;
}

#endif
