#include "runtime/pressure/pressure_callbacks.h"

#include "runtime/base/atomics.h"
#include "runtime/base/check.h"
#include "runtime/os/lock.h"
#include "runtime/os/os.h"

/// Registered callback.
typedef struct entry {
    uint64_t id; ///< 0: none
    memrt_pressure_callback callback;
    void *context;
    memrt_pressure_level_t level; ///< lowest level of a call
    memrt_pressure_level_t seen;  ///< level at the last check
    uint64_t call;                ///< number of the running call; 0: none. Keeps the entry in use
    pthread_t caller;             ///< thread of the running call
} entry_t;

size_t memrt__pressure_callbacks;

/* Under the lock of rank PRESSURE: */
static entry_t entries[MEMRT_PRESSURE_CALLBACKS];
static uint64_t last_id, last_call;

pthread_cond_t memrt__pressure_change;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void make_condition(void)
{
    memrt__lock_condition(&memrt__pressure_change);
}

void memrt__pressure_callbacks_start(void)
{
    pthread_once(&once, make_condition);
}

/// Return the entry with an id; 0: an unused entry. NULL if there is none.
static entry_t *find_entry(uint64_t id)
{
    MEMRT__ASSERT_HELD(MEMRT__RANK_PRESSURE);
    for (size_t i = 0; i < MEMRT_PRESSURE_CALLBACKS; i++) {
        if (entries[i].id == id && (id != 0 || entries[i].call == 0)) {
            return &entries[i];
        }
    }
    return NULL;
}

static void add_to_count(size_t change)
{
    memrt__store_relaxed(&memrt__pressure_callbacks,
                         memrt__load_relaxed(&memrt__pressure_callbacks) + change);
}

uint64_t memrt__pressure_callbacks_add(memrt_pressure_callback callback, void *context,
                                       memrt_pressure_level_t level)
{
    entry_t *entry = find_entry(0);
    if (entry == NULL) {
        return 0;
    }
    *entry = (entry_t){.id = ++last_id, .callback = callback, .context = context, .level = level};
    add_to_count(1);
    return entry->id;
}

#define PATIENCE MEMRT__SECOND /* maximum of one wait */

/// Wait for the end of a running call, except on the thread of the call.
static void await_call(const entry_t *entry)
{
    uint64_t call = entry->call;
    while (call != 0 && entry->call == call && !pthread_equal(entry->caller, pthread_self())) {
        (void)memrt__lock_wait(MEMRT__RANK_PRESSURE, &memrt__pressure_change,
                               memrt__os_now_ns() + PATIENCE);
    }
}

bool memrt__pressure_callbacks_remove(uint64_t id, bool wait)
{
    entry_t *entry = id == 0 ? NULL : find_entry(id);
    if (entry == NULL) {
        return false;
    }
    entry->id = 0;
    add_to_count((size_t)-1);
    if (wait) {
        await_call(entry);
    }
    return true;
}

void memrt__pressure_callbacks_renew(void)
{
    MEMRT__ASSERT_HELD(MEMRT__RANK_PRESSURE);
    for (size_t i = 0; i < MEMRT_PRESSURE_CALLBACKS; i++) {
        entries[i].seen = MEMRT_PRESSURE_NONE;
    }
}

bool memrt__pressure_callbacks_begin(size_t *at, memrt_pressure_level_t level,
                                     memrt__pressure_call_t *out)
{
    MEMRT__ASSERT_HELD(MEMRT__RANK_PRESSURE);
    while (*at < MEMRT_PRESSURE_CALLBACKS) {
        entry_t *entry = &entries[*at];
        size_t index = (*at)++;
        if (entry->id == 0 || entry->call != 0) {
            continue;
        }
        bool risen = level > entry->seen && level >= entry->level;
        entry->seen = level;
        if (risen) {
            entry->call = ++last_call;
            entry->caller = pthread_self();
            *out = (memrt__pressure_call_t){entry->callback, entry->context, index, entry->call};
            return true;
        }
    }
    return false;
}

void memrt__pressure_callbacks_end(const memrt__pressure_call_t *call)
{
    MEMRT__ASSERT_HELD(MEMRT__RANK_PRESSURE);
    entry_t *entry = &entries[call->index];
    if (entry->call == call->number) { /* not in a child that was forked by the callback */
        entry->call = 0;
        pthread_cond_broadcast(&memrt__pressure_change);
    }
}

void memrt__pressure_callbacks_forked(void)
{
    make_condition();
    for (size_t i = 0; i < MEMRT_PRESSURE_CALLBACKS; i++) {
        entries[i].call = 0;
    }
}

#if MEMRT_DEBUG

bool memrt__pressure_callbacks_is_valid(void)
{
    size_t count = 0;
    MEMRT__ASSERT_HELD(MEMRT__RANK_PRESSURE);
    for (size_t i = 0; i < MEMRT_PRESSURE_CALLBACKS; i++) {
        count += entries[i].id != 0;
    }
    return MEMRT__HOLDS(memrt__load_relaxed(&memrt__pressure_callbacks) == count) &&
           MEMRT__HOLDS(last_id >= count);
}

#endif
