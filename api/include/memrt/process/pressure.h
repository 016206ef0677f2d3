#ifndef MEMRT_PRESSURE_H
#define MEMRT_PRESSURE_H

/// Memory pressure: how near the process is to a memory limit, and callbacks when a limit comes
/// near.

#include <stddef.h>
#include <stdint.h>

#include <memrt/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Level of memory pressure, from the part of the nearest limit that is in use. A level begins at
/// its percentage, and ends 5 percentage points below. For example, MEMRT_PRESSURE_MEDIUM begins at
/// 90 % and ends below 85 %.
///
/// Limits are: the limit of the process (limit_set), the limits of control groups, the limit of the
/// address space, and the memory of the machine. The nearest limit is the limit with the highest
/// percentage in use. File pages that the system can drop at once do not count.
///
/// A signal of the system that reclaims memory raises the level to MEMRT_PRESSURE_MEDIUM or
/// MEMRT_PRESSURE_CRITICAL for 5 seconds, if at least 50 % of the nearest limit is in use.
///
/// A use above a soft limit (limit_set_soft) raises the level to MEMRT_PRESSURE_MEDIUM.
typedef enum memrt_pressure_level {
    MEMRT_PRESSURE_NONE = 0,
    MEMRT_PRESSURE_LOW = 1,     ///< from 80 %
    MEMRT_PRESSURE_MEDIUM = 2,  ///< from 90 %
    MEMRT_PRESSURE_CRITICAL = 3 ///< from 95 %
} memrt_pressure_level_t;

/// Signal of the system that is in use besides the percentages. The first signal that the system
/// offers is used.
typedef enum memrt_pressure_source {
    MEMRT_PRESSURE_HEADROOM = 0, ///< percentages alone
    MEMRT_PRESSURE_STALL = 1,    ///< stalls of 150 ms (PSI): medium
    MEMRT_PRESSURE_EVENTS = 2,   ///< memory.events of control groups, version 2: high and max are
                                 ///< medium, oom is critical
    MEMRT_PRESSURE_NOTICE = 3    ///< memory.pressure_level of version 1: medium, critical
} memrt_pressure_source_t;

/// Memory pressure now. Set `struct_size` before a read.
typedef struct memrt_pressure {
    size_t struct_size;  ///< sizeof(memrt_pressure_t)
    uint64_t level;      ///< memrt_pressure_level_t
    uint64_t source;     ///< memrt_pressure_source_t; MEMRT_PRESSURE_HEADROOM without callbacks
    uint64_t limit;      ///< nearest limit in bytes; UINT64_MAX: no limit is known
    uint64_t used;       ///< bytes in use under this limit
    uint64_t headroom;   ///< bytes below this limit
    const char *of;      ///< owner of this limit, such as "for the control group"; static text
    uint64_t above_soft; ///< soft limits that are exceeded
} memrt_pressure_t;

/// Read the memory pressure. Reads files of the system; allocates nothing.
/// Threads: any.
/// Failure: MEMRT_EINVAL if struct_size is not set.
typedef memrt_status_t (*memrt_pressure_read_fn)(memrt_pressure_t *out);

/// Callback for memory pressure. `level` is a memrt_pressure_level_t.
typedef void (*memrt_pressure_callback)(void *context, uint64_t level);

/// Maximum number of callbacks.
#define MEMRT_PRESSURE_CALLBACKS 32

/// Have `callback` called when the level rises to `level` or above, and at each further rise. If
/// the level is reached at the registration, the first call follows at once. Each rise above a soft
/// limit also calls the callbacks of the levels in force. `*id` identifies the registration.
///
/// Callbacks run on a thread of memrt, one after the other, and no lock of memrt is held: a
/// callback may allocate, free, set limits, and add or remove callbacks. The thread exists only
/// while callbacks are registered, a soft limit exists, or the limit of the process is "auto" or a
/// percentage. The thread has all signals blocked. The thread reads the limits each 500 ms, and
/// each 100 ms from 70 % of the nearest limit on, or above a soft limit. When the level rises to
/// MEMRT_PRESSURE_MEDIUM or above, memrt first releases cached memory.
///
/// Fork:    registrations continue in the child, where the thread starts again once the child
///          allocates. A fork waits for the thread, but not for a callback. A child that is forked
///          inside a callback must not return from the callback.
/// Exit:    no callback begins after the library's exit handler. A running callback is not awaited.
/// Threads: any.
/// Failure: MEMRT_EINVAL if `callback` or `id` is NULL, or `level` is not MEMRT_PRESSURE_LOW to
///          MEMRT_PRESSURE_CRITICAL; MEMRT_ELIMIT if MEMRT_PRESSURE_CALLBACKS are registered;
///          MEMRT_ENOMEM if the system refuses a thread.
typedef memrt_status_t (*memrt_pressure_add_fn)(memrt_pressure_callback callback, void *context,
                                                memrt_pressure_level_t level, uint64_t *id);

/// Remove a callback, and wait for the end of a running call. Inside the callback, the function
/// does not wait.
/// Threads: any.
/// Failure: MEMRT_ENOENT if the registration does not exist.
typedef memrt_status_t (*memrt_pressure_remove_fn)(uint64_t id);

#ifdef __cplusplus
}
#endif

#endif
