/* Measure the cost of memrt under the settings of the environment. Prints a number per line, in the
   order of ROWS of checking.py: bytes of resident memory of a live block, then nanoseconds of
   processor time of operations. */

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <memrt/memrt.h>

#define BLOCKS 20000

static const memrt_api_t *api;

static double now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static void print_cost_of_a_block(size_t size, size_t times)
{
    double begin = now_ns();
    for (size_t i = 0; i < times; i++) {
        void *data = api->block_alloc(NULL, size);
        if (data == NULL) {
            exit(1);
        }
        api->block_free(NULL, data, size);
    }
    printf("%.1f\n", (now_ns() - begin) / (double)times);
}

static void print_cost_of_a_reference(size_t times)
{
    memrt_meminfo_t *mi = api->allocate(100);
    if (mi == NULL) {
        exit(1);
    }
    double begin = now_ns();
    for (size_t i = 0; i < times; i++) {
        api->acquire(mi);
        api->release(mi);
    }
    printf("%.1f\n", (now_ns() - begin) / (double)times);
    api->release(mi);
}

static size_t resident_pages(void)
{
    size_t whole, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL || fscanf(file, "%zu %zu", &whole, &resident) != 2) {
        exit(1);
    }
    fclose(file);
    return resident;
}

static void print_memory_of_a_block(size_t size)
{
    static void *blocks[BLOCKS];
    size_t before = resident_pages();
    for (size_t i = 0; i < BLOCKS; i++) {
        blocks[i] = api->block_calloc(NULL, 1, size);
    }
    size_t bytes = (resident_pages() - before) * (size_t)sysconf(_SC_PAGESIZE);
    printf("%zu\n", bytes / BLOCKS);
    for (size_t i = 0; i < BLOCKS; i++) {
        api->block_free(NULL, blocks[i], size);
    }
}

int main(int argc, char **argv)
{
    size_t times = argc > 1 ? strtoul(argv[1], NULL, 10) : 1000;
    api = memrt_get_api(MEMRT_ABI_MAJOR, NULL);
    if (api == NULL) {
        return 1;
    }
    print_memory_of_a_block(100);
    print_cost_of_a_block(100, times);
    print_cost_of_a_block(10000, times);
    print_cost_of_a_block((size_t)4 << 20, times / 100 + 1);
    print_cost_of_a_reference(times);
    return 0;
}
