#include "runtime/trace/event_trace.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <memrt/observe/site.h>

#include "runtime/base/shield.h"
#include "runtime/base/size.h"
#include "runtime/observe/sites.h"
#include "runtime/observe/tracking.h"
#include "runtime/os/lock.h"
#include "runtime/os/os.h"
#include "runtime/trace/event_buffer.h"

/// Event buffer of one thread. The owner adds events without a lock. A thread that holds the lock
/// of rank TRACE writes the events to the file.
#define BUFFERED 500u
typedef struct memrt__trace_buffer {
    size_t trace;    ///< written under the lock; number of the trace of the events
    uint64_t began;  ///< written under the lock; start of that trace
    uint32_t thread; ///< written under the lock; operating system's id of the owner
    size_t used;     ///< release by the owner, acquire by the recording thread; events in `events`
    size_t recorded; ///< under the lock; events of `used` that are recorded
    memrt_trace_event_t events[BUFFERED];
} buffer_t;

static memrt__event_buffer_t recording = {.file = -1}; /* under the lock of rank TRACE */
static memrt__interns_t texts;

/* Relaxed; written under the lock of rank TRACE: */
static size_t current_trace; /* number of the current trace, or of the last trace */
static size_t first_allocation = 1, first_policy = 1;

static size_t policy_count; /* policies numbered so far; under the lock of rank TRACE */
static size_t lost_events;  /* relaxed adds; events that were not recorded */
size_t memrt__trace_last_number;

static bool is_recording(void)
{
    return recording.file >= 0;
}

/// Record the unrecorded events of a buffer, unless they belong to an earlier trace. Under the lock
/// of rank TRACE.
static void record_buffer(buffer_t *buffer)
{
    MEMRT__ASSERT_HELD(MEMRT__RANK_TRACE);
    size_t used = memrt__load_acquire(&buffer->used);
    MEMRT__ASSERT(buffer->recorded <= used && used <= BUFFERED);
    if (buffer->trace == current_trace && is_recording() && used != buffer->recorded) {
        memrt__event_buffer_events(&recording, buffer->thread, buffer->events + buffer->recorded,
                                   used - buffer->recorded);
    }
    buffer->recorded = used;
}

/// Record the buffers of all threads. Under the locks of rank THREADS and TRACE.
static void record_all_buffers(void)
{
    for (memrt__thread_t *thread = memrt__thread_first(); thread != NULL; thread = thread->next) {
        if (thread->trace != NULL) {
            record_buffer(thread->trace);
        }
    }
}

/// Prepare the buffer of the calling thread, which is missing, full, or belongs to another trace or
/// thread. NULL: out of memory, or a long fork keeps the lock away.
MEMRT__COLD static buffer_t *prepare_buffer(memrt__thread_t *self)
{
    if (self->trace == NULL && !memrt__thread_extend(&self->trace, sizeof(buffer_t))) {
        return NULL;
    }
    buffer_t *buffer = self->trace;
    if (!memrt__lock_or_fork(MEMRT__RANK_TRACE)) {
        return NULL;
    }
    record_buffer(buffer);
    buffer->trace = current_trace;
    buffer->began = recording.began;
    buffer->thread = self->number;
    memrt__store_relaxed(&buffer->used, 0);
    buffer->recorded = 0;
    memrt__unlock(MEMRT__RANK_TRACE);
    return buffer;
}

static buffer_t *get_buffer(memrt__thread_t *self)
{
    buffer_t *buffer = self->trace;
    bool ready = buffer != NULL && buffer->trace == memrt__load_relaxed(&current_trace) &&
                 buffer->thread == self->number && memrt__load_relaxed(&buffer->used) < BUFFERED;
    return MEMRT__LIKELY(ready) ? buffer : prepare_buffer(self);
}

/// Return the number of a text. 0: no text, or out of memory.
static uint32_t intern_text(const char *text)
{
    size_t length = text == NULL ? 0 : strnlen(text, MEMRT__TRACE_TEXT_MAX);
    const memrt__interned_t *interned = length == 0 ? NULL : memrt__intern(&texts, text, length);
    return interned == NULL ? 0 : interned->number;
}

/// Write a text to the trace file unless the file has the text. Returns whether the file has the
/// text now. Under the lock of rank TRACE.
static bool record_text(uint32_t number)
{
    MEMRT__ASSERT_HELD(MEMRT__RANK_TRACE);
    const memrt__interned_t *text = memrt__interned_at(&texts, number);
    return text == NULL ||
           memrt__event_buffer_text(&recording, number, (const char *)text->words, text->length);
}

