#ifndef MEMRT_TESTS_SUPPORT_TAPE_H
#define MEMRT_TESTS_SUPPORT_TAPE_H

#include "support/suite.h"

/// The file of a trace, read as its documentation says.

/// Name of a file that is not there, in a folder of the process's own; the same each time.
const char *tape_path(void);

/// Start a trace there, of events alone, by the options' frames and last; fails the test where that
/// is refused.
void tape_start(memrt_trace_options_t options);

#define TAPE_EVENTS 4096
#define TAPE_TEXTS 64

typedef struct tape {
    memrt_trace_header_t header;
    memrt_trace_event_t events[TAPE_EVENTS]; ///< in the order of the file
    uint32_t threads[TAPE_EVENTS];           ///< of each
    size_t count;
    char texts[TAPE_TEXTS][2048]; ///< by number; "" for none
    memrt_trace_policy_t policies[TAPE_TEXTS];
    size_t policy_count;
    memrt_trace_site_t sites[TAPE_TEXTS];
    memrt_trace_frame_t first_frames[TAPE_TEXTS]; ///< of each site
    size_t site_count;
    memrt_trace_end_t end; ///< all zero where there is none
    size_t records, bytes;
    bool whole; ///< the file ends with a whole record
} tape_t;

/// Read the file and take it away. Static, until the next call.
const tape_t *tape_read(void);

/// Stop the trace and read it.
const tape_t *tape_stop(void);

/// How many events are of that type, and the last of them.
size_t tape_count(const tape_t *tape, memrt_trace_event_type_t type);
const memrt_trace_event_t *tape_last(const tape_t *tape, memrt_trace_event_type_t type);

/// The policy of that number; NULL: none is there.
const memrt_trace_policy_t *tape_policy(const tape_t *tape, uint32_t number);

#endif
