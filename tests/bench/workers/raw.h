#ifndef BENCH_RAW_H
#define BENCH_RAW_H

/// Functions that give out raw memory, with NEP 49's signatures.

#include <stddef.h>

typedef struct raw {
    void *(*alloc)(void *context, size_t size);
    void *(*calloc)(void *context, size_t count, size_t size);
    void *(*realloc)(void *context, void *block, size_t size);
    void (*free)(void *context, void *block, size_t size);
} raw_t;

#endif
