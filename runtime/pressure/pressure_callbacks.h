#ifndef MEMRT_PRESSURE_PRESSURE_CALLBACKS_H
#define MEMRT_PRESSURE_PRESSURE_CALLBACKS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <memrt/process/pressure.h>

#include "runtime/os/lock.h"

/// Lock of the pressure thread and its callbacks, shared with the purger.
#define MEMRT__RANK_PRESSURE MEMRT__RANK_PURGER

/// Table of callbacks for memory pressure. All functions run under the lock of rank PRESSURE,
/// except where stated.

/// Number of registered callbacks. Relaxed; written under the lock.
extern size_t memrt__pressure_callbacks;

/// Condition of the lock, on CLOCK_MONOTONIC: a call has ended, or the thread must check its work.
extern pthread_cond_t memrt__pressure_change;

/// Prepare the condition. Without the lock; repeated calls have no effect.
void memrt__pressure_callbacks_start(void);

/// Add a callback. Returns its id, or 0 if the table is full.
uint64_t memrt__pressure_callbacks_add(memrt_pressure_callback callback, void *context,
                                       memrt_pressure_level_t level);

/// Remove a callback. Returns false if the id is unknown. With `wait`, waits for the end of a
/// running call, except on the thread of the call; the wait releases the lock.
bool memrt__pressure_callbacks_remove(uint64_t id, bool wait);

/// Have callbacks called again for the level in force: there is a new reason.
void memrt__pressure_callbacks_renew(void);

/// Call of a callback.
typedef struct memrt__pressure_call {
    memrt_pressure_callback callback;
    void *context;
    size_t index;    ///< in the table
    uint64_t number; ///< of the call
} memrt__pressure_call_t;

/// Find the next callback, from table index `*at` on, whose level was reached since the last visit.
/// The caller makes the call without the lock, then reports the end. Returns false at the end of
/// the table. A callback with a running call is left out.
bool memrt__pressure_callbacks_begin(size_t *at, memrt_pressure_level_t level,
                                     memrt__pressure_call_t *out);
void memrt__pressure_callbacks_end(const memrt__pressure_call_t *call);

/// Forget running calls, in a forked child with locks made anew.
void memrt__pressure_callbacks_forked(void);

#if MEMRT_DEBUG
/// Return whether the invariants of the table hold.
bool memrt__pressure_callbacks_is_valid(void);
#endif

#endif
