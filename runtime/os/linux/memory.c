#include "runtime/os/os.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "runtime/base/atomics.h"
#include "runtime/base/compiler.h"
#include "runtime/base/shield.h"
#include "runtime/base/size.h"
#include "runtime/os/latency.h"
#include "runtime/os/mapping_table.h"

/* Mappings, resident bytes, ids and environment of the process, on Linux. */

extern char **environ;

size_t memrt__os_page_size(void)
{
    static size_t page; /* every thread writes the same value */
    size_t size = memrt__load_relaxed(&page);
    if (size == 0) {
        size = (size_t)sysconf(_SC_PAGESIZE);
        memrt__store_relaxed(&page, size);
    }
    return size;
}

#define ACCESSIBLE (PROT_READ | PROT_WRITE)

static void *map_pages(size_t size, int protection)
{
    void *address = mmap(NULL, size, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return address == MAP_FAILED ? NULL : address;
}

static void *map_aligned_pages(size_t size, size_t lead, size_t align, int protection)
{
    size_t page = memrt__os_page_size();
    MEMRT__ASSERT(size != 0 && size % page == 0 && lead % page == 0);
    MEMRT__ASSERT(memrt__is_power_of_two(align));
    if (align <= page) {
        return map_pages(size, protection);
    }
    /* Map more than requested, then unmap both ends. An end that cannot be unmapped stays mapped,
       unused. */
    size_t wide;
    if (!memrt__size_add(size, align - page, &wide)) {
        return NULL;
    }
    char *start = map_pages(wide, protection);
    if (start == NULL) {
        return NULL;
    }
    /* Bytes from `start` to the first address A with A + lead at a multiple of `align`. */
    size_t before = (size_t)(-((uintptr_t)start + lead) & (align - 1));
    size_t after = wide - before - size;
    MEMRT__ASSERT(before % page == 0 && after % page == 0 && before <= wide - size);
    if (before != 0) {
        munmap(start, before);
    }
    if (after != 0) {
        munmap(start + before + size, after);
    }
    return start + before;
}

void *memrt__os_map(size_t size, size_t lead, size_t align)
{
    MEMRT__KEEP_ERRNO;
    MEMRT__TIMED(MEMRT_LATENCY_MAP);
    void *mapping = map_aligned_pages(size, lead, align, ACCESSIBLE);
    if (mapping != NULL) {
        memrt__mapping_table_add(mapping, size);
    }
    return mapping;
}

void *memrt__os_reserve(size_t size, size_t align)
{
    MEMRT__KEEP_ERRNO;
    MEMRT__TIMED(MEMRT_LATENCY_MAP);
    return map_aligned_pages(size, 0, align, PROT_NONE);
}

/// Change the access to part of a reservation. A new mapping replaces pages that lose the access,
/// because the system counts pages without access as memory that the process may still use.
static bool set_access(char *address, size_t size, bool accessible)
{
    return accessible ? mprotect(address, size, ACCESSIBLE) == 0
                      : mmap(address, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
                             0) != MAP_FAILED;
}

bool memrt__os_commit(void *address, size_t old_size, size_t new_size)
{
    MEMRT__KEEP_ERRNO;
    MEMRT__TIMED(MEMRT_LATENCY_MAP);
    bool grows = new_size > old_size;
    char *start = (char *)address + memrt__size_min(old_size, new_size);
    MEMRT__ASSERT(new_size != 0 && new_size != old_size);
    if (!set_access(start, grows ? new_size - old_size : old_size - new_size, grows)) {
        return false;
    }
    if (old_size == 0) {
        memrt__mapping_table_add(address, new_size);
    } else {
        memrt__mapping_table_restore(memrt__mapping_table_remove(address), address, new_size);
    }
    return true;
}

bool memrt__os_unmap(void *address, size_t size)
{
    MEMRT__KEEP_ERRNO;
    MEMRT__TIMED(MEMRT_LATENCY_UNMAP);
    MEMRT__ASSERT((size_t)address % memrt__os_page_size() == 0 && size != 0);
    size_t word = memrt__mapping_table_remove(address);
    if (munmap(address, size) != 0) {
        memrt__mapping_table_restore(word, address, size);
        return false;
    }
    return true;
}

#if MEMRT__THREAD_SANITIZER
/* ThreadSanitizer does not notice that a mapping moves. At the new address, accesses to an earlier
   mapping look like races with accesses to the moved mapping. So mappings do not move, and a
   mapping that cannot grow in place is refused. */
#define MAY_MOVE 0
#else
#define MAY_MOVE MREMAP_MAYMOVE
#endif

void *memrt__os_remap(void *address, size_t old_size, size_t new_size, bool may_move)
{
    MEMRT__KEEP_ERRNO;
    MEMRT__TIMED(MEMRT_LATENCY_REMAP);
    MEMRT__ASSERT((size_t)address % memrt__os_page_size() == 0);
    MEMRT__ASSERT(old_size % memrt__os_page_size() == 0 && new_size % memrt__os_page_size() == 0);
    size_t word = memrt__mapping_table_remove(address);
    void *moved = mremap(address, old_size, new_size, may_move ? MAY_MOVE : 0);
    if (moved == MAP_FAILED) {
        memrt__mapping_table_restore(word, address, old_size);
        return NULL;
    }
    memrt__mapping_table_restore(word, moved, new_size);
    return moved;
}

bool memrt__os_discard(void *address, size_t size)
{
    MEMRT__KEEP_ERRNO;
    MEMRT__TIMED(MEMRT_LATENCY_DISCARD);
    MEMRT__ASSERT((size_t)address % memrt__os_page_size() == 0);
    return madvise(address, size, MADV_DONTNEED) == 0;
}

bool memrt__os_forbid_access(void *address, size_t size)
{
    MEMRT__KEEP_ERRNO;
    MEMRT__ASSERT((size_t)address % memrt__os_page_size() == 0);
    return mprotect(address, size, PROT_NONE) == 0;
}

/// Set the protection of a range. Returns 0, or the errno.
static int protect_range(void *address, size_t size, int protection)
{
    MEMRT__KEEP_ERRNO;
    MEMRT__ASSERT((size_t)address % memrt__os_page_size() == 0);
    return mprotect(address, size, protection) == 0 ? 0 : errno;
}

int memrt__os_forbid_writes(void *address, size_t size)
{
    return protect_range(address, size, PROT_READ);
}

int memrt__os_allow_writes(void *address, size_t size)
{
    return protect_range(address, size, PROT_READ | PROT_WRITE);
}

bool memrt__os_read(const void *address, void *out, size_t size)
{
    MEMRT__KEEP_ERRNO;
    struct iovec local = {out, size}, remote = {(void *)(uintptr_t)address, size};
    return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == (ssize_t)size;
}

void memrt__os_advise_huge(void *address, size_t size, bool huge)
{
    MEMRT__KEEP_ERRNO;
    MEMRT__TIMED(MEMRT_LATENCY_ADVISE);
    memrt__mapping_table_ask_huge(address, huge);
    madvise(address, size, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
}

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* headers before Linux 5.14 */
#endif

bool memrt__os_populate(void *address, size_t size)
{
    MEMRT__KEEP_ERRNO;
    MEMRT__TIMED(MEMRT_LATENCY_ADVISE);
    size_t lead = (size_t)address & (memrt__os_page_size() - 1);
    return madvise((char *)address - lead, size + lead, MADV_POPULATE_WRITE) == 0 ||
           errno == ENOMEM;
}

/// Reads field 2 of /proc/self/statm, the resident pages, without stdio, because stdio allocates.
size_t memrt__os_resident(void)
{
    MEMRT__SHIELD;
    char line[64] = "";
    int file = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        return 0;
    }
    ssize_t length = read(file, line, sizeof(line) - 1);
    close(file);
    const char *second = length > 0 ? strchr(line, ' ') : NULL;
    return second == NULL ? 0 : strtoul(second, NULL, 10) * memrt__os_page_size();
}

#define RESIDENT_STEP 2048u /* pages for each call of the system */

size_t memrt__os_resident_part(uintptr_t address, size_t bytes)
{
    MEMRT__KEEP_ERRNO;
    unsigned char in_memory[RESIDENT_STEP];
    size_t page = memrt__os_page_size(), pages = 0;
    MEMRT__ASSERT(address % page == 0 && bytes % page == 0);
    for (size_t done = 0; done < bytes; done += RESIDENT_STEP * page) {
        size_t length = memrt__size_min(bytes - done, RESIDENT_STEP * page);
        if (mincore((void *)(address + done), length, in_memory) == 0) {
            for (size_t i = 0; i < length / page; i++) {
                pages += in_memory[i] & 1;
            }
        }
    }
    return pages * page;
}

uint64_t memrt__os_random(void)
{
    uint64_t random;
    if (getrandom(&random, sizeof(random), GRND_NONBLOCK) != (ssize_t)sizeof(random)) {
        random = (memrt__os_now_ns() ^ (uint64_t)(uintptr_t)&random) * MEMRT__HASH_FACTOR;
    }
    return random;
}

uint64_t memrt__os_thread_id(void)
{
    return (uint64_t)syscall(SYS_gettid);
}

uint64_t memrt__os_process_id(void)
{
    return (uint64_t)getpid();
}

const char *memrt__os_environment(const char *name)
{
    return secure_getenv(name);
}

const char *memrt__os_environment_row(size_t index)
{
    if (environ == NULL || getauxval(AT_SECURE) != 0) {
        return NULL;
    }
    size_t rows = 0;
    while (rows < index && environ[rows] != NULL) {
        rows++;
    }
    return environ[rows];
}
