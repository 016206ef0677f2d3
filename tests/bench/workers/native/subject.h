#ifndef BENCH_SUBJECT_H
#define BENCH_SUBJECT_H

/// Functions that the loops call. blocks.py fills in the structure.

#include <stddef.h>
#include <stdint.h>

typedef struct subject {
    void *(*alloc)(size_t size);
    void (*release)(void *object);
    void (*acquire)(void *object); ///< NULL: the subject counts no references
    ptrdiff_t data_at;       ///< offset of the data pointer in an object; -1: the object is data
    uint64_t (*clock)(void); ///< clock of the subject; NULL: processor time
} subject_t;

#endif
