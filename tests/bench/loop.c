/// The loops that the benchmark times; loaded by ctypes, told what to call by address.

#include <stddef.h>
#include <stdint.h>
#include <time.h>

#define PAGE 4096
#define BATCH 64

typedef struct contender {
    void *(*alloc)(size_t size);
    void (*release)(void *object);
    ptrdiff_t data_at; ///< where the object holds the pointer to its data; -1: it is the data
} contender_t;

static uint64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/// Write a byte on each page, as the first use of a buffer does.
static void touch(const contender_t *contender, char *object, size_t size)
{
    volatile char *data = object;
    if (contender->data_at >= 0)
        data = *(char **)(void *)(object + contender->data_at);
    for (size_t at = 0; at < size; at += PAGE)
        data[at] = 1;
}

/// Nanoseconds for `count` buffers made and given back one at a time; 0: out of memory.
uint64_t loop_single(const contender_t *contender, size_t size, size_t count)
{
    uint64_t begin = now();
    for (size_t i = 0; i < count; i++) {
        void *object = contender->alloc(size);
        if (object == NULL)
            return 0;
        touch(contender, object, size);
        contender->release(object);
    }
    return now() - begin;
}

/// Nanoseconds for `count` buffers made in batches of BATCH and given back in order of birth.
uint64_t loop_batch(const contender_t *contender, size_t size, size_t count)
{
    void *objects[BATCH];
    uint64_t begin = now();
    for (size_t done = 0; done < count; done += BATCH) {
        for (size_t i = 0; i < BATCH; i++) {
            objects[i] = contender->alloc(size);
            if (objects[i] == NULL)
                return 0;
            touch(contender, objects[i], size);
        }
        for (size_t i = 0; i < BATCH; i++)
            contender->release(objects[i]);
    }
    return now() - begin;
}
