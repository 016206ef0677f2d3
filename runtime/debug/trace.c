#include "runtime/debug/trace.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <memrt/tracking.h>

#include "runtime/base/lock.h"
#include "runtime/base/os.h"
#include "runtime/base/size.h"
#include "runtime/debug/recording.h"
#include "runtime/debug/site.h"
#include "runtime/debug/tracking.h"

/// Events of one thread that are not recorded yet: its owner adds to them, who holds the lock
/// records what is there.
#define BUFFERED 500u
typedef struct memrt__trace_buffer {
    size_t trace;    ///< number of the trace that they are of; written under the lock
    uint64_t began;  ///< of that; written under the lock
    uint32_t thread; ///< whose they are; written under the lock
    size_t used;     ///< release by the owner, acquire by who records
    size_t recorded; ///< of those; under the lock
    memrt_trace_event_t events[BUFFERED];
} buffer_t;

static memrt__recording_t recording = {.file = -1}; /* under the lock of rank TRACE */
static memrt__interns_t texts;

/* Relaxed; written under that lock: */
static size_t trace_now; /* number of the trace that is recorded, or was last */
static size_t first_birth = 1, first_policy = 1;

static size_t policies; /* numbered so far; under that lock */
static size_t lost;     /* relaxed adds; what did not come to be recorded */
size_t memrt__trace_births;

static bool is_recording(void)
{
    return recording.file >= 0;
}

/// Under the lock.
static void record(buffer_t *buffer)
{
    size_t used = memrt__load_acquire(&buffer->used);
    if (buffer->trace == trace_now && is_recording() && used != buffer->recorded) {
        memrt__recording_events(&recording, buffer->thread, buffer->events + buffer->recorded,
                                used - buffer->recorded);
    }
    buffer->recorded = used;
}

/// Under the locks of rank THREADS and TRACE.
static void record_all(void)
{
    for (memrt__thread_t *thread = memrt__thread_first(); thread != NULL; thread = thread->next) {
        if (thread->trace != NULL) {
            record(thread->trace);
        }
    }
}

/// Room in the buffer of the calling thread, which is that of another trace or thread, or full.
/// NULL: no memory.
MEMRT__COLD static buffer_t *make_room(memrt__thread_t *self)
{
    if (self->trace == NULL && !memrt__thread_extend(&self->trace, sizeof(buffer_t))) {
        return NULL;
    }
    buffer_t *buffer = self->trace;
    memrt__lock(MEMRT__RANK_TRACE);
    record(buffer);
    buffer->trace = trace_now;
    buffer->began = recording.began;
    buffer->thread = self->number;
    memrt__store_relaxed(&buffer->used, 0);
    buffer->recorded = 0;
    memrt__unlock(MEMRT__RANK_TRACE);
    return buffer;
}

static buffer_t *buffer_of(memrt__thread_t *self)
{
    buffer_t *buffer = self->trace;
    bool ready = buffer != NULL && buffer->trace == memrt__load_relaxed(&trace_now) &&
                 buffer->thread == self->number && memrt__load_relaxed(&buffer->used) < BUFFERED;
    return MEMRT__LIKELY(ready) ? buffer : make_room(self);
}

/// The number of a text; 0: none, or no memory.
static uint32_t number_of(const char *text)
{
    size_t length = text == NULL ? 0 : strnlen(text, MEMRT__TRACE_TEXT_MAX);
    const memrt__interned_t *kept = length == 0 ? NULL : memrt__intern(&texts, text, length);
    return kept == NULL ? 0 : kept->number;
}

/// Under the lock: write a text that may not be there yet. False: it is not.
static bool record_text(uint32_t number)
{
    const memrt__interned_t *text = memrt__interned_at(&texts, number);
    return text == NULL ||
           memrt__recording_text(&recording, number, (const char *)text->words, text->length);
}

