/// Patterns by which allocators are judged: several threads, and blocks that outlive their thread.
/// Loaded by ctypes; a subject_t names the functions. Every function returns the wall-clock
/// nanoseconds of `count` blocks, and aborts when memory ran out.
///
/// No library has the patterns: mimalloc-bench has programs of the same kinds for malloc, not
/// for an allocator behind a table.

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "loop.h"

#define THREADS_MAX 8
#define SLOTS 1000     /* live blocks of a thread in larson() */
#define GENERATIONS 20 /* generations of threads in larson() */
#define SMALLEST 16    /* bytes */
#define RING 4096      /* blocks on the way to one consumer */
#define BATCH 4000     /* blocks of one thread in survivors() and exits() */
#define SURVIVE 8      /* one in SURVIVE blocks outlives the thread */
#define AGE 4          /* generations that a survivor lives */
#define WRITES 200     /* writes to one block in false_sharing() */

static void *make_or_abort(const subject_t *subject, size_t size)
{
    void *object = make(subject, size);
    if (object == NULL)
        abort(); /* other threads wait for the block */
    return object;
}

static void start(pthread_t *thread, void *(*run)(void *), void *argument)
{
    if (pthread_create(thread, NULL, run, argument) != 0)
        abort();
}

/// Return a random number. The generator is xorshift32; the seed is never 0.
static uint32_t draw(uint32_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 17;
    *seed ^= *seed << 5;
    return *seed;
}

/* --- Larson: each generation of threads replaces blocks of another thread. --- */

typedef struct lane {
    pthread_t thread;
    const subject_t *subject;
    size_t size;
    size_t count;
    uint32_t seed;
    void *slots[SLOTS];
} lane_t;

static void *replace_blocks(void *argument)
{
    lane_t *lane = argument;
    for (size_t i = 0; i < lane->count; i++) {
        void **slot = &lane->slots[draw(&lane->seed) % SLOTS];
        if (*slot != NULL)
            drop(lane->subject, *slot);
        *slot = make_or_abort(lane->subject, SMALLEST + draw(&lane->seed) % lane->size);
    }
    return NULL;
}

static void free_lane(lane_t *lane)
{
    for (size_t i = 0; i < SLOTS; i++)
        if (lane->slots[i] != NULL)
            drop(lane->subject, lane->slots[i]);
}

/// Replace random blocks of random sizes below `size` in `threads` threads. New threads continue
/// with the blocks of ended threads.
uint64_t larson(const subject_t *subject, size_t size, size_t count, size_t threads)
{
    static lane_t lanes[THREADS_MAX];
    for (size_t i = 0; i < threads; i++)
        lanes[i] = (lane_t){.subject = subject,
                            .size = size,
                            .count = count / threads / GENERATIONS,
                            .seed = (uint32_t)i + 1};
    uint64_t begin = elapsed();
    for (size_t generation = 0; generation < GENERATIONS; generation++) {
        for (size_t i = 0; i < threads; i++)
            start(&lanes[i].thread, replace_blocks, &lanes[i]);
        for (size_t i = 0; i < threads; i++)
            pthread_join(lanes[i].thread, NULL);
    }
    uint64_t took = elapsed() - begin;
    for (size_t i = 0; i < threads; i++)
        free_lane(&lanes[i]);
    return took;
}

/* --- Asymmetric producer and consumers. --- */

/// Ring with one writer and one reader. The reader ends after `count` blocks.
typedef struct consumer {
    pthread_t thread;
    const subject_t *subject;
    size_t count;
    void *slots[RING];
    _Alignas(64) _Atomic size_t head; ///< written only by the producer
    _Alignas(64) _Atomic size_t tail; ///< written only by the consumer
} consumer_t;

static void *consume(void *argument)
{
    consumer_t *own = argument;
    for (size_t i = 0; i < own->count; i++) {
        while (atomic_load_explicit(&own->head, memory_order_acquire) == i)
            sched_yield();
        drop(own->subject, own->slots[i % RING]);
        atomic_store_explicit(&own->tail, i + 1, memory_order_release);
    }
    return NULL;
}

static void hand_to(consumer_t *consumer, void *object)
{
    size_t head = atomic_load_explicit(&consumer->head, memory_order_relaxed);
    while (head - atomic_load_explicit(&consumer->tail, memory_order_acquire) == RING)
        sched_yield();
    consumer->slots[head % RING] = object;
    atomic_store_explicit(&consumer->head, head + 1, memory_order_release);
}

/// Allocate on the calling thread, and free in turn on `threads` other threads.
uint64_t consumers(const subject_t *subject, size_t size, size_t count, size_t threads)
{
    static consumer_t all[THREADS_MAX];
    uint64_t begin = elapsed();
    for (size_t i = 0; i < threads; i++) {
        all[i].subject = subject;
        all[i].count = count / threads;
        atomic_store(&all[i].head, 0);
        atomic_store(&all[i].tail, 0);
        start(&all[i].thread, consume, &all[i]);
    }
    for (size_t i = 0; i < count / threads * threads; i++)
        hand_to(&all[i % threads], make_or_abort(subject, size));
    for (size_t i = 0; i < threads; i++)
        pthread_join(all[i].thread, NULL);
    return elapsed() - begin;
}

/* --- Survivors of many generations of threads, and exits of threads. --- */

typedef struct generation {
    pthread_t thread;
    const subject_t *subject;
    size_t size;
    void **survivors; ///< BATCH / SURVIVE blocks of an earlier generation, or NULLs
} generation_t;

