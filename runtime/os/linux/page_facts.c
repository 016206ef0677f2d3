#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/base/check.h"
#include "runtime/base/shield.h"
#include "runtime/base/size.h"
#include "runtime/os/linux/text_file.h"
#include "runtime/os/os.h"
#include "runtime/os/placement.h"

/* Facts about pages, from /proc/self/pagemap, /proc/self/smaps and move_pages(). */

#define STEP 512u /* pages or ranges for each call of the system */

/* --- The scan of Linux 6.7, with the kernel's layout in <linux/fs.h>. --- */

typedef struct scan_range {
    uint64_t start, end, categories;
} scan_range_t;

typedef struct scan {
    uint64_t size, flags, start, end, walk_end, vec, vec_len, max_pages;
    uint64_t category_inverted, category_mask, category_anyof_mask, return_mask;
} scan_t;

#define SCAN _IOWR('f', 16, scan_t)
#define IS_PRESENT (1u << 3)
#define IS_SWAPPED (1u << 4)
#define IS_ZERO_PAGE (1u << 5)
#define IS_HUGE (1u << 6)

static void add_range(const scan_range_t *range, memrt__page_facts_t *facts)
{
    uint64_t bytes = range->end - range->start;
    bool resident = (range->categories & (IS_PRESENT | IS_ZERO_PAGE)) == IS_PRESENT;
    facts->swapped += (range->categories & IS_SWAPPED) != 0 ? bytes : 0;
    facts->resident += resident ? bytes : 0;
    facts->huge += resident && (range->categories & IS_HUGE) != 0 ? bytes : 0;
}

/// Scan the pages. Returns false, with some facts added, where the system lacks the call.
static bool scan_pages(int file, uintptr_t address, size_t size, memrt__page_facts_t *facts)
{
    scan_range_t ranges[STEP] = {0}; /* for memcheck, which does not see that the call writes */
    scan_t scan = {.size = sizeof(scan),
                   .start = address,
                   .end = address + size,
                   .vec = (uintptr_t)ranges,
                   .vec_len = STEP,
                   .category_anyof_mask = IS_PRESENT | IS_SWAPPED,
                   .return_mask = IS_PRESENT | IS_SWAPPED | IS_ZERO_PAGE | IS_HUGE};
    while (scan.start < scan.end) {
        int count = ioctl(file, SCAN, &scan);
        if (count < 0) {
            return false;
        }
        for (int i = 0; i < count; i++) {
            add_range(&ranges[i], facts);
        }
        scan.start = scan.walk_end;
    }
    return true;
}

/* --- The page map of older systems. --- */

#define ENTRY_IS_PRESENT ((uint64_t)1 << 63)
#define ENTRY_IS_SWAPPED ((uint64_t)1 << 62)

static int read_page_map(int file, uintptr_t address, size_t size, memrt__page_facts_t *facts)
{
    uint64_t entries[STEP];
    size_t page = memrt__os_page_size(), pages = size / page, first = address / page;
    for (size_t done = 0; done < pages; done += STEP) {
        size_t count = memrt__size_min(pages - done, STEP);
        ssize_t length = (ssize_t)(count * sizeof(entries[0]));
        if (pread(file, entries, (size_t)length, (off_t)((first + done) * sizeof(entries[0]))) !=
            length) {
            return EIO;
        }
        for (size_t i = 0; i < count; i++) {
            facts->resident += (entries[i] & ENTRY_IS_PRESENT) != 0 ? page : 0;
            facts->swapped += (entries[i] & ENTRY_IS_SWAPPED) != 0 ? page : 0;
        }
    }
    return 0;
}

int memrt__os_page_map_open(void)
{
    MEMRT__SHIELD;
    return open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
}

bool memrt__os_huge_part(int page_map, uintptr_t address, size_t size, uint64_t *huge)
{
    MEMRT__SHIELD;
    memrt__page_facts_t facts = {0};
    bool known = scan_pages(page_map, address, size, &facts);
    *huge += facts.huge;
    return known;
}

static int read_pages(uintptr_t address, size_t size, memrt__page_facts_t *facts)
{
    int file = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        return errno;
    }
    int error = 0;
    facts->knows_huge = scan_pages(file, address, size, facts);
    if (!facts->knows_huge) {
        *facts = (memrt__page_facts_t){0};
        error = read_page_map(file, address, size, facts);
    }
    close(file);
    return error;
}

/* --- Nodes. --- */

static bool read_nodes(uintptr_t address, size_t size, memrt__page_facts_t *facts)
{
    void *pages[STEP];
    int nodes[STEP];
    size_t page = memrt__os_page_size(), total = size / page;
    for (size_t done = 0; done < total; done += STEP) {
        size_t count = memrt__size_min(total - done, STEP);
        for (size_t i = 0; i < count; i++) {
            pages[i] = (void *)(address + (done + i) * page);
        }
        if (syscall(SYS_move_pages, 0, count, pages, NULL, nodes, 0) != 0) {
            return false;
        }
        for (size_t i = 0; i < count; i++) { /* below 0: a page without memory */
            if (nodes[i] >= 0 && nodes[i] < (int)MEMRT__NODES) {
                facts->by_node[nodes[i]] += page;
            }
        }
    }
    return true;
}

/* --- Locks, and pages of the pool. --- */

/// Find the bytes of a range in locked mappings, and in pages of the pool, which always stay in
/// memory. A mapping in the file is a line with its addresses, then lines of facts, the flags last.
static void read_flags(uintptr_t address, size_t size, uint64_t *locked, uint64_t *pool)
{
    memrt__text_lines_t lines;
    *locked = *pool = 0;
    uintptr_t start = 0, end = 0;
    memrt__text_open(&lines, "/proc/self/smaps");
    for (char *line; (line = memrt__text_next(&lines)) != NULL && start < address + size;) {
        uintptr_t first, last;
        if (strncmp(line, "VmFlags:", 8) == 0) {
            uintptr_t from = memrt__size_max(start, address);
            uintptr_t to = memrt__size_min(end, address + size);
            bool is_pool = strstr(line, " ht") != NULL;
            uint64_t bytes = from < to ? to - from : 0;
            *locked += is_pool || strstr(line, " lo") != NULL ? bytes : 0;
            *pool += is_pool ? bytes : 0;
        } else if (sscanf(line, "%lx-%lx ", &first, &last) == 2) {
            start = first;
            end = last;
        }
    }
    memrt__text_close(&lines);
}

int memrt__os_page_facts(uintptr_t address, size_t size, memrt__page_facts_t *out)
{
    MEMRT__SHIELD;
    MEMRT__ASSERT(address % memrt__os_page_size() == 0 && size % memrt__os_page_size() == 0);
    *out = (memrt__page_facts_t){0};
    int error = read_pages(address, size, out);
    if (error == 0) {
        out->knows_nodes = read_nodes(address, size, out);
        uint64_t pool;
        read_flags(address, size, &out->locked, &pool);
        if (pool == size) { /* known without the scan, too */
            out->knows_huge = true;
            out->huge = out->resident;
        }
    }
    return error;
}
