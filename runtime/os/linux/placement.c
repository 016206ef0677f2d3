#include "runtime/os/placement.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/base/check.h"
#include "runtime/base/shield.h"
#include "runtime/os/latency.h"
#include "runtime/os/linux/text_file.h"
#include "runtime/os/os.h"

/* Numbers of the kernel's <linux/mempolicy.h>, which is not installed everywhere. */
#define MODE_PREFERRED 1
#define MODE_BIND 2
#define MODE_INTERLEAVE 3
#define MODE_WEIGHTED_INTERLEAVE 6
#define MOVE_PAGES 2u
#ifndef SYS_set_mempolicy_home_node
#define SYS_set_mempolicy_home_node 450 /* headers before Linux 5.17 */
#endif

static const int modes[] = {
    [MEMRT__NODE_PREFER] = MODE_PREFERRED,
    [MEMRT__NODE_BIND] = MODE_BIND,
    [MEMRT__NODE_INTERLEAVE] = MODE_INTERLEAVE,
    [MEMRT__NODE_WEIGHTED] = MODE_WEIGHTED_INTERLEAVE,
};

int memrt__os_place(void *address, size_t size, memrt__node_mode_t mode, uint64_t nodes)
{
    MEMRT__KEEP_ERRNO;
    MEMRT__TIMED(MEMRT_LATENCY_ADVISE);
    unsigned long mask = (unsigned long)nodes;
    MEMRT__ASSERT(nodes != 0 && mode != MEMRT__NODE_ANY && mode != MEMRT__NODE_SPLIT);
    unsigned long bits = MEMRT__NODES + 1; /* the kernel uses one bit less */
    MEMRT__ASSERT((size_t)address % memrt__os_page_size() == 0);
    long status = syscall(SYS_mbind, address, size, modes[mode], &mask, bits, MOVE_PAGES);
    return status == 0 ? 0 : errno;
}

int memrt__os_prefer_home(void *address, size_t size, unsigned node)
{
    MEMRT__KEEP_ERRNO;
    MEMRT__TIMED(MEMRT_LATENCY_ADVISE);
    return syscall(SYS_set_mempolicy_home_node, address, size, (unsigned long)node, 0ul) == 0
               ? 0
               : errno;
}

unsigned memrt__os_node(void)
{
    MEMRT__KEEP_ERRNO;
    unsigned node = 0;
    (void)syscall(SYS_getcpu, NULL, &node, NULL);
    return node < MEMRT__NODES ? node : 0;
}

/// Add the processors of a list such as "0-3,8" to a set.
static void add_processors(const char *list, cpu_set_t *set)
{
    while (*list >= '0' && *list <= '9') {
        char *end;
        unsigned long first = strtoul(list, &end, 10), last = first;
        if (*end == '-') {
            last = strtoul(end + 1, &end, 10);
        }
        for (; first <= last && first < CPU_SETSIZE; first++) {
            CPU_SET(first, set);
        }
        list = *end == ',' ? end + 1 : end;
    }
}

void memrt__os_run_on_nodes(uint64_t nodes)
{
    MEMRT__SHIELD;
    cpu_set_t set;
    CPU_ZERO(&set);
    for (unsigned node = 0; node < MEMRT__NODES; node++) {
        char path[64], list[1024] = "";
        if ((nodes >> node & 1) != 0) {
            snprintf(path, sizeof(path), "/sys/devices/system/node/node%u/cpulist", node);
            memrt__text_read(path, list, sizeof(list));
            add_processors(list, &set);
        }
    }
    (void)sched_setaffinity(0, sizeof(set), &set);
}

int memrt__os_lock_pages(void *address, size_t size)
{
    MEMRT__KEEP_ERRNO;
    MEMRT__TIMED(MEMRT_LATENCY_ADVISE);
    return mlock(address, size) == 0 ? 0 : errno;
}

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25 /* headers before Linux 6.1 */
#endif

int memrt__os_collapse(void *address, size_t size)
{
    MEMRT__KEEP_ERRNO;
    MEMRT__TIMED(MEMRT_LATENCY_ADVISE);
    MEMRT__ASSERT((size_t)address % MEMRT__HUGE_PAGE == 0 && size % MEMRT__HUGE_PAGE == 0);
    return madvise(address, size, MADV_COLLAPSE) == 0 ? 0 : errno;
}
