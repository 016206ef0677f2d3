#include <errno.h>
#include <sys/mman.h>

#include "runtime/base/check.h"
#include "runtime/base/shield.h"
#include "runtime/base/size.h"
#include "runtime/os/latency.h"
#include "runtime/os/mapping_table.h"
#include "runtime/os/os.h"
#include "runtime/os/placement.h"

/* Pages of the pool (hugetlb), on Linux. */

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* headers before Linux 5.14 */
#endif
#ifndef MAP_HUGE_SHIFT
#define MAP_HUGE_SHIFT 26 /* log2 of the page size, from this bit of the flags on */
#endif
#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000 /* headers before Linux 4.17 */
#endif

#define PRIVATE (MAP_PRIVATE | MAP_ANONYMOUS)
#define ACCESSIBLE (PROT_READ | PROT_WRITE)

int memrt__os_populate_all(void *address, size_t size)
{
    MEMRT__KEEP_ERRNO;
    MEMRT__TIMED(MEMRT_LATENCY_ADVISE);
    return madvise(address, size, MADV_POPULATE_WRITE) == 0 ? 0 : errno;
}

void *memrt__os_map_pool(size_t size, size_t page, int *error)
{
    MEMRT__KEEP_ERRNO;
    MEMRT__TIMED(MEMRT_LATENCY_MAP);
    MEMRT__ASSERT(size != 0 && size % page == 0);
    int kind = (int)(memrt__floor_log2(page) << MAP_HUGE_SHIFT);
    void *pages = mmap(NULL, size, ACCESSIBLE, PRIVATE | MAP_HUGETLB | kind, -1, 0);
    *error = pages == MAP_FAILED ? errno : 0;
    return pages == MAP_FAILED ? NULL : pages;
}

int memrt__os_hide_from_child(void *address, size_t size)
{
    MEMRT__KEEP_ERRNO;
    return madvise(address, size, MADV_DONTFORK) == 0 ? 0 : errno;
}

/// Map small pages where the system refused a move after it took the old pages away. Does nothing
/// where the old pages are still there.
static void fill_gap(void *address, size_t size)
{
    void *pages = mmap(address, size, ACCESSIBLE, PRIVATE | MAP_FIXED_NOREPLACE, -1, 0);
    if (pages != MAP_FAILED && pages != address) {
        munmap(pages, size); /* before Linux 4.17, the flag has no effect */
    }
}

int memrt__os_move(void *from, size_t size, void *to)
{
    MEMRT__KEEP_ERRNO;
    MEMRT__TIMED(MEMRT_LATENCY_REMAP);
    if (mremap(from, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, to) == to) {
        return 0;
    }
    int error = errno;
    fill_gap(to, size);
    return error;
}

bool memrt__os_map_at(void *address, size_t size)
{
    MEMRT__KEEP_ERRNO;
    MEMRT__TIMED(MEMRT_LATENCY_MAP);
    void *pages = mmap(address, size, ACCESSIBLE, PRIVATE | MAP_FIXED_NOREPLACE, -1, 0);
    if (pages == address) {
        return true;
    }
    if (pages != MAP_FAILED) {
        munmap(pages, size);
    }
    return false;
}
