#ifndef BENCH_TRACE_H
#define BENCH_TRACE_H

/// One call of an allocator, as record.c writes it and replay.c repeats it.

#include <stdint.h>

enum { TRACE_ALLOC = 1, TRACE_CALLOC = 2, TRACE_REALLOC = 3, TRACE_FREE = 4 };

typedef struct event {
    uint64_t block; ///< what the call returned, or freed: an address, later a number
    uint64_t old;   ///< of a realloc: what it was given
    uint64_t size;  ///< bytes
    uint64_t call;  ///< TRACE_*
} event_t;

#endif
