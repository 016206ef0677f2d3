/* Preloaded library that makes calls of the C library fail, if memrt's libraries make the calls.
   Calls from all other code pass. The caller is found by its return address, in any thread.

   No library fails calls by their caller's library: libfiu fails calls of the whole process. */

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Kinds of calls, in the order of CALLS in faults.py. */
enum call { HEAP, MMAP, MUNMAP, MREMAP, MADVISE, MPROTECT, THREAD, CALLS };

typedef struct range {
    uintptr_t begin, end;
} range_t;

static range_t ranges[16]; /* code of memrt's libraries */
static size_t range_count;
static atomic_int struck = CALLS;
static atomic_ulong requests, first;
static atomic_int all_from_there;

/* Whether a path is one of memrt's libraries: the core or the extension. A folder may have any
   name. */
static int is_memrts_library(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash == NULL ? path : slash + 1;
    return strncmp(name, "libmemrt.so", 11) == 0 || strncmp(name, "_memrt.", 7) == 0;
}

/* Returns 1 if there are more code ranges than entries. */
static int note_code(struct dl_phdr_info *info, size_t size, void *context)
{
    (void)size;
    (void)context;
    if (!is_memrts_library(info->dlpi_name)) {
        return 0;
    }
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        if (header->p_type == PT_LOAD && (header->p_flags & PF_X) != 0) {
            if (range_count == sizeof(ranges) / sizeof(ranges[0])) {
                return 1;
            }
            uintptr_t begin = info->dlpi_addr + header->p_vaddr;
            ranges[range_count++] = (range_t){begin, begin + header->p_memsz};
        }
    }
    return 0;
}

/* Start to count calls of one kind by memrt. The nth call fails, or all calls from the nth on.
   Returns the number of code ranges that belong to memrt; 0 if there are too many. */
size_t refusing_strike(int call, unsigned long nth, int goes_on);
size_t refusing_strike(int call, unsigned long nth, int goes_on)
{
    range_count = 0;
    if (dl_iterate_phdr(note_code, NULL) != 0) {
        return 0;
    }
    atomic_store(&requests, 0);
    atomic_store(&first, nth);
    atomic_store(&all_from_there, goes_on);
    atomic_store(&struck, call);
    return range_count;
}

/* Stop all failures. Returns the number of counted calls by memrt. */
unsigned long refusing_relent(void);
unsigned long refusing_relent(void)
{
    atomic_store(&struck, CALLS);
    return atomic_load(&requests);
}

static int is_memrt(const void *caller)
{
    for (size_t i = 0; i < range_count; i++) {
        if ((uintptr_t)caller >= ranges[i].begin && (uintptr_t)caller < ranges[i].end) {
            return 1;
        }
    }
    return 0;
}

static int is_refused(int call, const void *caller)
{
    if (atomic_load_explicit(&struck, memory_order_acquire) != call || !is_memrt(caller)) {
        return 0;
    }
    unsigned long number = atomic_fetch_add(&requests, 1) + 1;
    unsigned long nth = atomic_load(&first);
    int refused = number == nth || (atomic_load(&all_from_there) && number > nth);
    errno = refused ? ENOMEM : errno;
    return refused;
}

#define REFUSED(call) is_refused(call, __builtin_return_address(0))

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *data, size_t size);
void *__libc_memalign(size_t align, size_t size);

void *malloc(size_t size)
{
    return REFUSED(HEAP) ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    return REFUSED(HEAP) ? NULL : __libc_calloc(count, size);
}

void *realloc(void *data, size_t size)
{
    return REFUSED(HEAP) ? NULL : __libc_realloc(data, size);
}

void *aligned_alloc(size_t align, size_t size)
{
    return REFUSED(HEAP) ? NULL : __libc_memalign(align, size);
}

int posix_memalign(void **out, size_t align, size_t size)
{
    void *data = REFUSED(HEAP) ? NULL : __libc_memalign(align, size);
    if (data == NULL) {
        return ENOMEM;
    }
    *out = data;
    return 0;
}

char *strdup(const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = REFUSED(HEAP) ? NULL : __libc_malloc(size);
    return copy == NULL ? NULL : memcpy(copy, text, size);
}

void *mmap(void *address, size_t size, int protection, int flags, int file, off_t offset)
{
    return REFUSED(MMAP)
               ? MAP_FAILED
               : (void *)syscall(SYS_mmap, address, size, protection, flags, file, offset);
}

int munmap(void *address, size_t size)
{
    return REFUSED(MUNMAP) ? -1 : (int)syscall(SYS_munmap, address, size);
}

void *mremap(void *address, size_t old_size, size_t new_size, int flags, ...)
{
    va_list more;
    va_start(more, flags);
    void *target = (flags & MREMAP_FIXED) != 0 ? va_arg(more, void *) : NULL;
    va_end(more);
    return REFUSED(MREMAP)
               ? MAP_FAILED
               : (void *)syscall(SYS_mremap, address, old_size, new_size, flags, target);
}

int madvise(void *address, size_t size, int advice)
{
    return REFUSED(MADVISE) ? -1 : (int)syscall(SYS_madvise, address, size, advice);
}

int mprotect(void *address, size_t size, int protection)
{
    return REFUSED(MPROTECT) ? -1 : (int)syscall(SYS_mprotect, address, size, protection);
}

typedef int (*create_fn)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *),
                   void *context)
{
    void *symbol = dlsym(RTLD_NEXT, "pthread_create");
    create_fn real;
    memcpy(&real, &symbol, sizeof(real));
    return REFUSED(THREAD) ? EAGAIN : real(thread, attributes, start, context);
}
