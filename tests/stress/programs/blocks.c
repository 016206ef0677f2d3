/// Allocate, resize and free blocks of random sizes and lifetimes through the table.
///
/// Threads start and end continuously, and each thread also frees blocks of the other threads.
///
/// usage: blocks SECONDS ROUNDS LEAK
///
/// LEAK is none, or a seeded bug: `blocks` forgets blocks, `pages` leaks memory unknown to memrt.
/// At the end of each round all its threads have ended, and the remaining blocks stay live. The
/// program then prints one line of JSON; Sample in flatness.py describes the fields.
///
/// No library replaces the program: stress-ng allocates by malloc, not by memrt's table.

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <memrt/memrt.h>

#define THREADS 4
#define PLACES 256
#define SIZE_LOG2 24              /* sizes are 1 B to 16 MiB, uniform on a log scale */
#define BUDGET ((size_t)96 << 20) /* maximum of bytes held; the cache grows with this maximum */
#define PAGE 4096u
#define LOST ((size_t)4 << 20)
#define LEAK_EVERY 100u

/// Place for one block, shared by all threads. The lock covers the remaining fields.
typedef struct place {
    pthread_mutex_t lock;
    char *data; ///< NULL: no block
    size_t size;
    memrt_meminfo_t *mi; ///< NULL: a raw block
} place_t;

typedef enum leak { LEAK_NONE, LEAK_BLOCKS, LEAK_PAGES } leak_t;

static const memrt_api_t *api;
static place_t places[PLACES];
static atomic_size_t held, made, threads;
static atomic_bool ending;
static leak_t leak;

static void require(bool condition, const char *what)
{
    if (!condition) {
        fprintf(stderr, "blocks: %s\n", what);
        exit(EXIT_FAILURE);
    }
}

static size_t next_random(uint64_t *state, size_t limit)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return (size_t)(*state >> 11) % limit;
}

static size_t random_size(uint64_t *state)
{
    size_t above = (size_t)1 << next_random(state, SIZE_LOG2);
    return above + next_random(state, above);
}

static void touch(char *data, size_t size)
{
    for (size_t at = 0; at < size; at += PAGE) {
        ((volatile char *)data)[at] = 1;
    }
}

static place_t take_out(place_t *place)
{
    pthread_mutex_lock(&place->lock);
    place_t taken = *place;
    place->data = NULL;
    pthread_mutex_unlock(&place->lock);
    return taken;
}

static void drop(place_t block)
{
    if (block.data == NULL) {
        return;
    }
    require(block.data[0] == 1, "a block was overwritten");
    if (block.mi != NULL) {
        api->release(block.mi);
    } else {
        api->block_free(NULL, block.data, block.size);
    }
    atomic_fetch_sub(&held, block.size);
}

static void drop_at(uint64_t *state)
{
    drop(take_out(&places[next_random(state, PLACES)]));
}

/// Count `size` bytes as held, after dropping blocks until the bytes fit in the budget. Four
/// threads keep at most a block of 16 MiB each meanwhile, so one thread always finds room.
static void make_room(uint64_t *state, size_t size)
{
    size_t before = atomic_load(&held);
    do {
        while (before + size > BUDGET) {
            drop_at(state);
            before = atomic_load(&held);
        }
    } while (!atomic_compare_exchange_weak(&held, &before, before + size));
}

static place_t make(uint64_t *state, size_t size)
{
    place_t block = {.size = size};
    size_t kind = next_random(state, 3);
    if (kind == 0) {
        require(api->meminfo_new(size, NULL, &block.mi) == MEMRT_OK, "out of memory");
        block.data = api->get_data(block.mi);
    } else {
        block.data = kind == 1 ? api->block_alloc(NULL, size) : api->block_calloc(NULL, 1, size);
    }
    require(block.data != NULL, "out of memory");
    touch(block.data, size);
    atomic_fetch_add(&made, 1);
    return block;
}

/// Resize a block. The budget has both sizes until the old block is gone.
static place_t resize(place_t block, size_t size)
{
    block.data = api->block_realloc(NULL, block.data, size);
    require(block.data != NULL && block.data[0] == 1, "resizing lost the block");
    touch(block.data, size);
    atomic_fetch_sub(&held, block.size);
    block.size = size;
    return block;
}

static void put_in(place_t *place, place_t block)
{
    pthread_mutex_lock(&place->lock);
    place_t old = *place;
    place->data = block.data;
    place->size = block.size;
    place->mi = block.mi;
    pthread_mutex_unlock(&place->lock);
    drop(old);
}

static void go_wrong(void)
{
    if (leak == LEAK_BLOCKS) {
        (void)api->allocate(PAGE);
    } else if (leak == LEAK_PAGES) {
        char *lost = malloc(LOST);
        require(lost != NULL, "out of memory");
        touch(lost, LOST);
    }
}

