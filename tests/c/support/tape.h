#ifndef MEMRT_TESTS_SUPPORT_TAPE_H
#define MEMRT_TESTS_SUPPORT_TAPE_H

#include "support/suite.h"

/// Reader of event trace files, written from the documentation of the format.
///
/// No library reads the files: the format is memrt's own, and the reader must be independent of
/// memrt's code.

/// Return the path of the trace file, always the same in one process. The file is in a folder of
/// mode 0700 in /tmp, which the exit of the program removes if the folder is empty.
/// Ownership: static.
const char *tape_path(void);

/// Start an event trace to tape_path(), with `frames` and `last` of the options. Fails the test
/// when the start is refused.
void tape_start(memrt_trace_options_t options);

#define TAPE_EVENTS 4096
#define TAPE_TEXTS 64

typedef struct tape {
    memrt_trace_header_t header;
    memrt_trace_event_t events[TAPE_EVENTS]; ///< in the order of the file
    uint32_t threads[TAPE_EVENTS];           ///< thread of each event
    size_t earlier_sites[TAPE_EVENTS];       ///< sites before each event in the file
    size_t count;
    char texts[TAPE_TEXTS][2048]; ///< by number; "" for none
    memrt_trace_policy_t policies[TAPE_TEXTS];
    size_t policy_count;
    memrt_trace_site_t sites[TAPE_TEXTS];
    memrt_trace_frame_t first_frames[TAPE_TEXTS]; ///< first frame of each site
    size_t site_count;
    memrt_trace_end_t end; ///< all zero when the file has no end record
    size_t records, bytes;
    bool whole; ///< the file ends with a whole record
} tape_t;

/// Read the file and delete it. Ownership: the result is static and valid until the next call.
const tape_t *tape_read(void);

/// Stop the event trace and read its file.
const tape_t *tape_stop(void);

/// Count the events of a type; return the last event of a type.
size_t tape_count(const tape_t *tape, memrt_trace_event_type_t type);
const memrt_trace_event_t *tape_last(const tape_t *tape, memrt_trace_event_type_t type);

/// Return the policy with a number, or NULL.
const memrt_trace_policy_t *tape_policy(const tape_t *tape, uint32_t number);

#endif
