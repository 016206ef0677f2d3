#ifndef MEMRT_TESTS_SUPPORT_KERNEL_H
#define MEMRT_TESTS_SUPPORT_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/// Wrappers around memrt's system calls, so that a test can refuse any call. The tests are linked
/// with these calls wrapped. Calls by Check and the C library do not pass through the wrappers.
///
/// No library replaces the wrappers: libfiu fails calls of the whole process, also of Check and of
/// sanitizers.

typedef enum kernel_call {
    KERNEL_MAP,      ///< mmap
    KERNEL_POOL,     ///< mmap(MAP_HUGETLB), as with too few pages in the pool
    KERNEL_UNMAP,    ///< munmap
    KERNEL_REMAP,    ///< mremap
    KERNEL_PROTECT,  ///< mprotect
    KERNEL_DISCARD,  ///< madvise(MADV_DONTNEED)
    KERNEL_ADVISE,   ///< madvise with other advice
    KERNEL_POPULATE, ///< madvise(MADV_POPULATE_WRITE), unknown to kernels before 5.14
    KERNEL_LOCK,     ///< mlock
    KERNEL_PLACE,    ///< mbind
    KERNEL_WEIGHTED, ///< mbind(MPOL_WEIGHTED_INTERLEAVE), unknown to kernels before 6.9
    KERNEL_HOME,     ///< set_mempolicy_home_node, unknown to kernels before 5.17
    KERNEL_COLLAPSE, ///< madvise(MADV_COLLAPSE), unknown to kernels before 6.1
    KERNEL_NODES,    ///< move_pages
    KERNEL_PEEK,     ///< process_vm_readv, as in containers
    KERNEL_SCAN,     ///< ioctl, as on kernels before 6.7
    KERNEL_OPEN,     ///< open, mkostemp and memfd_create
    KERNEL_READ,     ///< read and pread
    KERNEL_THREAD,   ///< pthread_create
    KERNEL_WRITE,    ///< pwrite, as on a full disk
    KERNEL_PART,     ///< pwrite; when refused, the first half is written
    KERNEL_DISTURB,  ///< pwrite, as by a signal
    KERNEL_TRUNCATE, ///< ftruncate
    KERNEL_RESERVE,  ///< posix_fallocate, as on a full disk
    KERNEL_CALLS
} kernel_call_t;

/// Let `pass` calls succeed, then refuse the next `times` calls; SIZE_MAX: all.
void kernel_refuse(kernel_call_t call, size_t pass, size_t times);

/// End all refusals and all pretences: page size, clock, functions at calls and at a yield. Runs
/// also after each test.
void kernel_obey(void);

/// Return the number of calls so far, including refused calls.
size_t kernel_calls(kernel_call_t call);

/// Return true when the last timed sleep of a memrt thread ends more than a minute from now.
bool kernel_sleeps_long(void);

/// Have `call` called once, at memrt's next sched_yield, where memrt waits for another thread.
/// Lasts until kernel_obey().
void kernel_at_yield(void (*call)(void));

/// Call `act` at each munmap with its size, and at each open with 0; NULL: no function. Lasts until
/// kernel_obey().
typedef void (*kernel_act_fn)(size_t size);
void kernel_at_call(kernel_act_fn act);

/// Move memrt's monotonic clock forward, until kernel_obey().
void kernel_let_pass(uint64_t nanoseconds);

/// Give small pages, without memory for mappings from 1 GiB on, for pages of the pool, until
/// kernel_obey(). The machine of the tests may have no pool.
void kernel_pretend_pool(void);

/// Have memrt use a page size of `size`, and discard whole pages of that size, as such a system
/// does.
void kernel_pretend_page_size(size_t size);

#endif