static void step(uint64_t *state)
{
    place_t *place = &places[next_random(state, PLACES)];
    size_t size = random_size(state);
    place_t block = take_out(place);
    size_t deed = next_random(state, 8);
    if (deed == 0 && block.data != NULL && block.mi == NULL) {
        make_room(state, size);
        put_in(place, resize(block, size));
        return;
    }
    drop(block);
    if (deed < 6) {
        make_room(state, size);
        put_in(place, make(state, size));
    }
    if (next_random(state, LEAK_EVERY) == 0) {
        go_wrong();
    }
}

static uint64_t seed(size_t number)
{
    return (number + 1) * 0x9E3779B97F4A7C15u;
}

static void *live_shortly(void *context)
{
    uint64_t state = seed(atomic_fetch_add(&threads, 1));
    for (int i = 0; i < 20; i++) {
        step(&state);
    }
    return context;
}

static void *work(void *context)
{
    uint64_t state = seed(atomic_fetch_add(&threads, 1));
    while (!atomic_load(&ending)) {
        for (int i = 0; i < 40; i++) {
            step(&state);
        }
        pthread_t brief;
        require(pthread_create(&brief, NULL, live_shortly, NULL) == 0, "pthread_create failed");
        pthread_join(brief, NULL);
    }
    return context;
}

static size_t number_in(const char *file, const char *name)
{
    char line[256], format[32];
    size_t found = 0;
    FILE *stream = fopen(file, "r");
    require(stream != NULL, file);
    snprintf(format, sizeof(format), "%s: %%zu kB", name);
    while (fgets(line, sizeof(line), stream) != NULL && sscanf(line, format, &found) != 1) {
    }
    fclose(stream);
    return found;
}

/// Reset the peak of the kernel to the memory resident now.
static void reset_peak(void)
{
    FILE *stream = fopen("/proc/self/clear_refs", "w");
    require(stream != NULL && fputs("5", stream) >= 0 && fclose(stream) == 0, "clear_refs");
}

static memrt_stats_t statistics(void)
{
    memrt_stats_t stats = {.struct_size = sizeof(stats)};
    require(api->stats_read(NULL, &stats) == MEMRT_OK, "cannot read statistics");
    return stats;
}

/// Return resident KiB and store the statistics, both read while `reserved` did not change.
static size_t resident(memrt_stats_t *stats)
{
    size_t found;
    memrt_stats_t before;
    do {
        before = statistics();
        found = number_in("/proc/self/smaps_rollup", "Rss");
        *stats = statistics();
    } while (before.reserved != stats->reserved);
    return found;
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void say(double seconds)
{
    memrt_stats_t stats;
    size_t kept = resident(&stats), peak = number_in("/proc/self/status", "VmHWM");
    printf("{\"seconds\": %.3f, \"peak\": %zu, \"resident\": %zu, \"held\": %zu, \"live\": %zu, "
           "\"cached\": %zu, \"reserved\": %zu, \"made\": %zu, \"threads\": %zu}\n",
           seconds, peak << 10, kept << 10, atomic_load(&held), (size_t)stats.live,
           (size_t)stats.cached, (size_t)stats.reserved, atomic_load(&made), atomic_load(&threads));
    fflush(stdout);
}

static void run_round(double seconds)
{
    pthread_t crew[THREADS];
    struct timespec time = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
    atomic_store(&ending, false);
    for (int i = 0; i < THREADS; i++) {
        require(pthread_create(&crew[i], NULL, work, NULL) == 0, "pthread_create failed");
    }
    nanosleep(&time, NULL);
    atomic_store(&ending, true);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(crew[i], NULL);
    }
}

static leak_t leak_named(const char *name)
{
    if (strcmp(name, "blocks") == 0) {
        return LEAK_BLOCKS;
    }
    return strcmp(name, "pages") == 0 ? LEAK_PAGES : LEAK_NONE;
}

int main(int argc, char **argv)
{
    require(argc == 4, "usage: blocks SECONDS ROUNDS LEAK");
    double seconds = strtod(argv[1], NULL), begin = now();
    int rounds = atoi(argv[2]);
    leak = leak_named(argv[3]);
    api = memrt_get_api(MEMRT_ABI_MAJOR, NULL);
    for (size_t i = 0; i < PLACES; i++) {
        pthread_mutex_init(&places[i].lock, NULL);
    }
    say(0);
    for (int round = 0; round < rounds; round++) {
        reset_peak();
        run_round(seconds / rounds);
        say(now() - begin);
    }
    return EXIT_SUCCESS;
}
