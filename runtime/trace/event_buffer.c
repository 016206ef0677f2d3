#include "runtime/trace/event_buffer.h"

#include <string.h>

#include <memrt/version.h>

#include "runtime/base/size.h"
#include "runtime/os/os.h"

_Static_assert(sizeof(memrt_trace_header_t) == 64, "the header is one line");
_Static_assert(sizeof(memrt_trace_event_t) == 32, "two events a line");

/// Maximum number of ring events in one record.
#define RUN_MAX 4096u

static const char zeroes[8];

static bool is_marked(const memrt__number_set_t *noted, uint32_t number)
{
    MEMRT__ASSERT(number < MEMRT__INTERNED_MAX);
    return (memrt__load_relaxed(&noted->words[number / 64]) >> number % 64 & 1) != 0;
}

static void mark_number(memrt__number_set_t *noted, uint32_t number)
{
    MEMRT__ASSERT(number < MEMRT__INTERNED_MAX);
    size_t *word = &noted->words[number / 64];
    memrt__store_relaxed(word, *word | (size_t)1 << number % 64);
}

static void clear_marks(memrt__number_set_t *noted)
{
    for (size_t i = 0; i < MEMRT__INTERNED_MAX / 64; i++) {
        if (noted->words[i] != 0) {
            memrt__store_relaxed(&noted->words[i], 0);
        }
    }
}

/// Piece of a record.
typedef struct piece {
    const void *bytes;
    size_t size;
} piece_t;

/// Append a whole record, or nothing. After a refused write the file is cut back to its old end.
static bool append_record(memrt__event_buffer_t *recording, const piece_t *pieces, size_t count)
{
    MEMRT__ASSERT(recording->file >= 0 && recording->end >= sizeof(memrt_trace_header_t));
    uint64_t end = recording->end;
    for (size_t i = 0; i < count; i++) {
        if (!memrt__os_file_write(recording->file, end, pieces[i].bytes, pieces[i].size,
                                  &recording->error)) {
            memrt__os_file_cut(recording->file, recording->end);
            memrt__store_relaxed(&recording->failing, 1);
            return false;
        }
        end += pieces[i].size;
    }
    MEMRT__ASSERT(end % 8 == 0); /* all records are whole words */
    recording->end = end;
    memrt__store_relaxed(&recording->failing, 0);
    return true;
}

static memrt_trace_record_t make_record_header(memrt_trace_record_type_t type, size_t size)
{
    MEMRT__ASSERT(size >= sizeof(memrt_trace_record_t) && size <= UINT32_MAX);
    return (memrt_trace_record_t){type, (uint32_t)(size - sizeof(memrt_trace_record_t))};
}

/// Create the file with its header. Returns -1 on failure, with the system's errno in `*error`.
static int create_file(const memrt_trace_options_t *options, int *error)
{
    memrt_trace_header_t header = {.order = MEMRT_TRACE_ORDER,
                                   .version = MEMRT_TRACE_VERSION,
                                   .header_size = sizeof(header),
                                   .event_size = sizeof(memrt_trace_event_t),
                                   .process = memrt__os_process_id(),
                                   .began = memrt__os_wall_ns(),
                                   .last = options->last,
                                   .library = MEMRT_VERSION};
    memcpy(header.magic, MEMRT_TRACE_MAGIC, sizeof(header.magic));
    return memrt__os_file_create(options->path, options->replace != 0, &header, sizeof(header),
                                 error);
}

memrt_status_t memrt__event_buffer_open(memrt__event_buffer_t *recording,
                                        const memrt_trace_options_t *options, int *error)
{
    memrt__event_ring_t ring = {0};
    if (options->last != 0 && !memrt__event_ring_allocate(&ring, (size_t)options->last)) {
        return MEMRT_ENOMEM;
    }
    int file = create_file(options, error);
    if (file < 0) {
        memrt__event_ring_free(&ring);
        return MEMRT_EIO;
    }
    memrt__event_buffer_forget(recording);
    clear_marks(&recording->texts);
    clear_marks(&recording->sites);
    recording->ring = ring;
    recording->file = file;
    recording->end = sizeof(memrt_trace_header_t);
    recording->began = memrt__os_now_ns();
    return MEMRT_OK;
}

void memrt__event_buffer_forget(memrt__event_buffer_t *recording)
{
    memrt__store_relaxed(&recording->failing, 0);
    recording->end = recording->events = recording->lost = recording->overwritten = 0;
    recording->error = 0;
}

