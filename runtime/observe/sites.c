#include "runtime/observe/sites.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/atomics.h"
#include "runtime/base/shield.h"
#include "runtime/base/size.h"
#include "runtime/observe/intern_table.h"
#include "runtime/observe/site_counters.h"
#include "runtime/os/unwind.h"

/// Bit that marks a frame of an interpreter. No address of native code has this bit.
#define FRAME_OF_INTERPRETER ((memrt_frame_t)1 << 63)

/// Number of innermost frames that are memrt's own: usual and maximum. With more own frames, fewer
/// frames of the caller would be recorded.
#define OWN_USUAL 3u
#define OWN_MAX 6u

/// Bytes kept of a function or file name, with the closing zero. Longer names are cut.
#define TEXT_MAX 1024u

static memrt__interns_t sites;  /* arrays of memrt_frame_t, innermost first */
static memrt__interns_t frames; /* a line and two texts each */
static size_t frames_callback;  /* a memrt_frames_fn, or 0 */

/// Interned form of an interpreter's frame: the line, then both texts with their closing zeros.
typedef struct frame {
    uint64_t line;
    char texts[2 * TEXT_MAX];
} frame_t;

void memrt__site_set_frames(memrt_frames_fn fn)
{
    size_t word;
    _Static_assert(sizeof(word) == sizeof(fn), "a function's address fits a word");
    memcpy(&word, &fn, sizeof(word));
    memrt__store_release(&frames_callback, word);
}

static MEMRT__APART size_t call_shielded(memrt_frames_fn fn, memrt_frame_t *out, size_t max)
{
    MEMRT__SHIELD;
    return fn(out, max);
}

static size_t list_interpreter_frames(memrt_frame_t *out, size_t max)
{
    size_t word = memrt__load_acquire(&frames_callback);
    memrt_frames_fn fn;
    memcpy(&fn, &word, sizeof(fn));
    return fn == NULL || max == 0 ? 0 : call_shielded(fn, out, max);
}

/// Collect up to `max` return addresses of the call stack. The first `*own` of them are memrt's.
static inline size_t collect_calls(void **calls, size_t max, size_t *own)
{
    int found = memrt__unwind(calls, (int)max);
    size_t count = found < 0 ? 0 : (size_t)found;
    *own = memrt__unwind_own(calls, count);
    return count;
}

/// List the native frames above memrt's own frames. Each frame takes time to unwind, and few call
/// stacks have more than OWN_USUAL frames of memrt, so only such call stacks are unwound twice.
static size_t list_native_frames(memrt_frame_t *out, size_t max)
{
    void *calls[MEMRT_FRAMES_MAX + OWN_MAX];
    size_t own;
    if (max == 0) {
        return 0;
    }
    size_t count = collect_calls(calls, max + OWN_USUAL, &own);
    if (own > OWN_USUAL) {
        count = collect_calls(calls, max + OWN_MAX, &own);
    }
    MEMRT__ASSERT(own <= count && max <= MEMRT_FRAMES_MAX);
    size_t left = memrt__size_min(count - own, max);
    for (size_t i = 0; i < left; i++) {
        out[i] = (memrt_frame_t)(uintptr_t)calls[own + i];
    }
    return left;
}

uint32_t memrt__site_here(size_t most_frames, size_t most_native)
{
    memrt_frame_t calls[2 * MEMRT_FRAMES_MAX];
    size_t count = list_native_frames(calls, memrt__size_min(most_native, MEMRT_FRAMES_MAX));
    count += list_interpreter_frames(calls + count, memrt__size_min(most_frames, MEMRT_FRAMES_MAX));
    if (count == 0) {
        return 0;
    }
    memrt__interned_t *site = memrt__intern(&sites, calls, count * sizeof(calls[0]));
    return site == NULL ? 0 : site->number;
}

void memrt__site_count(uint32_t number, size_t size)
{
    if (number != 0 && !memrt__site_counters_add(number, size)) {
        memrt__interned_t *site = memrt__interned_at(&sites, number);
        MEMRT__ASSERT(site != NULL);
        memrt__fetch_add_relaxed(&site->allocations, 1);
        memrt__fetch_add_relaxed(&site->bytes, size);
    }
}

/// Append a text with its closing zero, cut to TEXT_MAX bytes; NULL is appended as the empty text.
/// Returns the end.
static char *append_text(char *to, const char *text)
{
    size_t length = text == NULL ? 0 : strnlen(text, TEXT_MAX - 1);
    if (length != 0) {
        memcpy(to, text, length);
    }
    MEMRT__ASSERT(length < TEXT_MAX);
    to[length] = '\0';
    return to + length + 1;
}

memrt_frame_t memrt__frame_new(const char *function, const char *file, uint64_t line)
{
    frame_t frame = {.line = line};
    const char *end = append_text(append_text(frame.texts, function), file);
    memrt__interned_t *interned =
        memrt__intern(&frames, &frame, offsetof(frame_t, texts) + (size_t)(end - frame.texts));
    return interned == NULL ? 0 : interned->number | FRAME_OF_INTERPRETER;
}

static const char *get_text_or_null(const char *text)
{
    return text[0] == '\0' ? NULL : text;
}