static void free_survivors(const subject_t *subject, void **survivors)
{
    for (size_t i = 0; i < BATCH / SURVIVE; i++)
        if (survivors[i] != NULL)
            drop(subject, survivors[i]);
}

/// Allocate BATCH blocks, replace the survivors by one in SURVIVE, and free the rest.
static void *live_one_generation(void *argument)
{
    generation_t *own = argument;
    void *blocks[BATCH];
    for (size_t i = 0; i < BATCH; i++)
        blocks[i] = make_or_abort(own->subject, own->size);
    free_survivors(own->subject, own->survivors);
    for (size_t i = 0; i < BATCH; i++) {
        if (i % SURVIVE == 0)
            own->survivors[i / SURVIVE] = blocks[i];
        else
            drop(own->subject, blocks[i]);
    }
    return NULL;
}

/// Allocate in threads, one after the other. A thread frees most new blocks, and the survivors of
/// the thread AGE generations before.
uint64_t survivors(const subject_t *subject, size_t size, size_t count)
{
    static void *kept[AGE][BATCH / SURVIVE];
    uint64_t begin = elapsed();
    for (size_t i = 0; i < count / BATCH; i++) {
        generation_t own = {0, subject, size, kept[i % AGE]};
        start(&own.thread, live_one_generation, &own);
        pthread_join(own.thread, NULL);
    }
    uint64_t took = elapsed() - begin;
    for (size_t i = 0; i < AGE; i++) {
        free_survivors(subject, kept[i]);
        for (size_t k = 0; k < BATCH / SURVIVE; k++)
            kept[i][k] = NULL;
    }
    return took;
}

typedef struct leaver {
    pthread_t thread;
    const subject_t *subject;
    size_t size;
    void *blocks[BATCH];
} leaver_t;

static void *allocate_and_end(void *argument)
{
    leaver_t *own = argument;
    for (size_t i = 0; i < BATCH; i++)
        own->blocks[i] = make_or_abort(own->subject, own->size);
    return NULL;
}

static void free_all(leaver_t *leaver)
{
    pthread_join(leaver->thread, NULL);
    for (size_t i = 0; i < BATCH; i++)
        drop(leaver->subject, leaver->blocks[i]);
}

/// Allocate in `threads` threads, and free all blocks on the calling thread after the threads
/// ended.
uint64_t exits(const subject_t *subject, size_t size, size_t count, size_t threads)
{
    static leaver_t leavers[THREADS_MAX];
    uint64_t begin = elapsed();
    for (size_t done = 0; done < count; done += threads * BATCH) {
        for (size_t i = 0; i < threads; i++) {
            leavers[i].subject = subject;
            leavers[i].size = size;
            start(&leavers[i].thread, allocate_and_end, &leavers[i]);
        }
        for (size_t i = 0; i < threads; i++)
            free_all(&leavers[i]);
    }
    return elapsed() - begin;
}

/* --- False sharing: neighbours of one cache line in two threads. --- */

typedef struct writer {
    pthread_t thread;
    const subject_t *subject;
    size_t size;
    size_t count;
    void *object; ///< first block, allocated by the main thread
} writer_t;

static void *write_and_replace(void *argument)
{
    writer_t *own = argument;
    for (size_t i = 0; i < own->count; i++) {
        volatile char *data = data_of(own->subject, own->object);
        for (size_t k = 0; k < WRITES; k++)
            data[k % own->size]++;
        drop(own->subject, own->object);
        own->object = make_or_abort(own->subject, own->size);
    }
    drop(own->subject, own->object);
    return NULL;
}

/// Allocate one block for each thread side by side. Each thread writes to the block, frees the
/// block and allocates the next.
uint64_t false_sharing(const subject_t *subject, size_t size, size_t count, size_t threads)
{
    writer_t writers[THREADS_MAX];
    for (size_t i = 0; i < threads; i++)
        writers[i] = (writer_t){0, subject, size, count / threads, make_or_abort(subject, size)};
    uint64_t begin = elapsed();
    for (size_t i = 0; i < threads; i++)
        start(&writers[i].thread, write_and_replace, &writers[i]);
    for (size_t i = 0; i < threads; i++)
        pthread_join(writers[i].thread, NULL);
    return elapsed() - begin;
}

/* --- Many live blocks in several threads. --- */

typedef struct batch {
    pthread_t thread;
    const subject_t *subject;
    size_t size;
    size_t count;
} batch_t;

enum { LIVE = 64 };

static void *cycle_batches(void *argument)
{
    batch_t *own = argument;
    void *objects[LIVE];
    for (size_t done = 0; done < own->count; done += LIVE) {
        for (size_t i = 0; i < LIVE; i++)
            objects[i] = make_or_abort(own->subject, own->size);
        for (size_t i = 0; i < LIVE; i++)
            drop(own->subject, objects[i * 37 % LIVE]); /* 37: coprime to LIVE */
    }
    return NULL;
}

/// Allocate `count` blocks in each of `threads` threads, LIVE at a time, and free each batch in a
/// scattered order.
uint64_t many_in_threads(const subject_t *subject, size_t size, size_t count, size_t threads)
{
    batch_t batches[THREADS_MAX];
    uint64_t begin = elapsed();
    for (size_t i = 0; i < threads; i++) {
        batches[i] = (batch_t){0, subject, size, count};
        start(&batches[i].thread, cycle_batches, &batches[i]);
    }
    for (size_t i = 0; i < threads; i++)
        pthread_join(batches[i].thread, NULL);
    return elapsed() - begin;
}
