#ifndef BENCH_TRACE_H
#define BENCH_TRACE_H

/// One call of an allocator, as written by record.c and replayed by replay.c.

#include <stdint.h>

enum { TRACE_ALLOC = 1, TRACE_CALLOC = 2, TRACE_REALLOC = 3, TRACE_FREE = 4 };

typedef struct event {
    uint64_t block; ///< block returned or freed: an address in record.c, a number in replay.c
    uint64_t old;   ///< argument of a realloc: the old block
    uint64_t size;  ///< bytes
    uint64_t call;  ///< TRACE_*
} event_t;

#endif
