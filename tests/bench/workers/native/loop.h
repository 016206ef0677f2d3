#ifndef BENCH_LOOP_H
#define BENCH_LOOP_H

/// Steps of the loops over blocks. With BLOCKS, the functions of the subject are block_alloc and
/// block_free of memrt's table, which a NumPy handler calls with a context and a size.

#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "subject.h"

#define PAGE 4096
#define LINE 64

/// Return wall-clock time, for threads that may wait for each other.
static inline uint64_t elapsed(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static inline volatile char *data_of(const subject_t *subject, char *object)
{
    return subject->data_at < 0 ? object : *(char **)(void *)(object + subject->data_at);
}

/// Write a byte on each page of the data, like the first use of a block. The place in the page
/// moves by a cache line from page to page. Equal places of all pages would share one set of the
/// first-level cache, and the time would depend on other lines in that set.
static inline void touch(const subject_t *subject, char *object, size_t size)
{
    volatile char *data = data_of(subject, object);
    for (size_t at = 0; at < size; at += PAGE + LINE)
        data[at] = 1;
}

static inline void *allocate(const subject_t *subject, size_t size)
{
#ifdef BLOCKS
    return ((void *(*)(void *, size_t))(void (*)(void))subject->alloc)(NULL, size);
#else
    return subject->alloc(size);
#endif
}

static inline void drop(const subject_t *subject, void *object)
{
#ifdef BLOCKS
    ((void (*)(void *, void *, size_t))(void (*)(void))subject->release)(NULL, object, 0);
#else
    subject->release(object);
#endif
}

/// Allocate a block and write a byte on each page. Returns NULL when memory ran out.
static inline void *make(const subject_t *subject, size_t size)
{
    void *object = allocate(subject, size);
    if (object != NULL)
        touch(subject, object, size);
    return object;
}

#endif
