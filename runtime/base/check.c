#include "runtime/base/check.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/atomics.h"
#include "runtime/base/shield.h"

static size_t write_frames; /* a memrt_write_frames_fn, or 0 */

void memrt__set_write_frames(memrt_write_frames_fn write)
{
    size_t word;
    memcpy(&word, &write, sizeof(word));
    memrt__store_release(&write_frames, word);
}

void memrt__write_running_calls(const char *heading)
{
    size_t word = memrt__load_acquire(&write_frames);
    memrt_write_frames_fn write_calls;
    memcpy(&write_calls, &word, sizeof(write_calls));
    if (write_calls != NULL) {
        (void)!write(STDERR_FILENO, heading, strlen(heading));
        write_calls(STDERR_FILENO);
    }
}

_Noreturn void memrt__abort(const char *format, ...)
{
    MEMRT__SHIELD; /* a pending cancellation must not replace the abort */
    char text[4096] = "memrt: ";
    size_t length = strlen(text);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text + length, sizeof(text) - length - 1, format, arguments);
    va_end(arguments);
    length = strlen(text);
    (void)!write(STDERR_FILENO, text, length); /* no channel is left to report a failed write */
    memrt__write_running_calls("\n  called at");
    (void)!write(STDERR_FILENO, "\n", 1);
    abort();
}

#if MEMRT_DEBUG

static size_t broken; /* relaxed; address of a text, 0: none */

bool memrt__invariant_record(const char *text)
{
    memrt__store_relaxed(&broken, (size_t)text);
    return false;
}

const char *memrt__invariant_broken(void)
{
    const char *text = (const char *)memrt__load_relaxed(&broken);
    return text == NULL ? "none" : text;
}

#endif
