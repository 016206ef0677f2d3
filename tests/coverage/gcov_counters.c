/// Share the branch counters of gcov between a test program and its forked children: a part of the
/// test programs in coverage builds. A child may then end in any way without a loss of counts, and
/// only the program itself writes the counters into files. gcc counts with atomic instructions.

#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>

/* Set by gcov_counters.ld, to whole pages. */
extern char memrt_gcov_start[], memrt_gcov_stop[];

/* The linker wraps these calls. */
void *__real_mmap(void *address, size_t size, int access, int flags, int file, long offset);
void *__real_mremap(void *address, size_t old_size, size_t size, int flags, void *target);
void __real___gcov_exit(void);
void __wrap___gcov_exit(void);

static bool is_child;

static void note_child(void)
{
    is_child = true;
}

/// Each object of memrt registers the call as its destructor. The first call writes all counters.
void __wrap___gcov_exit(void)
{
    if (!is_child) {
        __real___gcov_exit();
    }
}

/// Runs before other constructors. Without memory, the counters stay private.
__attribute__((constructor(101))) static void share_counters(void)
{
    size_t size = (size_t)(memrt_gcov_stop - memrt_gcov_start);
    int access = PROT_READ | PROT_WRITE;
    void *shared = __real_mmap(NULL, size, access, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared != MAP_FAILED && pthread_atfork(NULL, NULL, note_child) == 0) {
        memcpy(shared, memrt_gcov_start, size);
        __real_mremap(shared, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, memrt_gcov_start);
    }
}