/// All zero where nothing is known of the call.
static memrt_trace_frame_t frame_of(memrt_frame_t call)
{
    memrt_frame_text_t text = {.struct_size = sizeof(text)};
    (void)!memrt__frame_text(call, &text);
    return (memrt_trace_frame_t){.function = number_of(text.function),
                                 .file = number_of(text.file),
                                 .at = text.native ? text.offset : text.line,
                                 .native = text.native != 0};
}

/// Under the lock: write a site with its texts, unless another thread did. Without one of the texts
/// it waits for the next event there.
static void record_site(uint32_t site, const memrt_trace_frame_t *frames, size_t count)
{
    if (!is_recording() || memrt__recording_has_site(&recording, site)) {
        return;
    }
    bool complete = true;
    for (size_t i = 0; i < count && complete; i++) {
        complete = record_text(frames[i].function) && record_text(frames[i].file);
    }
    if (complete) {
        memrt__recording_site(&recording, site, frames, count);
    }
}

/// The loader is asked for names of native code, so without the lock.
MEMRT__COLD static void describe(uint32_t site)
{
    memrt_frame_t calls[2 * MEMRT_FRAMES_MAX];
    memrt_trace_frame_t frames[2 * MEMRT_FRAMES_MAX];
    size_t count = memrt__site_frames(site, calls, 2 * MEMRT_FRAMES_MAX);
    for (size_t i = 0; i < count; i++) {
        frames[i] = frame_of(calls[i]);
    }
    memrt__lock(MEMRT__RANK_TRACE);
    record_site(site, frames, count);
    memrt__unlock(MEMRT__RANK_TRACE);
}

static bool wants_description(uint32_t site)
{
    return site != 0 && !memrt__recording_has_site(&recording, site) &&
           !memrt__recording_is_failing(&recording);
}

void memrt__trace_add(memrt_trace_event_t *event)
{
    if (MEMRT__UNLIKELY(wants_description(event->site))) {
        describe(event->site);
    }
    memrt__thread_t *self = memrt__thread_self();
    buffer_t *buffer = self == NULL ? NULL : buffer_of(self);
    if (buffer == NULL) {
        memrt__fetch_add_relaxed(&lost, 1);
        return;
    }
    event->time = memrt__os_now_ns() - buffer->began;
    size_t used = memrt__load_relaxed(&buffer->used);
    buffer->events[used] = *event;
    memrt__store_release(&buffer->used, used + 1);
}

uint32_t memrt__trace_birth(void)
{
    size_t birth = memrt__fetch_add_relaxed(&memrt__trace_births, 1) + 1;
    if (birth > UINT32_MAX) {
        memrt__fetch_add_relaxed(&lost, 1);
        return 0;
    }
    return (uint32_t)birth;
}

bool memrt__trace_has(uint32_t birth)
{
    return birth >= memrt__load_relaxed(&first_birth);
}

bool memrt__trace_has_policy(size_t number)
{
    return number >= memrt__load_relaxed(&first_policy);
}

size_t memrt__trace_policy(const char *name, const char *scope, uint32_t index, size_t alignment)
{
    memrt_trace_policy_t policy = {
        .name = number_of(name), .scope = number_of(scope), .index = index, .alignment = alignment};
    memrt__lock(MEMRT__RANK_TRACE);
    bool there = is_recording() && record_text(policy.name) && record_text(policy.scope);
    if (there) {
        policy.number = (uint32_t)++policies;
        there = memrt__recording_policy(&recording, &policy);
    }
    memrt__unlock(MEMRT__RANK_TRACE);
    return there ? policy.number : 0;
}

memrt_status_t memrt__trace_mark(const char *name)
{
    if (name == NULL || name[0] == '\0' ||
        strnlen(name, MEMRT__TRACE_TEXT_MAX + 1) > MEMRT__TRACE_TEXT_MAX) {
        return MEMRT_EINVAL;
    }
    if (!memrt__trace_is_on()) {
        return MEMRT_OK;
    }
    memrt_trace_event_t event = {.type = MEMRT_TRACE_MARK, .block = number_of(name)};
    if (event.block == 0) {
        return MEMRT_ENOMEM;
    }
    memrt__lock(MEMRT__RANK_TRACE);
    bool there = is_recording() && record_text(event.block);
    memrt__unlock(MEMRT__RANK_TRACE);
    if (there) {
        memrt__trace_add(&event);
    } else {
        memrt__fetch_add_relaxed(&lost, 1);
    }
    return MEMRT_OK;
}

