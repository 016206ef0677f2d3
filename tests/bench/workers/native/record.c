/// Record calls of malloc, calloc, realloc, memalign and free, for LD_PRELOAD.
///
/// Recording runs from record_start to record_stop, for at most LIMIT events. Only successful
/// allocations and frees of non-NULL blocks are recorded, under one lock.

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "trace.h"

#define LIMIT ((size_t)4000000) /* events; later calls are not recorded */

/* glibc's functions, under the names that stay available when malloc is replaced */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *block, size_t size);
void *__libc_memalign(size_t alignment, size_t size);
void __libc_free(void *block);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static event_t *events; /* under the lock; NULL: not recording */
static size_t used;
static int file = -1;

static void note(uint64_t call, const void *block, const void *old, size_t size)
{
    pthread_mutex_lock(&lock);
    if (events != NULL && used < LIMIT)
        events[used++] = (event_t){(uintptr_t)block, (uintptr_t)old, size, call};
    pthread_mutex_unlock(&lock);
}

/// Start recording into a new file at `path`. Returns 0, or -1 with errno.
int record_start(const char *path)
{
    file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (file < 0 || ftruncate(file, (off_t)(LIMIT * sizeof(event_t))) != 0)
        return -1;
    void *map = mmap(NULL, LIMIT * sizeof(event_t), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (map == MAP_FAILED)
        return -1;
    pthread_mutex_lock(&lock);
    events = map;
    used = 0;
    pthread_mutex_unlock(&lock);
    return 0;
}

/// Stop recording and close the file. Returns the number of events in the file, or 0 on failure.
size_t record_stop(void)
{
    pthread_mutex_lock(&lock);
    munmap(events, LIMIT * sizeof(event_t));
    events = NULL;
    pthread_mutex_unlock(&lock);
    if (ftruncate(file, (off_t)(used * sizeof(event_t))) != 0)
        used = 0;
    close(file);
    return used;
}

void *malloc(size_t size)
{
    void *block = __libc_malloc(size);
    if (block != NULL)
        note(TRACE_ALLOC, block, NULL, size);
    return block;
}

void *calloc(size_t count, size_t size)
{
    void *block = __libc_calloc(count, size);
    if (block != NULL)
        note(TRACE_CALLOC, block, NULL, count * size);
    return block;
}

void *realloc(void *old, size_t size)
{
    void *block = __libc_realloc(old, size);
    if (block != NULL)
        note(old == NULL ? TRACE_ALLOC : TRACE_REALLOC, block, old, size);
    return block;
}

void *memalign(size_t alignment, size_t size)
{
    void *block = __libc_memalign(alignment, size);
    if (block != NULL)
        note(TRACE_ALLOC, block, NULL, size);
    return block;
}

void *aligned_alloc(size_t alignment, size_t size)
{
    return memalign(alignment, size);
}

int posix_memalign(void **out, size_t alignment, size_t size)
{
    void *block = memalign(alignment, size);
    if (block == NULL)
        return ENOMEM;
    *out = block;
    return 0;
}

void free(void *block)
{
    if (block != NULL)
        note(TRACE_FREE, block, NULL, 0);
    __libc_free(block);
}
