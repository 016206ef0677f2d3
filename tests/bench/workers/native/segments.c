/// Many segments of memrt's page heap for the benchmark. Loaded by ctypes, compiled against memrt's
/// headers.

#include <memrt/memrt.h>

#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BLOCK (((size_t)1 << 20) - 4096) /* three blocks to a segment */
#define PER_SEGMENT 3

/// Figures of one run, in nanoseconds.
typedef struct figures {
    double alloc;   ///< processor time of the allocation of the blocks of a segment
    double release; ///< processor time of release_unused, per segment
    double fork;    ///< the longest time of a fork in memrt's prepare handler
} figures_t;

static uint64_t read_clock(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static uint64_t handler_began, handler_longest;

/* Handlers before a fork run in reverse order of registration. memrt registers its handler at
   start, between these two handlers. */
static void begin_handlers(void)
{
    handler_began = read_clock(CLOCK_MONOTONIC);
}

static void end_handlers(void)
{
    uint64_t took = read_clock(CLOCK_MONOTONIC) - handler_began;
    handler_longest = took > handler_longest ? took : handler_longest;
}

/// Register the handler that runs after memrt's handler. Call before memrt is loaded.
int segments_before(void)
{
    return pthread_atfork(end_handlers, NULL, NULL);
}

static size_t done; /* atomic */

static void *fork_repeatedly(void *context)
{
    size_t *forks = context;
    while (__atomic_load_n(&done, __ATOMIC_ACQUIRE) == 0) {
        pid_t child = fork();
        if (child == 0)
            _exit(0);
        if (child > 0)
            waitpid(child, NULL, 0);
        ++*forks;
    }
    return NULL;
}

/// Allocate the blocks of `count` segments, free all but one block of each segment, and release the
/// memory. If `forks` is not 0, a second thread forks during the release. Only the headers are
/// touched. Returns 0 without memory.
int segments_run(const memrt_api_t *api, size_t count, int forks, figures_t *out)
{
    static int registered;
    size_t blocks = count * PER_SEGMENT, made = 0, forked = 0;
    void **list = malloc(blocks * sizeof(*list));
    if (list == NULL || (!registered && pthread_atfork(begin_handlers, NULL, NULL) != 0))
        return 0;
    registered = 1;
    api->release_unused();
    uint64_t begin = read_clock(CLOCK_THREAD_CPUTIME_ID);
    while (made < blocks && (list[made] = api->block_alloc(NULL, BLOCK)) != NULL)
        made++;
    out->alloc = (double)(read_clock(CLOCK_THREAD_CPUTIME_ID) - begin) / (double)count;
    for (size_t i = 0; i < made; i++)
        if (i % PER_SEGMENT != 0)
            api->block_free(NULL, list[i], BLOCK);
    pthread_t thread;
    handler_longest = 0;
    done = 0;
    int threaded = forks && pthread_create(&thread, NULL, fork_repeatedly, &forked) == 0;
    begin = read_clock(CLOCK_THREAD_CPUTIME_ID);
    api->release_unused();
    out->release = (double)(read_clock(CLOCK_THREAD_CPUTIME_ID) - begin) / (double)count;
    __atomic_store_n(&done, 1, __ATOMIC_RELEASE);
    if (threaded)
        pthread_join(thread, NULL);
    out->fork = (double)handler_longest;
    for (size_t i = 0; i < made; i += PER_SEGMENT)
        api->block_free(NULL, list[i], BLOCK);
    free(list);
    return made == blocks;
}
