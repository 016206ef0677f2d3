#ifndef MEMRT_TRACE_H
#define MEMRT_TRACE_H

/// Event traces: every allocation as an event in a file.

#include <stddef.h>
#include <stdint.h>

#include <memrt/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Settings of an event trace. Set `struct_size` and `path`; zero in any other member selects the
/// default.
typedef struct memrt_trace_options {
    size_t struct_size; ///< sizeof(memrt_trace_options_t)
    const char *path;   ///< path of the file, which is created with mode 0600 and must not exist
    int replace;        ///< non-zero: the file may exist, and is replaced by a new file once the
                        ///< start has succeeded. A symbolic link at the path is refused
    uint32_t frames;    ///< maximum interpreter frames to record per allocation; 0: none
    uint32_t native;    ///< maximum native frames to record per allocation; 0: none
    uint64_t last;      ///< 0: every event goes to the file; else the number of newest events that
                        ///< are kept in memory until the end of the event trace
} memrt_trace_options_t;

/// Maximum number of events that can be kept in memory.
#define MEMRT_TRACE_LAST_MAX ((uint64_t)1 << 28)

/// Figures of the current event trace, or of the last event trace.
typedef struct memrt_trace_stats {
    size_t struct_size;   ///< sizeof(memrt_trace_stats_t)
    int on;               ///< non-zero: an event trace is being recorded
    int error;            ///< errno of the last write to the file that the system refused; 0: none
    uint64_t events;      ///< events that were recorded, overwritten events included
    uint64_t lost;        ///< events that were not recorded: no room in the file, or no memory
    uint64_t overwritten; ///< recorded events that are older than the `last` newest events
    uint64_t bytes;       ///< bytes of the file
} memrt_trace_stats_t;

/// Start an event trace: from now on, record each allocation on any thread, with its resizes
/// and its free, and each refused request.
///
/// The event trace ends with trace_stop or with the process. Blocks from before the start have
/// no events. A forked child is not recorded. If the system refuses to write, as on a full
/// disk, the program continues, lost events are counted, and writing is tried again.
/// Failure: MEMRT_EINVAL: struct_size or path is not set, or a number is above its limit;
///          MEMRT_EBUSY: an event trace is being recorded already; MEMRT_ENOMEM; MEMRT_EIO: the
///          file cannot be created. Then `*error` (unless `error` is NULL) is the system's
///          errno. With `replace`, the errno is ELOOP for a symbolic link and EINVAL for any
///          other object that is not a regular file. A file that was at the path stays
///          unchanged on failure.
typedef memrt_status_t (*memrt_trace_start_fn)(const memrt_trace_options_t *options, int *error);

/// Stop the event trace: write the buffered events and the end record. `out` (unless `out` is
/// NULL) receives the final figures.
/// Failure: MEMRT_ENOENT: no event trace is being recorded; MEMRT_EINVAL: struct_size is not
///          set.
typedef memrt_status_t (*memrt_trace_stop_fn)(memrt_trace_stats_t *out);

/// Write the buffered events, and read the figures of the current event trace, or of the last
/// event trace.
/// Failure: MEMRT_EINVAL: struct_size is not set.
typedef memrt_status_t (*memrt_trace_stats_fn)(memrt_trace_stats_t *out);

/// Add a mark, an event with a name of 1 to 1023 bytes, to find a moment again. Without an
/// event trace, nothing happens.
/// Failure: MEMRT_EINVAL: a missing name, or a wrong length; MEMRT_ENOMEM.
typedef memrt_status_t (*memrt_trace_mark_fn)(const char *name);

#ifdef __cplusplus
}
#endif

#endif
