#include "runtime/report/oom_text.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

void memrt__writing_append(memrt__writing_t *writing, const char *format, ...)
{
    va_list arguments;
    bool fits = writing->length < writing->room;
    va_start(arguments, format);
    int length = vsnprintf(fits ? writing->text + writing->length : NULL,
                           fits ? writing->room - writing->length : 0, format, arguments);
    va_end(arguments);
    writing->length += length < 0 ? 0 : (size_t)length;
}

/// An amount of memory for display.
typedef struct amount {
    double number;
    const char *unit;
} amount_t;

static amount_t make_amount(uint64_t bytes)
{
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    amount_t amount = {(double)bytes, units[0]};
    for (size_t i = 1; amount.number >= 1024 && i < sizeof(units) / sizeof(units[0]); i++) {
        amount.number /= 1024;
        amount.unit = units[i];
    }
    return amount;
}

void memrt__writing_append_bytes(memrt__writing_t *writing, const char *before, uint64_t bytes,
                                 const char *after)
{
    amount_t amount = make_amount(bytes);
    memrt__writing_append(writing, bytes < 1024 ? "%s%.0f %s%s" : "%s%.1f %s%s", before,
                          amount.number, amount.unit, after);
}
