#include "runtime/base/check.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

_Noreturn void memrt__abort(const char *format, ...)
{
    char text[4096] = "memrt: ";
    size_t length = strlen(text);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text + length, sizeof(text) - length - 1, format, arguments);
    va_end(arguments);
    length = strlen(text);
    text[length++] = '\n';
    ssize_t written = write(STDERR_FILENO, text, length);
    (void)written; /* nobody is left to tell */
    abort();
}