static memrt_status_t describe_interpreter_frame(memrt_frame_t frame, memrt_frame_text_t *out)
{
    const memrt__interned_t *interned = memrt__interned_at(&frames, frame & ~FRAME_OF_INTERPRETER);
    if (interned == NULL) {
        return MEMRT_ENOENT;
    }
    const frame_t *known = (const frame_t *)interned->words;
    MEMRT__ASSERT(interned->length <= sizeof(*known));
    out->function = get_text_or_null(known->texts);
    out->file = get_text_or_null(known->texts + strlen(known->texts) + 1);
    out->line = known->line;
    return MEMRT_OK;
}

/// Look up a return address. After a call to a function that does not return, the return address
/// may lie in the next function. Therefore the preceding address is looked up.
static memrt_status_t describe_native_frame(memrt_frame_t frame, memrt_frame_text_t *out)
{
    Dl_info info;
    out->native = 1;
    out->offset = frame;
    if (dladdr((const void *)(uintptr_t)(frame - 1), &info) == 0 || info.dli_fname == NULL) {
        return MEMRT_OK;
    }
    const void *start = info.dli_sname != NULL ? info.dli_saddr : info.dli_fbase;
    out->function = info.dli_sname;
    out->file = info.dli_fname;
    out->offset = frame - (uintptr_t)start;
    return MEMRT_OK;
}

memrt_status_t memrt__frame_text(memrt_frame_t frame, memrt_frame_text_t *out)
{
    memrt_frame_text_t text = {.struct_size = out->struct_size};
    if (out->struct_size < sizeof(text)) {
        return MEMRT_EINVAL;
    }
    if (frame == 0) {
        return MEMRT_ENOENT;
    }
    memrt_status_t status = (frame & FRAME_OF_INTERPRETER) != 0
                                ? describe_interpreter_frame(frame, &text)
                                : describe_native_frame(frame, &text);
    if (status == MEMRT_OK) {
        *out = text;
    }
    return status;
}

bool memrt__frame_is_native(memrt_frame_t frame)
{
    return (frame & FRAME_OF_INTERPRETER) == 0;
}

void memrt__frame_line(memrt_frame_t frame, char *line, size_t length)
{
    memrt_frame_text_t text = {.struct_size = sizeof(text)};
    if (memrt__frame_text(frame, &text) != MEMRT_OK) {
        snprintf(line, length, "?");
    } else if (text.native) {
        snprintf(line, length, "%s+%#llx in %s", text.function == NULL ? "" : text.function,
                 (unsigned long long)text.offset,
                 text.file == NULL ? "code made at run time" : text.file);
    } else {
        snprintf(line, length, "%s at %s:%llu", text.function == NULL ? "?" : text.function,
                 text.file == NULL ? "?" : text.file, (unsigned long long)text.line);
    }
}

memrt_status_t memrt__site_read(uint32_t number, memrt_site_t *out)
{
    const memrt__interned_t *site = memrt__interned_at(&sites, number);
    if (out->struct_size < sizeof(*out)) {
        return MEMRT_EINVAL;
    }
    if (site == NULL) {
        return MEMRT_ENOENT;
    }
    memrt__site_counters_t counters = memrt__site_counters_at(number);
    out->allocations = counters.count + memrt__load_relaxed(&site->allocations);
    out->bytes = counters.bytes + memrt__load_relaxed(&site->bytes);
    out->frames = site->length / sizeof(memrt_frame_t);
    return MEMRT_OK;
}

size_t memrt__site_frames(uint32_t number, memrt_frame_t *out, size_t max)
{
    const memrt__interned_t *site = memrt__interned_at(&sites, number);
    if (site == NULL) {
        return 0;
    }
    MEMRT__ASSERT(site->length % sizeof(memrt_frame_t) == 0);
    size_t count = site->length / sizeof(memrt_frame_t);
    memcpy(out, site->words, memrt__size_min(count, max) * sizeof(*out));
    return count;
}

size_t memrt__site_text(uint32_t number, char *text, size_t length)
{
    memrt_frame_t list[2 * MEMRT_FRAMES_MAX];
    size_t used = 0, count = memrt__site_frames(number, list, 2 * MEMRT_FRAMES_MAX);
    MEMRT__ASSERT(length != 0);
    text[0] = '\0';
    for (size_t i = 0; i < count; i++) {
        char line[MEMRT__FRAME_LINE];
        if (memrt__frame_is_native(list[i])) {
            continue;
        }
        memrt__frame_line(list[i], line, sizeof(line));
        size_t wrote = (size_t)snprintf(text + used, length - used, "    %s\n", line);
        if (wrote >= length - used) {
            text[used] = '\0'; /* keep whole lines only */
            break;
        }
        used += wrote;
    }
    return used;
}

#if MEMRT_DEBUG

/// Check that each site is an array of frames, innermost first.
static bool are_sites_valid(void)
{
    const memrt__interned_t *site;
    size_t most = 2 * MEMRT_FRAMES_MAX * sizeof(memrt_frame_t);
    for (uint64_t number = 1; (site = memrt__interned_at(&sites, number)) != NULL; number++) {
        if (!MEMRT__HOLDS(site->length != 0 && site->length <= most) ||
            !MEMRT__HOLDS(site->length % sizeof(memrt_frame_t) == 0)) {
            return false;
        }
    }
    return true;
}

bool memrt__sites_is_valid(void)
{
    return memrt__interns_is_valid(&sites) && memrt__interns_is_valid(&frames) && are_sites_valid();
}

#endif