bool memrt__event_buffer_text(memrt__event_buffer_t *recording, uint32_t number, const char *text,
                              size_t length)
{
    if (number == 0 || is_marked(&recording->texts, number - 1)) {
        return true;
    }
    size_t padding = ((size_t)0 - length) & 7;
    memrt_trace_text_t head = {.number = number, .length = (uint32_t)length};
    head.record = make_record_header(MEMRT_TRACE_TEXT, sizeof(head) + length + padding);
    const piece_t pieces[] = {{&head, sizeof(head)}, {text, length}, {zeroes, padding}};
    if (!append_record(recording, pieces, 3)) {
        return false;
    }
    mark_number(&recording->texts, number - 1);
    return true;
}

bool memrt__event_buffer_has_site(const memrt__event_buffer_t *recording, uint32_t number)
{
    return is_marked(&recording->sites, number - 1);
}

void memrt__event_buffer_site(memrt__event_buffer_t *recording, uint32_t number,
                              const memrt_trace_frame_t *frames, size_t count)
{
    memrt_trace_site_t head = {.number = number, .frames = (uint32_t)count};
    head.record = make_record_header(MEMRT_TRACE_SITE, sizeof(head) + count * sizeof(*frames));
    const piece_t pieces[] = {{&head, sizeof(head)}, {frames, count * sizeof(*frames)}};
    if (append_record(recording, pieces, 2)) {
        mark_number(&recording->sites, number - 1);
    }
}

bool memrt__event_buffer_policy(memrt__event_buffer_t *recording, memrt_trace_policy_t *policy)
{
    policy->record = make_record_header(MEMRT_TRACE_POLICY, sizeof(*policy));
    const piece_t piece = {policy, sizeof(*policy)};
    return append_record(recording, &piece, 1);
}

static bool write_events(memrt__event_buffer_t *recording, uint32_t thread,
                         const memrt_trace_event_t *events, size_t count)
{
    memrt_trace_events_t head = {.thread = thread, .count = (uint32_t)count};
    head.record = make_record_header(MEMRT_TRACE_EVENTS, sizeof(head) + count * sizeof(*events));
    const piece_t pieces[] = {{&head, sizeof(head)}, {events, count * sizeof(*events)}};
    return append_record(recording, pieces, 2);
}

void memrt__event_buffer_events(memrt__event_buffer_t *recording, uint32_t thread,
                                const memrt_trace_event_t *events, size_t count)
{
    if (recording->ring.capacity != 0) {
        memrt__event_ring_put(&recording->ring, thread, events, count);
        recording->events += count;
    } else if (write_events(recording, thread, events, count)) {
        recording->events += count;
    } else {
        recording->lost += count;
    }
}

static void write_ring(memrt__event_buffer_t *recording)
{
    uint64_t at = memrt__event_ring_overwritten(&recording->ring);
    memrt__event_ring_run_t run;
    while (memrt__event_ring_next(&recording->ring, &at, RUN_MAX, &run)) {
        if (!write_events(recording, run.thread, run.events, run.count)) {
            MEMRT__ASSERT(recording->events >= run.count);
            recording->events -= run.count;
            recording->lost += run.count;
        }
    }
}

static void write_end_record(memrt__event_buffer_t *recording)
{
    memrt_trace_end_t end = {.record = make_record_header(MEMRT_TRACE_END, sizeof(end)),
                             .events = recording->events,
                             .lost = recording->lost,
                             .overwritten = recording->overwritten,
                             .time = memrt__os_now_ns() - recording->began};
    const piece_t piece = {&end, sizeof(end)};
    append_record(recording, &piece, 1);
}

void memrt__event_buffer_close(memrt__event_buffer_t *recording)
{
    recording->overwritten = memrt__event_ring_overwritten(&recording->ring);
    write_ring(recording);
    write_end_record(recording);
    memrt__event_buffer_abandon(recording);
}

void memrt__event_buffer_abandon(memrt__event_buffer_t *recording)
{
    memrt__event_ring_free(&recording->ring);
    memrt__os_file_close(recording->file);
    recording->file = -1;
}

void memrt__event_buffer_stats(const memrt__event_buffer_t *recording, memrt_trace_stats_t *out)
{
    out->error = recording->error;
    out->events = recording->events;
    out->lost = recording->lost;
    out->overwritten = recording->overwritten + memrt__event_ring_overwritten(&recording->ring);
    out->bytes = recording->end;
}

#if MEMRT_DEBUG

bool memrt__event_buffer_is_valid(const memrt__event_buffer_t *recording)
{
    bool open = recording->file >= 0;
    return memrt__event_ring_is_valid(&recording->ring) &&
           MEMRT__HOLDS(open || recording->ring.capacity == 0) &&
           MEMRT__HOLDS(!open || recording->end >= sizeof(memrt_trace_header_t)) &&
           MEMRT__HOLDS(recording->end % 8 == 0) &&
           MEMRT__HOLDS(!open || recording->overwritten == 0) &&
           MEMRT__HOLDS(recording->overwritten <= recording->events + recording->lost);
}

#endif
