/// Loops over blocks, timed by the benchmark. Loaded by ctypes; a subject_t names the functions.
///
/// Every loop returns elapsed ticks, or 0 when memory ran out, except that handed_over() aborts.
/// Single-threaded loops use the clock of the subject or processor time. Loops with threads use
/// wall-clock time.
///
/// No library has the loops: benchmarks such as mimalloc-bench call malloc, not an allocator behind
/// a table.

#define _GNU_SOURCE /* sched_setaffinity() */

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include "loop.h"

#define RING 256

/// Return the processor time of the whole process, including work deferred to other threads.
static uint64_t spent(void)
{
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static uint64_t now(const subject_t *subject)
{
    return subject->clock != NULL ? subject->clock() : spent();
}

static int cycle_one(const subject_t *subject, size_t size, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        void *object = make(subject, size);
        if (object == NULL)
            return 0;
        drop(subject, object);
    }
    return 1;
}

/// Allocate and free `count` blocks in sequence.
uint64_t one_live(const subject_t *subject, size_t size, size_t count)
{
    uint64_t begin = now(subject);
    return cycle_one(subject, size, count) ? now(subject) - begin : 0;
}

static int cycle_many(const subject_t *subject, const size_t *sizes, const uint32_t *order,
                      size_t live, size_t count, void **objects)
{
    for (size_t done = 0; done < count; done += live) {
        for (size_t i = 0; i < live; i++) {
            objects[i] = make(subject, sizes[i]);
            if (objects[i] == NULL)
                return 0;
        }
        for (size_t i = 0; i < live; i++)
            drop(subject, objects[order[i]]);
    }
    return 1;
}

/// Allocate `count` blocks, `live` at a time, and free each batch in `order`.
/// `count` must be a multiple of `live`.
uint64_t many_live(const subject_t *subject, const size_t *sizes, const uint32_t *order,
                   size_t live, size_t count, void **objects)
{
    uint64_t begin = now(subject);
    return cycle_many(subject, sizes, order, live, count, objects) ? now(subject) - begin : 0;
}

/// Acquire and release `count` references to one block.
uint64_t references(const subject_t *subject, size_t size, size_t count)
{
    void *object = subject->alloc(size);
    if (object == NULL)
        return 0;
    uint64_t begin = now(subject);
    for (size_t i = 0; i < count; i++) {
        subject->acquire(object);
        subject->release(object);
    }
    uint64_t took = now(subject) - begin;
    subject->release(object);
    return took;
}

/// Run `count` pairs of locked adds to one word: the lower bound for references.
uint64_t locked_adds(const subject_t *subject, size_t size, size_t count)
{
    static _Atomic size_t word;
    (void)size;
    uint64_t begin = now(subject);
    for (size_t i = 0; i < count; i++) {
        atomic_fetch_add_explicit(&word, 1, memory_order_relaxed);
        atomic_fetch_sub_explicit(&word, 1, memory_order_release);
    }
    return now(subject) - begin;
}

typedef struct runner {
    pthread_t thread;
    const subject_t *subject;
    size_t size;
    size_t count;
    pthread_barrier_t *start;
    uint64_t took; ///< wall-clock nanoseconds; 0: memory ran out
} runner_t;

static void *run_alone(void *argument)
{
    runner_t *own = argument;
    pthread_barrier_wait(own->start);
    uint64_t begin = elapsed();
    own->took = cycle_one(own->subject, own->size, own->count) ? elapsed() - begin : 0;
    return NULL;
}

/// Allocate and free `count` blocks in sequence, in each of `threads` threads.
/// Returns the time of the slowest thread.
uint64_t in_threads(const subject_t *subject, size_t size, size_t count, size_t threads)
{
    runner_t *runners = calloc(threads, sizeof *runners);
    pthread_barrier_t start;
    pthread_barrier_init(&start, NULL, (unsigned)threads);
    for (size_t i = 0; i < threads; i++) {
        runners[i] = (runner_t){0, subject, size, count, &start, 0};
        pthread_create(&runners[i].thread, NULL, run_alone, &runners[i]);
    }
    uint64_t slowest = 0;
    for (size_t i = 0; i < threads; i++) {
        pthread_join(runners[i].thread, NULL);
        if (runners[i].took > slowest)
            slowest = runners[i].took;
    }
    pthread_barrier_destroy(&start);
    free(runners);
    return slowest;
}

