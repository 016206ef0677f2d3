#ifndef MEMRT_TRACE_H
#define MEMRT_TRACE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// How a trace is recorded. Set `struct_size` and `path`, leave the rest zero for the default.
typedef struct memrt_trace_options {
    size_t struct_size; ///< sizeof(memrt_trace_options_t)
    const char *path;   ///< of the file, which must not be there
    int replace;        ///< non-zero: it may, and is emptied
    uint32_t frames;    ///< most calls of an interpreter to record of each birth; 0: none
    uint32_t native;    ///< most calls of native code to record of each birth; 0: none
    uint64_t last;      ///< 0: every event goes to the file; else so many, the last, are kept in
                        ///< memory till the end of the trace
} memrt_trace_options_t;

/// Most events that can be kept in memory.
#define MEMRT_TRACE_LAST_MAX ((uint64_t)1 << 28)

/// How far a trace is, or how far the last one came.
typedef struct memrt_trace_stats {
    size_t struct_size;   ///< sizeof(memrt_trace_stats_t)
    int on;               ///< non-zero: it is recorded now
    int error;            ///< errno of the last write to the file that the system refused; 0: none
    uint64_t events;      ///< recorded, overwritten ones too
    uint64_t lost;        ///< not recorded: no room in the file, or no memory
    uint64_t overwritten; ///< of those that were recorded: older than `last` others
    uint64_t bytes;       ///< of the file
} memrt_trace_stats_t;

/* --- The file. Numbers have the byte order of the machine that wrote it. A header, then records
       one after the other, each at a multiple of 8. What a record names by a number stands before
       it. --- */

#define MEMRT_TRACE_MAGIC "MEMRTRC\n"
#define MEMRT_TRACE_VERSION 1u
#define MEMRT_TRACE_ORDER 0x01020304u

/// At the start of the file.
typedef struct memrt_trace_header {
    char magic[8];        ///< MEMRT_TRACE_MAGIC, without its closing zero
    uint32_t order;       ///< MEMRT_TRACE_ORDER
    uint32_t version;     ///< MEMRT_TRACE_VERSION
    uint32_t header_size; ///< bytes of this header
    uint32_t event_size;  ///< bytes of a memrt_trace_event_t
    uint64_t process;     ///< the system's number of it
    uint64_t began;       ///< nanoseconds from the begin of 1970 to the start of the trace
    uint64_t last;        ///< as in memrt_trace_options_t
    char library[16];     ///< version of memrt, zeroes behind it
} memrt_trace_header_t;

/// What a record is. Readers skip those that they do not know.
typedef enum memrt_trace_record_type {
    MEMRT_TRACE_TEXT = 1,   ///< memrt_trace_text_t
    MEMRT_TRACE_SITE = 2,   ///< memrt_trace_site_t
    MEMRT_TRACE_POLICY = 3, ///< memrt_trace_policy_t
    MEMRT_TRACE_EVENTS = 4, ///< memrt_trace_events_t
    MEMRT_TRACE_END = 5,    ///< memrt_trace_end_t; the last; without it the trace was cut off
} memrt_trace_record_type_t;

/// Begin of every record.
typedef struct memrt_trace_record {
    uint32_t type; ///< a memrt_trace_record_type_t
    uint32_t size; ///< bytes that follow, a multiple of 8
} memrt_trace_record_t;

/// A text by its number.
typedef struct memrt_trace_text {
    memrt_trace_record_t record;
    uint32_t number; ///< from 1 on
    uint32_t length; ///< bytes of the text, UTF-8 as far as the program's texts are; they follow,
                     ///< then zeroes up to a multiple of 8
} memrt_trace_text_t;

/// One call of a site.
typedef struct memrt_trace_frame {
    uint32_t function; ///< number of a text; 0: not known
    uint32_t file;     ///< number of a text: source of an interpreter's, object of native code
    uint64_t at;       ///< line in the source; of native code bytes from the start of the function
    uint64_t native;   ///< 1: of native code; else 0
} memrt_trace_frame_t;

/// A place of birth by its number; its frames follow, native code first, then an interpreter's,
/// each innermost first.
typedef struct memrt_trace_site {
    memrt_trace_record_t record;
    uint32_t number; ///< from 1 on
    uint32_t frames; ///< how many follow
} memrt_trace_site_t;

/// A policy, or its part in one scope, by its number.
typedef struct memrt_trace_policy {
    memrt_trace_record_t record;
    uint32_t number; ///< from 1 on
    uint32_t name;   ///< number of a text
    uint32_t scope;  ///< number of a text, the names of a scope and of those around it, outermost
                     ///< first, with slashes between; 0: in no scope
    uint32_t index;  ///< memrt_api_t.policy_index
    uint64_t alignment; ///< bytes
} memrt_trace_policy_t;

/// What happened.
typedef enum memrt_trace_event_type {
    MEMRT_TRACE_BIRTH = 1,    ///< a block was made
    MEMRT_TRACE_ADOPTION = 2, ///< memory of others was taken over
    MEMRT_TRACE_RESIZE = 3,   ///< a block has another size
    MEMRT_TRACE_DEATH = 4,    ///< a block, or a header over memory of others, is about to go
    MEMRT_TRACE_FAILURE = 5,  ///< a request was refused
    MEMRT_TRACE_MARK = 6,     ///< memrt_api_t.trace_mark
} memrt_trace_event_type_t;

/// One event, 32 bytes.
typedef struct memrt_trace_event {
    uint64_t time;   ///< nanoseconds since the start of the trace
    uint64_t size;   ///< bytes: of the block from now on, of one that dies, or asked for; of a
                     ///< resizable MemInfo none, as its data is a block with a birth of its own
    uint32_t block;  ///< number of the birth, used once in the process; of a mark: number of a text
    uint32_t site;   ///< number of the place of birth; 0: not known
    uint32_t policy; ///< number of the policy; 0: not known
    uint8_t type;    ///< a memrt_trace_event_type_t
    uint8_t kind;    ///< a memrt_kind_t; 0: of a mark, and not known
    uint8_t align_log2; ///< log2 of the alignment; of births
    uint8_t reserved;   ///< 0
} memrt_trace_event_t;

/// Events of one thread; they follow, in order. Those of several threads are in order only by time.
typedef struct memrt_trace_events {
    memrt_trace_record_t record;
    uint32_t thread; ///< the system's number of it
    uint32_t count;  ///< how many follow
} memrt_trace_events_t;

/// What came of the trace.
typedef struct memrt_trace_end {
    memrt_trace_record_t record;
    uint64_t events;      ///< as in memrt_trace_stats_t
    uint64_t lost;        ///< likewise
    uint64_t overwritten; ///< likewise
    uint64_t time;        ///< nanoseconds since the start of the trace
} memrt_trace_end_t;

#ifdef __cplusplus
}
#endif

#endif
