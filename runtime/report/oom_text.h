#ifndef MEMRT_REPORT_OOM_TEXT_H
#define MEMRT_REPORT_OOM_TEXT_H

#include <stddef.h>
#include <stdint.h>

/// Text of the out-of-memory report, written without allocations.

/// Number of sites, of scopes, and of named buffers in a report.
#define MEMRT__OOM_SHOWN 3u

/// Text that grows at its end, cut to the given room.
typedef struct memrt__writing {
    char *text;
    size_t room, length; ///< bytes; `length` counts the uncut text
} memrt__writing_t;

__attribute__((format(printf, 2, 3))) void memrt__writing_append(memrt__writing_t *writing,
                                                                 const char *format, ...);

/// Append a number of bytes in a unit, between two texts.
void memrt__writing_append_bytes(memrt__writing_t *writing, const char *before, uint64_t bytes,
                                 const char *after);

#endif
