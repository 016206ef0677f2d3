#ifndef MEMRT_TRACE_EVENT_BUFFER_H
#define MEMRT_TRACE_EVENT_BUFFER_H

#include <stdbool.h>

#include <memrt/observe/trace.h>
#include <memrt/observe/trace_file.h>
#include <memrt/status.h>

#include "runtime/base/atomics.h"
#include "runtime/observe/intern_table.h"
#include "runtime/trace/event_ring.h"

/// Trace file: writes the records of an event trace to a file, and counts lost events.
///
/// Callers hold the lock of rank TRACE, unless the comment of a function says "without the lock".
/// After a refused write the file is cut back to its last whole record. The next record is then
/// tried in the same place.

/// Set of numbers whose record is in the file, one bit each.
typedef struct memrt__number_set {
    size_t words[MEMRT__INTERNED_MAX / 64]; ///< relaxed
} memrt__number_set_t;

typedef struct memrt__event_buffer {
    int file;       ///< file descriptor; -1: none
    int error;      ///< errno of the last refused write
    uint64_t end;   ///< offset of the end of the last whole record
    uint64_t began; ///< start of the trace, memrt__os_now_ns()
    uint64_t events, lost;
    uint64_t overwritten; ///< set when the ring is dropped
    size_t failing;       ///< relaxed; not 0: the last write was refused
    memrt__event_ring_t ring;
    memrt__number_set_t texts, sites;
} memrt__event_buffer_t;

/// Create the file and write its header. Failure: returns MEMRT_EIO, with the system's errno in
/// `*error`, or MEMRT_ENOMEM, without memory for the ring. Then nothing has changed.
memrt_status_t memrt__event_buffer_open(memrt__event_buffer_t *recording,
                                        const memrt_trace_options_t *options,
                                        int *error) MEMRT_MUST_CHECK;

/// Write the events of the ring and the end record, and close the file.
void memrt__event_buffer_close(memrt__event_buffer_t *recording);

/// Drop the ring and close the file without an end record. For a forked child: the file belongs to
/// the parent.
void memrt__event_buffer_abandon(memrt__event_buffer_t *recording);

/// Clear the figures of a closed file.
void memrt__event_buffer_forget(memrt__event_buffer_t *recording);

/// Return whether the last write was refused. Without the lock.
static inline bool memrt__event_buffer_is_failing(const memrt__event_buffer_t *recording)
{
    return memrt__load_relaxed(&recording->failing) != 0;
}

/// Write a text record, unless the file has the text. Returns whether the file has the text now.
bool memrt__event_buffer_text(memrt__event_buffer_t *recording, uint32_t number, const char *text,
                              size_t length);

/// Return whether the file has a site. Without the lock.
bool memrt__event_buffer_has_site(const memrt__event_buffer_t *recording, uint32_t number);

/// Write a site record. The file must have the texts of the site. A refused write leaves the site
/// unrecorded.
void memrt__event_buffer_site(memrt__event_buffer_t *recording, uint32_t number,
                              const memrt_trace_frame_t *frames, size_t count);

/// Write a policy record. The caller fills in all members except `record`. Returns false if the
/// write was refused.
bool memrt__event_buffer_policy(memrt__event_buffer_t *recording, memrt_trace_policy_t *policy);

/// Write events of a thread to the file, or to the ring if there is one.
void memrt__event_buffer_events(memrt__event_buffer_t *recording, uint32_t thread,
                                const memrt_trace_event_t *events, size_t count);

/// Fill in all members of `out`, except `on` and `struct_size`.
void memrt__event_buffer_stats(const memrt__event_buffer_t *recording, memrt_trace_stats_t *out);

#if MEMRT_DEBUG
/// Return whether the invariants of a trace file and its ring hold.
bool memrt__event_buffer_is_valid(const memrt__event_buffer_t *recording);
#endif

#endif
