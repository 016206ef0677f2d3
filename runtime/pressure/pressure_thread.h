#ifndef MEMRT_PRESSURE_PRESSURE_THREAD_H
#define MEMRT_PRESSURE_PRESSURE_THREAD_H

#include <stdbool.h>
#include <stddef.h>

#include <memrt/process/pressure.h>

#include "runtime/pressure/pressure_level.h"

/// Pressure thread: computes the level of memory pressure, calls the callbacks of the program at a
/// change of the level, frees memory above soft limits, and adapts the memory limit "auto" to the
/// limits of the system. The thread is separate from the purger, because a callback may take long,
/// and the purger must return memory to the system meanwhile.
///
/// Invariant: at most one pressure thread serves, and only while there is work: a callback, a soft
/// limit, or the limit "auto". A fork and process exit end the thread first. Neither waits for a
/// running callback.

/// 1 while a thread serves, otherwise 0. Relaxed; written under the lock of rank PRESSURE.
extern size_t memrt__pressure_runs;

/// Return whether the thread has work: callbacks, soft limits, or a limit that follows the system.
bool memrt__pressure_is_wanted(void);

/// Start the thread if there is work. Takes the lock of rank PRESSURE. No effect during a fork, and
/// if the system refuses a thread.
void memrt__pressure_start(void);

/// Wake the thread for an immediate check. Start the thread if there is work and no thread serves,
/// except during a fork and after process exit began. Under the lock of rank PRESSURE.
///
/// Failure: returns false if the system refuses a thread.
bool memrt__pressure_hurry(void);

/// Copy the state at the last check to `*out`, and return the source of signals. All zero and
/// MEMRT_PRESSURE_HEADROOM while no thread serves. Under the lock of rank PRESSURE.
memrt_pressure_source_t memrt__pressure_last_state(memrt__pressure_state_t *out);

/// Stop the thread before a fork, and wait for the end of the thread, unless a callback runs. The
/// thread of a running callback ends after the callback.
void memrt__pressure_stop(void);

/// Reset the state in a forked child, whose locks are already reset: no thread serves, and all
/// callbacks stay.
void memrt__pressure_forked(void);

#if MEMRT_DEBUG
/// Return whether the invariants of thread and callbacks hold. Takes the lock of rank PRESSURE.
bool memrt__pressure_is_valid(void);
#endif

#endif
