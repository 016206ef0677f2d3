#include "runtime/alloc/placed/prefault.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>

#include "runtime/base/shield.h"
#include "runtime/base/size.h"
#include "runtime/os/lock.h"
#include "runtime/os/os.h"
#include "runtime/os/placement.h"

#define PART_MIN ((size_t)8 << 20)

/// Part of a range for one thread.
typedef struct part {
    char *start;
    size_t bytes;
    uint64_t nodes;
    int error;
    bool has_thread;
    pthread_t thread;
} part_t;

static void *run_part(void *context)
{
    part_t *part = context;
    if (part->nodes != 0) {
        memrt__os_run_on_nodes(part->nodes);
    }
    part->error = memrt__os_populate_all(part->start, part->bytes);
    return NULL;
}

/// Start a thread for each part but the first. The threads receive no signals of the program.
static void start_threads(part_t *parts, size_t count)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    for (size_t i = 1; i < count; i++) {
        parts[i].has_thread = pthread_create(&parts[i].thread, NULL, run_part, &parts[i]) == 0;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/// Return the end of a part: a multiple of a huge page, so that no huge page belongs to two parts.
static char *get_end(char *start, size_t bytes, size_t part, size_t count)
{
    uintptr_t end = (uintptr_t)start + bytes / count * (part + 1);
    return part + 1 == count ? start + bytes : (char *)(end / MEMRT__HUGE_PAGE * MEMRT__HUGE_PAGE);
}

static size_t count_parts(size_t bytes, unsigned threads)
{
    size_t most = memrt__lock_is_forking() ? 1 : memrt__size_min(threads, MEMRT__PREFAULT_THREADS);
    return memrt__size_max(memrt__size_min(most, bytes / PART_MIN), 1);
}

int memrt__prefault(void *start, size_t bytes, unsigned threads, uint64_t nodes)
{
    MEMRT__SHIELD;
    part_t parts[MEMRT__PREFAULT_THREADS];
    size_t count = count_parts(bytes, threads);
    char *next = start;
    int error = 0;
    for (size_t i = 0; i < count; i++) {
        char *end = get_end(start, bytes, i, count);
        parts[i] = (part_t){.start = next, .bytes = (size_t)(end - next), .nodes = nodes};
        next = end;
    }
    if (count > 1) {
        start_threads(parts, count);
    }
    for (size_t i = 0; i < count; i++) {
        if (!parts[i].has_thread) {
            parts[i].nodes = 0; /* the caller stays on its processors */
            run_part(&parts[i]);
        }
    }
    for (size_t i = 0; i < count; i++) {
        if (parts[i].has_thread) {
            pthread_join(parts[i].thread, NULL);
        }
        error = error == 0 ? parts[i].error : error;
    }
    return error;
}
