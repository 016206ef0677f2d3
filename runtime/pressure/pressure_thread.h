#ifndef MEMRT_PRESSURE_PRESSURE_THREAD_H
#define MEMRT_PRESSURE_PRESSURE_THREAD_H

#include <stdbool.h>
#include <stddef.h>

#include <memrt/process/pressure.h>

#include "runtime/pressure/pressure_level.h"

/// Pressure thread: reads the limits of the process, calls callbacks for memory pressure, and
/// adapts the limit "auto" to the limits of the system. The thread is separate from the purger,
/// because callbacks may take long, and memory must go back meanwhile. The thread exists only while
/// there is work. A fork and process exit stop the thread first, except in a callback.

/// Nonzero while a thread serves. Relaxed; written under the lock of rank PRESSURE.
extern size_t memrt__pressure_runs;

/// Return whether the thread has work: callbacks, or a limit that follows the system.
bool memrt__pressure_is_wanted(void);

/// Start the thread if there is work. The caller may hold any lock of a lower rank. No effect
/// during a fork, and where the system refuses a thread.
void memrt__pressure_start(void);

/// Start the thread unless a thread serves, and have the thread check its work now. Returns false
/// if the system refuses a thread. No effect during a fork and after the end of the process began.
/// Under the lock of rank PRESSURE.
bool memrt__pressure_hurry(void);

/// Read the state of the level, and the source of signals. Under the lock of rank PRESSURE.
memrt_pressure_source_t memrt__pressure_watched(memrt__pressure_state_t *out);

/// Stop the thread before a fork, and wait for its end, except in a callback.
void memrt__pressure_stop(void);

/// Reset the state in a forked child, with locks made anew: no thread runs, and all callbacks stay.
void memrt__pressure_forked(void);

#if MEMRT_DEBUG
/// Return whether the invariants of thread and callbacks hold. Takes the lock of rank PRESSURE.
bool memrt__pressure_is_valid(void);
#endif

#endif
