#ifndef MEMRT_TRACE_FILE_H
#define MEMRT_TRACE_FILE_H

/// File of an event trace: a header, followed by records, each at a multiple of 8 bytes.
///
/// Numbers have the byte order of the writing machine. An object that a record refers to by number
/// is described by an earlier record.

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MEMRT_TRACE_MAGIC "MEMRTRC\n"
#define MEMRT_TRACE_VERSION 1u
#define MEMRT_TRACE_ORDER 0x01020304u

/// Header at the start of the file.
typedef struct memrt_trace_header {
    char magic[8];        ///< MEMRT_TRACE_MAGIC, without its closing zero
    uint32_t order;       ///< MEMRT_TRACE_ORDER
    uint32_t version;     ///< MEMRT_TRACE_VERSION
    uint32_t header_size; ///< bytes of this header
    uint32_t event_size;  ///< bytes of a memrt_trace_event_t
    uint64_t process;     ///< operating system's id of the process
    uint64_t began;       ///< nanoseconds from the start of 1970 to the start of the event trace
    uint64_t last;        ///< `last` of memrt_trace_options_t
    char library[16];     ///< version of memrt, padded with zeroes
} memrt_trace_header_t;

/// Type of a record. Readers skip unknown types.
typedef enum memrt_trace_record_type {
    MEMRT_TRACE_TEXT = 1,   ///< memrt_trace_text_t
    MEMRT_TRACE_SITE = 2,   ///< memrt_trace_site_t
    MEMRT_TRACE_POLICY = 3, ///< memrt_trace_policy_t
    MEMRT_TRACE_EVENTS = 4, ///< memrt_trace_events_t
    MEMRT_TRACE_END = 5,    ///< memrt_trace_end_t, the last record; missing if the file was cut off
} memrt_trace_record_type_t;

/// Start of every record.
typedef struct memrt_trace_record {
    uint32_t type; ///< a memrt_trace_record_type_t
    uint32_t size; ///< bytes that follow, a multiple of 8
} memrt_trace_record_t;

/// Record of a text with its number. The bytes of the text follow, padded with zeroes to a multiple
/// of 8.
typedef struct memrt_trace_text {
    memrt_trace_record_t record;
    uint32_t number; ///< number of the text, from 1 on
    uint32_t length; ///< bytes of the text without padding; UTF-8 if the texts of the program are
} memrt_trace_text_t;

/// One frame of an allocation site.
typedef struct memrt_trace_frame {
    uint32_t function; ///< number of a text; 0: not known
    uint32_t file;     ///< number of a text: source file; object of a native frame
    uint64_t at;       ///< line in the source; for a native frame, memrt_frame_text_t.offset
    uint64_t native;   ///< 1: native frame; 0: interpreter frame
} memrt_trace_frame_t;

/// Record of an allocation site with its number. The frames follow: native frames first, then
/// interpreter frames, innermost first in each group.
typedef struct memrt_trace_site {
    memrt_trace_record_t record;
    uint32_t number; ///< number of the site, from 1 on
    uint32_t frames; ///< number of frames that follow
} memrt_trace_site_t;

/// Record of a policy, or of a subpolicy in one scope, with its number.
typedef struct memrt_trace_policy {
    memrt_trace_record_t record;
    uint32_t number;    ///< number of the policy, from 1 on
    uint32_t name;      ///< number of a text
    uint32_t scope;     ///< number of a text: the path of the scope, outermost scope first, with
                        ///< slashes between names; 0: in no scope
    uint32_t index;     ///< memrt_api_t.policy_index
    uint64_t alignment; ///< bytes
} memrt_trace_policy_t;

/// Type of an event.
typedef enum memrt_trace_event_type {
    MEMRT_TRACE_ALLOC = 1,    ///< a block was allocated
    MEMRT_TRACE_ADOPTION = 2, ///< foreign memory was adopted
    MEMRT_TRACE_RESIZE = 3,   ///< a block was resized
    MEMRT_TRACE_FREE = 4,     ///< a block, or the header over foreign memory, is about to be freed
    MEMRT_TRACE_FAILURE = 5,  ///< a request was refused
    MEMRT_TRACE_MARK = 6,     ///< memrt_api_t.trace_mark was called
} memrt_trace_event_type_t;

/// One event, 32 bytes.
typedef struct memrt_trace_event {
    uint64_t time;   ///< nanoseconds since the start of the event trace
    uint64_t size;   ///< bytes of the block after the event, of a freed block, or of a request. 0
                     ///< for a resizable MemInfo, because its data is a block with its own events
    uint32_t block;  ///< number of the allocation, unique in the process; for a mark: number of a
                     ///< text
    uint32_t site;   ///< number of the allocation site; 0: not known
    uint32_t policy; ///< number of the policy; 0: not known
    uint8_t type;    ///< a memrt_trace_event_type_t
    uint8_t kind;    ///< a memrt_kind_t; 0: not known, or a mark
    uint8_t align_log2; ///< log2 of the alignment of a block; 0 for a failure or a mark
    uint8_t reserved;   ///< 0
} memrt_trace_event_t;

/// Record of events of one thread. The events follow, in order. Events of several threads are
/// ordered only by their times.
typedef struct memrt_trace_events {
    memrt_trace_record_t record;
    uint32_t thread; ///< operating system's id of the thread
    uint32_t count;  ///< number of events that follow
} memrt_trace_events_t;

/// Record at the end, with the final figures.
typedef struct memrt_trace_end {
    memrt_trace_record_t record;
    uint64_t events;      ///< `events` of memrt_trace_stats_t
    uint64_t lost;        ///< `lost` of memrt_trace_stats_t
    uint64_t overwritten; ///< `overwritten` of memrt_trace_stats_t
    uint64_t time;        ///< nanoseconds from the start to the end of the event trace
} memrt_trace_end_t;

#ifdef __cplusplus
}
#endif

#endif