/// Convert a frame to its form in the file; all zero for an unknown frame.
static memrt_trace_frame_t convert_frame(memrt_frame_t call)
{
    memrt_frame_text_t text = {.struct_size = sizeof(text)};
    (void)!memrt__frame_text(call, &text);
    return (memrt_trace_frame_t){.function = intern_text(text.function),
                                 .file = intern_text(text.file),
                                 .at = text.native ? text.offset : text.line,
                                 .native = text.native != 0};
}

/// Write a site with its texts, unless another thread has written the site. If a text cannot be
/// written, the site is tried again at the next event there. Under the lock of rank TRACE.
static void record_site(uint32_t site, const memrt_trace_frame_t *frames, size_t count)
{
    MEMRT__ASSERT_HELD(MEMRT__RANK_TRACE);
    if (!is_recording() || memrt__event_buffer_has_site(&recording, site)) {
        return;
    }
    bool complete = true;
    for (size_t i = 0; i < count && complete; i++) {
        complete = record_text(frames[i].function) && record_text(frames[i].file);
    }
    if (complete) {
        memrt__event_buffer_site(&recording, site, frames, count);
    }
}

/// Describe a site in the trace file. The look-up of native names calls the loader, so the look-up
/// runs without the lock.
MEMRT__COLD static void describe_site(uint32_t site)
{
    MEMRT__KEEP_ERRNO;
    memrt_frame_t calls[2 * MEMRT_FRAMES_MAX];
    memrt_trace_frame_t frames[2 * MEMRT_FRAMES_MAX];
    size_t count = memrt__site_frames(site, calls, 2 * MEMRT_FRAMES_MAX);
    for (size_t i = 0; i < count; i++) {
        frames[i] = convert_frame(calls[i]);
    }
    if (memrt__lock_or_fork(MEMRT__RANK_TRACE)) {
        record_site(site, frames, count);
        memrt__unlock(MEMRT__RANK_TRACE);
    }
}

static bool should_describe_site(uint32_t site)
{
    return site != 0 && !memrt__event_buffer_has_site(&recording, site) &&
           !memrt__event_buffer_is_failing(&recording);
}

void memrt__trace_add(memrt_trace_event_t *event)
{
    if (MEMRT__UNLIKELY(should_describe_site(event->site))) {
        describe_site(event->site);
    }
    memrt__thread_t *self = memrt__thread_self();
    buffer_t *buffer = self == NULL ? NULL : get_buffer(self);
    if (buffer == NULL) {
        memrt__fetch_add_relaxed(&lost_events, 1);
        return;
    }
    event->time = memrt__os_now_ns() - buffer->began;
    size_t used = memrt__load_relaxed(&buffer->used);
    MEMRT__ASSERT(used < BUFFERED);
    buffer->events[used] = *event;
    memrt__store_release(&buffer->used, used + 1);
}

uint32_t memrt__trace_new_number(void)
{
    size_t allocation = memrt__fetch_add_relaxed(&memrt__trace_last_number, 1) + 1;
    if (allocation > UINT32_MAX) {
        memrt__fetch_add_relaxed(&lost_events, 1);
        return 0;
    }
    return (uint32_t)allocation;
}

bool memrt__trace_has(uint32_t allocation)
{
    return allocation >= memrt__load_relaxed(&first_allocation);
}

bool memrt__trace_has_policy(size_t number)
{
    return number >= memrt__load_relaxed(&first_policy);
}

