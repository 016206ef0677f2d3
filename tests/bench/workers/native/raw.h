#ifndef BENCH_RAW_H
#define BENCH_RAW_H

/// Functions that allocate and free raw memory, with the signatures of NEP 49.

#include <stddef.h>

typedef struct raw {
    void *(*alloc)(void *context, size_t size);
    void *(*calloc)(void *context, size_t count, size_t size);
    void *(*realloc)(void *context, void *block, size_t size);
    void (*free)(void *context, void *block, size_t size);
} raw_t;

#endif
