#include "runtime/debug/site.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/atomics.h"
#include "runtime/base/size.h"
#include "runtime/base/unwind.h"
#include "runtime/debug/births.h"
#include "runtime/debug/interned.h"

/// No address of native code has this bit.
#define FRAME_OF_INTERPRETER ((memrt_frame_t)1 << 63)

/// How many of the innermost calls are memrt's own, on the way to a site: mostly, and at most. Were
/// there more, fewer of others would be recorded.
#define OWN_USUAL 2u
#define OWN_MAX 6u

/// Longest name of a function or file that is kept whole, in bytes.
#define TEXT_MAX 1024u

static memrt__interns_t sites;  /* of memrt_frame_t, innermost first */
static memrt__interns_t frames; /* of a line, and two texts */
static size_t source;           /* a memrt_frames_fn, or 0 */

/// What is interned of an interpreter's frame: the line, then the texts, each with its end.
typedef struct frame {
    uint64_t line;
    char texts[2 * TEXT_MAX];
} frame_t;

void memrt__site_set_frames(memrt_frames_fn fn)
{
    size_t word;
    _Static_assert(sizeof(word) == sizeof(fn), "a function's address fits a word");
    memcpy(&word, &fn, sizeof(word));
    memrt__store_release(&source, word);
}

static size_t frames_of_interpreter(memrt_frame_t *out, size_t max)
{
    size_t word = memrt__load_acquire(&source);
    memrt_frames_fn fn;
    memcpy(&fn, &word, sizeof(fn));
    return fn == NULL || max == 0 ? 0 : fn(out, max);
}

/// Calls from here on, up to `max`; `*own` of them, which come first, are memrt's.
static inline size_t unwind(void **calls, size_t max, size_t *own)
{
    int found = memrt__unwind(calls, (int)max);
    size_t count = found < 0 ? 0 : (size_t)found;
    *own = memrt__unwind_own(calls, count);
    return count;
}

/// The calls in native code up to memrt's own. Each step of a way takes time, and few ways have
/// more of memrt's own than usual, so these are gone twice.
static size_t frames_of_native_code(memrt_frame_t *out, size_t max)
{
    void *calls[MEMRT_FRAMES_MAX + OWN_MAX];
    size_t own;
    if (max == 0) {
        return 0;
    }
    size_t count = unwind(calls, max + OWN_USUAL, &own);
    if (own > OWN_USUAL) {
        count = unwind(calls, max + OWN_MAX, &own);
    }
    size_t left = memrt__size_min(count - own, max);
    for (size_t i = 0; i < left; i++) {
        out[i] = (memrt_frame_t)(uintptr_t)calls[own + i];
    }
    return left;
}

uint32_t memrt__site_here(size_t most_frames, size_t most_native)
{
    memrt_frame_t calls[2 * MEMRT_FRAMES_MAX];
    size_t count = frames_of_native_code(calls, memrt__size_min(most_native, MEMRT_FRAMES_MAX));
    count += frames_of_interpreter(calls + count, memrt__size_min(most_frames, MEMRT_FRAMES_MAX));
    if (count == 0) {
        return 0;
    }
    memrt__interned_t *site = memrt__intern(&sites, calls, count * sizeof(calls[0]));
    return site == NULL ? 0 : site->number;
}

void memrt__site_count(uint32_t number, size_t size)
{
    if (number != 0 && !memrt__births_add(number, size)) {
        memrt__interned_t *site = memrt__interned_at(&sites, number);
        memrt__fetch_add_relaxed(&site->births, 1);
        memrt__fetch_add_relaxed(&site->bytes, size);
    }
}

/// Append a text with its end, cut where it is too long; NULL is the empty one. Returns its end.
static char *append(char *to, const char *text)
{
    size_t length = text == NULL ? 0 : strnlen(text, TEXT_MAX - 1);
    if (length != 0) {
        memcpy(to, text, length);
    }
    to[length] = '\0';
    return to + length + 1;
}

memrt_frame_t memrt__frame_new(const char *function, const char *file, uint64_t line)
{
    frame_t frame = {.line = line};
    const char *end = append(append(frame.texts, function), file);
    memrt__interned_t *kept =
        memrt__intern(&frames, &frame, offsetof(frame_t, texts) + (size_t)(end - frame.texts));
    return kept == NULL ? 0 : kept->number | FRAME_OF_INTERPRETER;
}

static const char *text_or_null(const char *text)
{
    return text[0] == '\0' ? NULL : text;
}

static memrt_status_t text_of_interpreter(memrt_frame_t frame, memrt_frame_text_t *out)
{
    const memrt__interned_t *kept = memrt__interned_at(&frames, frame & ~FRAME_OF_INTERPRETER);
    if (kept == NULL) {
        return MEMRT_ENOENT;
    }
    const frame_t *known = (const frame_t *)kept->words;
    out->function = text_or_null(known->texts);
    out->file = text_or_null(known->texts + strlen(known->texts) + 1);
    out->line = known->line;
    return MEMRT_OK;
}

/// A return address may be the first of what comes after a function that does not return, so the
/// call before it is looked up.
static memrt_status_t text_of_native_code(memrt_frame_t frame, memrt_frame_text_t *out)
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
    memrt_status_t status = (frame & FRAME_OF_INTERPRETER) != 0 ? text_of_interpreter(frame, &text)
                                                                : text_of_native_code(frame, &text);
    if (status == MEMRT_OK) {
        *out = text;
    }
    return status;
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
    memrt__births_t births = memrt__births_at(number);
    out->births = births.count + memrt__load_relaxed(&site->births);
    out->bytes = births.bytes + memrt__load_relaxed(&site->bytes);
    out->frames = site->length / sizeof(memrt_frame_t);
    return MEMRT_OK;
}

size_t memrt__site_frames(uint32_t number, memrt_frame_t *out, size_t max)
{
    const memrt__interned_t *site = memrt__interned_at(&sites, number);
    if (site == NULL) {
        return 0;
    }
    size_t count = site->length / sizeof(memrt_frame_t);
    memcpy(out, site->words, memrt__size_min(count, max) * sizeof(*out));
    return count;
}
