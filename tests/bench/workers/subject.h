#ifndef BENCH_SUBJECT_H
#define BENCH_SUBJECT_H

/// What the loops call, as blocks.py fills it in.

#include <stddef.h>
#include <stdint.h>

typedef struct subject {
    void *(*alloc)(size_t size);
    void (*release)(void *object);
    void (*acquire)(void *object); ///< NULL: the subject counts no references
    ptrdiff_t data_at;       ///< where the object holds the pointer to its data; -1: it is the data
    uint64_t (*clock)(void); ///< what time is taken from; NULL: the loop's own
} subject_t;

#endif