static void lock_all(void)
{
    memrt__lock(MEMRT__RANK_THREADS);
    memrt__lock(MEMRT__RANK_TRACE);
}

static void unlock_all(void)
{
    memrt__unlock(MEMRT__RANK_TRACE);
    memrt__unlock(MEMRT__RANK_THREADS);
}

/// Under both locks, of a trace that is recorded: everything up to now.
static void catch_up(void)
{
    record_all();
    recording.lost += memrt__load_relaxed(&lost);
    memrt__store_relaxed(&lost, 0);
}

static void read_stats(memrt_trace_stats_t *out)
{
    out->on = is_recording();
    memrt__recording_stats(&recording, out);
}

memrt_status_t memrt__trace_stop(memrt_trace_stats_t *out)
{
    if (out != NULL && out->struct_size < sizeof(*out)) {
        return MEMRT_EINVAL;
    }
    lock_all();
    memrt_status_t status = is_recording() ? MEMRT_OK : MEMRT_ENOENT;
    if (status == MEMRT_OK) {
        memrt__watch_set(MEMRT__WATCH_TRACING, false);
        catch_up();
        memrt__recording_close(&recording);
        if (out != NULL) {
            read_stats(out);
        }
    }
    unlock_all();
    return status;
}

memrt_status_t memrt__trace_stats(memrt_trace_stats_t *out)
{
    if (out->struct_size < sizeof(*out)) {
        return MEMRT_EINVAL;
    }
    lock_all();
    if (is_recording()) {
        catch_up();
    }
    read_stats(out);
    unlock_all();
    return MEMRT_OK;
}

static void stop_at_exit(void)
{
    (void)!memrt__trace_stop(NULL);
}

static void have_it_stopped_at_exit(void)
{
    (void)!atexit(stop_at_exit); /* without memory for that the file just has no end */
}

static bool are_valid(const memrt_trace_options_t *options)
{
    return options->struct_size >= sizeof(*options) && options->path != NULL &&
           options->frames <= MEMRT_FRAMES_MAX && options->native <= MEMRT_FRAMES_MAX &&
           options->last <= MEMRT_TRACE_LAST_MAX;
}

/// Under the lock: events are those of this trace from now on.
static void begin(const memrt_trace_options_t *options)
{
    memrt__store_relaxed(&trace_now, trace_now + 1);
    memrt__store_relaxed(&first_birth, memrt__load_relaxed(&memrt__trace_births) + 1);
    memrt__store_relaxed(&first_policy, policies + 1);
    memrt__store_relaxed(&lost, 0);
    memrt__tracking_trace(options->frames, options->native);
    memrt__watch_set(MEMRT__WATCH_TRACING, true);
}

memrt_status_t memrt__trace_start(const memrt_trace_options_t *options, int *error)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    int why = 0;
    if (!are_valid(options)) {
        return MEMRT_EINVAL;
    }
    pthread_once(&once, have_it_stopped_at_exit);
    memrt__lock(MEMRT__RANK_TRACE);
    memrt_status_t status =
        is_recording() ? MEMRT_EBUSY : memrt__recording_open(&recording, options, &why);
    if (status == MEMRT_OK) {
        begin(options);
    }
    memrt__unlock(MEMRT__RANK_TRACE);
    if (status == MEMRT_EIO && error != NULL) {
        *error = why;
    }
    return status;
}

void memrt__trace_forked(void)
{
    if (is_recording()) {
        memrt__watch_set(MEMRT__WATCH_TRACING, false);
        memrt__recording_abandon(&recording);
    }
    memrt__recording_forget(&recording);
}
