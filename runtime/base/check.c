#include "runtime/base/check.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/atomics.h"
#include "runtime/base/shield.h"

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
    text[length++] = '\n';
    ssize_t written = write(STDERR_FILENO, text, length);
    (void)written; /* no channel is left to report a failed write */
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
