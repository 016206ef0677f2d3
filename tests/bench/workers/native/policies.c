/// Make and release a policy while many released policies still have live blocks.
///
/// usage: policies LIBRARY DEAD THREADS PAIRS
///
///   LIBRARY  path of a libmemrt
///   DEAD     number of policies that are released and have a live block of each thread
///   THREADS  number of threads, 64 at most
///   PAIRS    number of pairs of policy_new and policy_release per measurement
///
/// Prints the nanoseconds of a pair on the first thread: minimum of 7 measurements. The other
/// threads wait meanwhile.
///
/// No library has the loop: other allocators have no accounts of threads and policies.

#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <memrt/memrt.h>

#define POLICIES 4095
#define THREADS 64
#define REPEATS 7

static const memrt_api_t *api;
static memrt_policy_t *dead[POLICIES];
static size_t dead_count;
static pthread_barrier_t filled;

static void stop(const char *why)
{
    (void)fprintf(stderr, "policies: %s\n", why);
    exit(1);
}

static void *fill(void *context)
{
    for (size_t i = 0; i < dead_count; i++) {
        if (api->block_alloc(dead[i], 100) == NULL)
            stop("out of memory");
    }
    pthread_barrier_wait(&filled);
    return context;
}

static void *fill_and_wait(void *context)
{
    fill(context);
    pthread_barrier_wait(&filled); /* never returns: the process ends first */
    return context;
}

static memrt_policy_t *create_policy(void)
{
    memrt_policy_t *policy;
    if (api->policy_new(NULL, &policy) != MEMRT_OK)
        stop("policy_new failed");
    return policy;
}

static double measure_pairs(size_t pairs)
{
    struct timespec begin, end;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
    for (size_t i = 0; i < pairs; i++)
        api->policy_release(create_policy());
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
    double ns = (double)(end.tv_sec - begin.tv_sec) * 1e9 + (double)(end.tv_nsec - begin.tv_nsec);
    return ns / (double)pairs;
}

static void begin_threads(size_t threads)
{
    if (pthread_barrier_init(&filled, NULL, (unsigned)threads) != 0)
        stop("no barrier");
    for (size_t i = 1; i < threads; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, fill_and_wait, NULL) != 0)
            stop("no thread");
    }
    fill(NULL);
}

int main(int argc, char **argv)
{
    if (argc != 5)
        stop("expected LIBRARY DEAD THREADS PAIRS");
    void *library = dlopen(argv[1], RTLD_NOW);
    const memrt_api_t *(*get_api)(uint32_t, const char **) = NULL;
    if (library != NULL)
        *(void **)&get_api = dlsym(library, "memrt_get_api");
    const char *why = "no libmemrt";
    api = get_api == NULL ? NULL : get_api(MEMRT_ABI_MAJOR, &why);
    if (api == NULL)
        stop(why);
    dead_count = strtoul(argv[2], NULL, 10);
    size_t threads = strtoul(argv[3], NULL, 10), pairs = strtoul(argv[4], NULL, 10);
    if (dead_count > POLICIES - 1 || threads == 0 || threads > THREADS || pairs == 0)
        stop("a number is out of range");
    for (size_t i = 0; i < dead_count; i++)
        dead[i] = create_policy();
    begin_threads(threads);
    for (size_t i = 0; i < dead_count; i++)
        api->policy_release(dead[i]);
    double least = measure_pairs(pairs);
    for (int i = 1; i < REPEATS; i++) {
        double ns = measure_pairs(pairs);
        least = ns < least ? ns : least;
    }
    printf("%f\n", least);
    (void)fflush(stdout);
    _Exit(0); /* the other threads wait */
}