/// Ring with one writer and one reader: the writer fills slots[head % RING], the reader empties
/// slots[tail % RING].
typedef struct ring {
    void *slots[RING];
    _Alignas(64) _Atomic size_t head; ///< written only by the allocating thread
    _Alignas(64) _Atomic size_t tail; ///< written only by the freeing thread
} ring_t;

typedef struct taker {
    const subject_t *subject;
    ring_t *ring;
    size_t count;
    cpu_set_t core;
} taker_t;

static void *take_all(void *argument)
{
    taker_t *own = argument;
    sched_setaffinity(0, sizeof(own->core), &own->core);
    for (size_t i = 0; i < own->count; i++) {
        while (atomic_load_explicit(&own->ring->head, memory_order_acquire) == i)
            sched_yield();
        drop(own->subject, own->ring->slots[i % RING]);
        atomic_store_explicit(&own->ring->tail, i + 1, memory_order_release);
    }
    return NULL;
}

static int make_all(const subject_t *subject, ring_t *ring, size_t size, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        while (i - atomic_load_explicit(&ring->tail, memory_order_acquire) == RING)
            sched_yield();
        ring->slots[i % RING] = make(subject, size);
        if (ring->slots[i % RING] == NULL)
            abort(); /* the freeing thread waits for the block */
        atomic_store_explicit(&ring->head, i + 1, memory_order_release);
    }
    return 1;
}

/// Return the set of the highest core of a set, and remove this core, unless the core is the last.
static cpu_set_t split_core(cpu_set_t *cores)
{
    cpu_set_t last;
    int core = CPU_SETSIZE - 1;
    while (core > 0 && !CPU_ISSET((size_t)core, cores))
        core--;
    CPU_ZERO(&last);
    CPU_SET((size_t)core, &last);
    if (CPU_COUNT(cores) > 1)
        CPU_CLR((size_t)core, cores);
    return last;
}

/// Allocate `count` blocks on this thread and free the blocks on another thread. Each thread has a
/// core of its own: threads that share a core take turns, and no cache line moves between cores.
uint64_t handed_over(const subject_t *subject, size_t size, size_t count)
{
    static ring_t ring;
    atomic_store(&ring.head, 0);
    atomic_store(&ring.tail, 0);
    cpu_set_t before, cores;
    sched_getaffinity(0, sizeof(before), &before);
    cores = before;
    taker_t taker = {subject, &ring, count, split_core(&cores)};
    pthread_t thread;
    pthread_create(&thread, NULL, take_all, &taker);
    sched_setaffinity(0, sizeof(cores), &cores);
    uint64_t begin = elapsed();
    make_all(subject, &ring, size, count);
    pthread_join(thread, NULL);
    uint64_t took = elapsed() - begin;
    sched_setaffinity(0, sizeof(before), &before);
    return took;
}

static void *live_shortly(void *argument)
{
    runner_t *own = argument;
    return cycle_one(own->subject, own->size, own->count) ? NULL : own;
}

/// Start `count` threads, one after the other; each allocates and frees one block.
uint64_t short_threads(const subject_t *subject, size_t size, size_t count)
{
    runner_t runner = {0, subject, size, 1, NULL, 0};
    uint64_t begin = elapsed();
    for (size_t i = 0; i < count; i++) {
        void *failed = NULL;
        if (pthread_create(&runner.thread, NULL, live_shortly, &runner) != 0)
            return 0;
        pthread_join(runner.thread, &failed);
        if (failed != NULL)
            return 0;
    }
    return elapsed() - begin;
}
