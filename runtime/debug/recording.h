#ifndef MEMRT_DEBUG_RECORDING_H
#define MEMRT_DEBUG_RECORDING_H

#include <stdbool.h>

#include <memrt/status.h>
#include <memrt/trace.h>

#include "runtime/base/atomics.h"
#include "runtime/debug/interned.h"
#include "runtime/debug/ring.h"

/// The file of a trace: its records, and what of the trace did not get into it.
///
/// All of it is called under the lock of rank TRACE, unless it says otherwise. What the system
/// refuses is cut off, so that the file ends with a whole record, and tried again with the next.

/// Numbers whose record is in the file, a bit each.
typedef struct memrt__noted {
    size_t words[MEMRT__INTERNED_MAX / 64]; ///< relaxed
} memrt__noted_t;

typedef struct memrt__recording {
    int file; ///< -1: none
    int error;
    uint64_t end;   ///< of the last whole record
    uint64_t began; ///< memrt__os_now_ns()
    uint64_t events, lost;
    uint64_t overwritten; ///< once the ring is gone
    size_t failing;       ///< relaxed; not 0: the last write was refused
    memrt__ring_t ring;
    memrt__noted_t texts, sites;
} memrt__recording_t;

/// Create the file and write its header. MEMRT_EIO, and `*error` is the system's errno;
/// MEMRT_ENOMEM: no room for the ring. Nothing has changed then.
memrt_status_t memrt__recording_open(memrt__recording_t *recording,
                                     const memrt_trace_options_t *options,
                                     int *error) MEMRT_MUST_CHECK;

/// Write what the ring has and the last record, and close the file.
void memrt__recording_close(memrt__recording_t *recording);

/// Let go of the file as it is: it is another process's.
void memrt__recording_abandon(memrt__recording_t *recording);

/// Forget what a file was that is closed.
void memrt__recording_forget(memrt__recording_t *recording);

/// Whether the last write was refused. Without the lock.
static inline bool memrt__recording_is_failing(const memrt__recording_t *recording)
{
    return memrt__load_relaxed(&recording->failing) != 0;
}

/// Write a text, unless it is there. False: it is not.
bool memrt__recording_text(memrt__recording_t *recording, uint32_t number, const char *text,
                           size_t length);

/// Whether a site is there. Without the lock.
bool memrt__recording_has_site(const memrt__recording_t *recording, uint32_t number);

/// Write a site whose texts are there.
void memrt__recording_site(memrt__recording_t *recording, uint32_t number,
                           const memrt_trace_frame_t *frames, size_t count);

/// Write a policy, whose record is filled in but for its begin. False: it is not there.
bool memrt__recording_policy(memrt__recording_t *recording, memrt_trace_policy_t *policy);

/// Write events of a thread, or put them into the ring.
void memrt__recording_events(memrt__recording_t *recording, uint32_t thread,
                             const memrt_trace_event_t *events, size_t count);

/// All but `on` and struct_size.
void memrt__recording_stats(const memrt__recording_t *recording, memrt_trace_stats_t *out);

#endif