size_t memrt__trace_policy(const char *name, const char *scope, uint32_t index, size_t alignment)
{
    memrt_trace_policy_t policy = {.name = intern_text(name),
                                   .scope = intern_text(scope),
                                   .index = index,
                                   .alignment = alignment};
    if (!memrt__lock_or_fork(MEMRT__RANK_TRACE)) {
        return 0;
    }
    bool there = is_recording() && record_text(policy.name) && record_text(policy.scope);
    if (there) {
        policy.number = (uint32_t)++policy_count;
        there = memrt__event_buffer_policy(&recording, &policy);
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
    memrt_trace_event_t event = {.type = MEMRT_TRACE_MARK, .block = intern_text(name)};
    if (event.block == 0) {
        return MEMRT_ENOMEM;
    }
    memrt__lock(MEMRT__RANK_TRACE);
    bool there = is_recording() && record_text(event.block);
    memrt__unlock(MEMRT__RANK_TRACE);
    if (there) {
        memrt__trace_add(&event);
    } else {
        memrt__fetch_add_relaxed(&lost_events, 1);
    }
    return MEMRT_OK;
}

static void lock_threads_and_trace(void)
{
    memrt__lock(MEMRT__RANK_THREADS);
    memrt__lock(MEMRT__RANK_TRACE);
}

static void unlock_threads_and_trace(void)
{
    memrt__unlock(MEMRT__RANK_TRACE);
    memrt__unlock(MEMRT__RANK_THREADS);
}

/// Record all events up to now. For a running trace, under the locks of rank THREADS and TRACE.
static void record_pending_events(void)
{
    record_all_buffers();
    recording.lost += memrt__load_relaxed(&lost_events);
    memrt__store_relaxed(&lost_events, 0);
}

static void read_stats(memrt_trace_stats_t *out)
{
    out->on = is_recording();
    memrt__event_buffer_stats(&recording, out);
}

memrt_status_t memrt__trace_stop(memrt_trace_stats_t *out)
{
    if (out != NULL && out->struct_size < sizeof(*out)) {
        return MEMRT_EINVAL;
    }
    lock_threads_and_trace();
    memrt_status_t status = is_recording() ? MEMRT_OK : MEMRT_ENOENT;
    if (status == MEMRT_OK) {
        memrt__slow_path_set(MEMRT__SLOW_TRACING, false);
        record_pending_events();
        memrt__event_buffer_close(&recording);
        if (out != NULL) {
            read_stats(out);
        }
    }
    unlock_threads_and_trace();
    return status;
}

memrt_status_t memrt__trace_stats(memrt_trace_stats_t *out)
{
    if (out->struct_size < sizeof(*out)) {
        return MEMRT_EINVAL;
    }
    lock_threads_and_trace();
    if (is_recording()) {
        record_pending_events();
    }
    read_stats(out);
    unlock_threads_and_trace();
    return MEMRT_OK;
}

static void stop_at_exit(void)
{
    (void)!memrt__trace_stop(NULL);
}

static void register_stop_at_exit(void)
{
    (void)!atexit(stop_at_exit); /* if the registration fails, the file has no end record */
}

static bool are_valid_options(const memrt_trace_options_t *options)
{
    return options->struct_size >= sizeof(*options) && options->path != NULL &&
           options->frames <= MEMRT_FRAMES_MAX && options->native <= MEMRT_FRAMES_MAX &&
           options->last <= MEMRT_TRACE_LAST_MAX;
}

/// Start a new trace: allocation and policy numbers from now on belong to the new trace. Under the
/// lock of rank TRACE.
static void begin_trace(const memrt_trace_options_t *options)
{
    MEMRT__ASSERT_HELD(MEMRT__RANK_TRACE);
    MEMRT__ASSERT(is_recording());
    memrt__store_relaxed(&current_trace, current_trace + 1);
    memrt__store_relaxed(&first_allocation, memrt__load_relaxed(&memrt__trace_last_number) + 1);
    memrt__store_relaxed(&first_policy, policy_count + 1);
    memrt__store_relaxed(&lost_events, 0);
    memrt__tracking_trace(options->frames, options->native);
    memrt__slow_path_set(MEMRT__SLOW_TRACING, true);
}

memrt_status_t memrt__trace_start(const memrt_trace_options_t *options, int *error)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    int why = 0;
    if (!are_valid_options(options)) {
        return MEMRT_EINVAL;
    }
    pthread_once(&once, register_stop_at_exit);
    memrt__lock(MEMRT__RANK_TRACE);
    memrt_status_t status =
        is_recording() ? MEMRT_EBUSY : memrt__event_buffer_open(&recording, options, &why);
    if (status == MEMRT_OK) {
        begin_trace(options);
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
        memrt__slow_path_set(MEMRT__SLOW_TRACING, false);
        memrt__event_buffer_abandon(&recording);
    }
    memrt__event_buffer_forget(&recording);
}

#if MEMRT_DEBUG

/// Check the buffer of a thread. Only `used` changes without the lock, and only grows meanwhile.
static bool is_buffer_valid(const buffer_t *buffer)
{
    size_t used = memrt__load_acquire(&buffer->used);
    return MEMRT__HOLDS(used <= BUFFERED) && MEMRT__HOLDS(buffer->recorded <= used) &&
           MEMRT__HOLDS(buffer->trace <= current_trace);
}

static bool are_buffers_valid(void)
{
    bool valid = true;
    for (memrt__thread_t *t = memrt__thread_first(); valid && t != NULL; t = t->next) {
        valid = t->trace == NULL || is_buffer_valid(t->trace);
    }
    return valid;
}

bool memrt__trace_is_valid(void)
{
    lock_threads_and_trace();
    bool valid = memrt__event_buffer_is_valid(&recording) && are_buffers_valid() &&
                 MEMRT__HOLDS(first_policy <= policy_count + 1) &&
                 MEMRT__HOLDS(is_recording() == memrt__trace_is_on());
    unlock_threads_and_trace();
    return valid && memrt__interns_is_valid(&texts);
}

#endif
