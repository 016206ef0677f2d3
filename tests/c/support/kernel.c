#include "support/kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/atomics.h"
#include "runtime/os/lock.h"
#include "runtime/os/os.h"
#include "support/suite.h"

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25 /* headers before Linux 6.1 */
#endif

#ifndef SYS_set_mempolicy_home_node
#define SYS_set_mempolicy_home_node 450 /* headers before Linux 5.17 */
#endif
#define MODE_WEIGHTED_INTERLEAVE 6

/// Refusal plan of a system call. Relaxed words, used by threads of the test and of memrt.
typedef struct plan {
    size_t calls;
    size_t from, to; ///< refused: calls number `from` up to before `to`
} plan_t;

static plan_t plans[KERNEL_CALLS];
static size_t pretended; /* page size; 0: the system's */
static size_t has_pool;  /* 1: the pool has pages */
static size_t sleep_end; /* end of the last sleep that began, in seconds */
static size_t at_call;   /* function to call, or 0 */
static size_t at_yield;  /* function to call once, or 0 */
static size_t passed;    /* nanoseconds added to memrt's monotonic clock */

static bool is_refused(kernel_call_t call)
{
    plan_t *plan = &plans[call];
    size_t number = memrt__fetch_add_relaxed(&plan->calls, 1);
    return number >= memrt__load_relaxed(&plan->from) && number < memrt__load_relaxed(&plan->to);
}

void kernel_refuse(kernel_call_t call, size_t pass, size_t times)
{
    plan_t *plan = &plans[call];
    size_t from = memrt__load_relaxed(&plan->calls) + pass;
    memrt__store_relaxed(&plan->to, 0);
    memrt__store_relaxed(&plan->from, from);
    memrt__store_relaxed(&plan->to, times > SIZE_MAX - from ? SIZE_MAX : from + times);
}

void kernel_obey(void)
{
    for (int call = 0; call < KERNEL_CALLS; call++) {
        memrt__store_relaxed(&plans[call].to, 0);
    }
    memrt__store_relaxed(&pretended, 0);
    memrt__store_relaxed(&has_pool, 0);
    memrt__store_relaxed(&sleep_end, 0);
    memrt__store_relaxed(&passed, 0);
    memrt__store_relaxed(&at_call, 0);
    memrt__store_relaxed(&at_yield, 0);
}

size_t kernel_calls(kernel_call_t call)
{
    return memrt__load_relaxed(&plans[call].calls);
}

bool kernel_sleeps_long(void)
{
    return memrt__load_relaxed(&sleep_end) > memrt__os_now_ns() / 1000000000u + 60;
}

void kernel_at_call(kernel_act_fn act)
{
    memrt__store_relaxed(&at_call, (size_t)act);
}

static void run_call_action(size_t size)
{
    kernel_act_fn act = (kernel_act_fn)memrt__load_relaxed(&at_call);
    if (act != NULL) {
        act(size);
    }
}

void kernel_let_pass(uint64_t nanoseconds)
{
    memrt__fetch_add_relaxed(&passed, (size_t)nanoseconds);
}

void kernel_pretend_page_size(size_t size)
{
    memrt__store_relaxed(&pretended, size);
}

void kernel_pretend_pool(void)
{
    memrt__store_relaxed(&has_pool, 1);
}

/* Names made by the linker option --wrap for `f`: callers reach __wrap_f, and __real_f is the
 * system's function. */

void *__real_mmap(void *address, size_t size, int protection, int flags, int file, off_t offset);
void *__wrap_mmap(void *address, size_t size, int protection, int flags, int file, off_t offset);
int __real_munmap(void *address, size_t size);
int __wrap_munmap(void *address, size_t size);
void *__real_mremap(void *address, size_t old_size, size_t new_size, int flags, ...);
void *__wrap_mremap(void *address, size_t old_size, size_t new_size, int flags, ...);
int __real_mprotect(void *address, size_t size, int protection);
/* Visible, because the libraries of sanitizers use mprotect, and the linker wraps the name there.
 */
__attribute__((visibility("default"))) int __wrap_mprotect(void *address, size_t size,
                                                           int protection);
int __real_madvise(void *address, size_t size, int advice);
int __wrap_madvise(void *address, size_t size, int advice);
int __real_mlock(const void *address, size_t size);
int __wrap_mlock(const void *address, size_t size);
long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);
ssize_t __real_process_vm_readv(pid_t process, const struct iovec *local, unsigned long locals,
                                const struct iovec *remote, unsigned long remotes,
                                unsigned long flags);
ssize_t __wrap_process_vm_readv(pid_t process, const struct iovec *local, unsigned long locals,
                                const struct iovec *remote, unsigned long remotes,
                                unsigned long flags);
int __real_ioctl(int file, unsigned long request, ...);
int __wrap_ioctl(int file, unsigned long request, ...);
int __real_open(const char *path, int flags, ...);
int __wrap_mlock(const void *address, size_t size)
{
    if (is_refused(KERNEL_LOCK)) {
        errno = EPERM;
        return -1;
    }
    return __real_mlock(address, size);
}

/// Return the number of arguments of a system call that memrt or a test makes by syscall().
static int count_arguments(long number)
{
    switch (number) {
    case SYS_mbind:
    case SYS_move_pages:
        return 6;
    case SYS_clone:
        return 5;
    case SYS_set_mempolicy_home_node:
        return 4;
    case SYS_getcpu:
        return 3;
    default:
        REQUIRE(number == SYS_gettid);
        return 0;
    }
}

long __wrap_syscall(long number, ...)
{
    long words[6] = {0};
    va_list more;
    va_start(more, number);
    for (int i = 0; i < count_arguments(number); i++) {
        words[i] = va_arg(more, long);
    }
    va_end(more);
    if (number == SYS_mbind && words[2] == MODE_WEIGHTED_INTERLEAVE &&
        is_refused(KERNEL_WEIGHTED)) {
        errno = EINVAL;
        return -1;
    }
    if ((number == SYS_mbind && is_refused(KERNEL_PLACE)) ||
        (number == SYS_set_mempolicy_home_node && is_refused(KERNEL_HOME)) ||
        (number == SYS_move_pages && is_refused(KERNEL_NODES))) {
        errno = ENOSYS;
        return -1;
    }
    return __real_syscall(number, words[0], words[1], words[2], words[3], words[4], words[5]);
}

ssize_t __wrap_process_vm_readv(pid_t process, const struct iovec *local, unsigned long locals,
                                const struct iovec *remote, unsigned long remotes,
                                unsigned long flags)
{
    if (is_refused(KERNEL_PEEK)) {
        errno = EPERM;
        return -1;
    }
    return __real_process_vm_readv(process, local, locals, remote, remotes, flags);
}

int __wrap_ioctl(int file, unsigned long request, ...)
{
    va_list more;
    va_start(more, request);
    void *argument = va_arg(more, void *);
    va_end(more);
    if (is_refused(KERNEL_SCAN)) {
        errno = ENOTTY;
        return -1;
    }
    return __real_ioctl(file, request, argument);
}

int __wrap_open(const char *path, int flags, ...);
ssize_t __real_read(int file, void *bytes, size_t size);
ssize_t __wrap_read(int file, void *bytes, size_t size);
int __real_clock_gettime(clockid_t clock, struct timespec *out);
int __wrap_clock_gettime(clockid_t clock, struct timespec *out);
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*start)(void *), void *context);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*start)(void *), void *context);
int __real_memrt__lock_wait(memrt__rank_t rank, pthread_cond_t *condition, uint64_t until);
int __wrap_memrt__lock_wait(memrt__rank_t rank, pthread_cond_t *condition, uint64_t until);
int __real_sched_yield(void);
int __wrap_sched_yield(void);
ssize_t __real_pread(int file, void *bytes, size_t size, off_t at);
ssize_t __wrap_pread(int file, void *bytes, size_t size, off_t at);
ssize_t __real_pwrite(int file, const void *bytes, size_t size, off_t at);
ssize_t __wrap_pwrite(int file, const void *bytes, size_t size, off_t at);
int __real_ftruncate(int file, off_t size);
int __wrap_ftruncate(int file, off_t size);
int __real_posix_fallocate(int file, off_t at, off_t size);
int __wrap_posix_fallocate(int file, off_t at, off_t size);
int __real_mkostemp(char *path, int flags);
int __wrap_mkostemp(char *path, int flags);
int __real_memfd_create(const char *name, unsigned flags);
int __wrap_memfd_create(const char *name, unsigned flags);
size_t __real_memrt__os_page_size(void);
size_t __wrap_memrt__os_page_size(void);

void *__wrap_mmap(void *address, size_t size, int protection, int flags, int file, off_t offset)
{
    if (is_refused(KERNEL_MAP)) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    if ((flags & MAP_HUGETLB) != 0 && is_refused(KERNEL_POOL)) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    if ((flags & MAP_HUGETLB) != 0 && memrt__load_relaxed(&has_pool) != 0) {
        flags = MAP_PRIVATE | MAP_ANONYMOUS;
    }
    return __real_mmap(address, size, protection, flags, file, offset);
}

int __wrap_munmap(void *address, size_t size)
{
    run_call_action(size);
    if (is_refused(KERNEL_UNMAP)) {
        errno = ENOMEM;
        return -1;
    }
    return __real_munmap(address, size);
}

void *__wrap_mremap(void *address, size_t old_size, size_t new_size, int flags, ...)
{
    if (is_refused(KERNEL_REMAP)) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    va_list more;
    va_start(more, flags);
    void *to = (flags & MREMAP_FIXED) != 0 ? va_arg(more, void *) : NULL;
    va_end(more);
    return __real_mremap(address, old_size, new_size, flags, to);
}

int __wrap_mprotect(void *address, size_t size, int protection)
{
    if (is_refused(KERNEL_PROTECT)) {
        errno = ENOMEM;
        return -1;
    }
    return __real_mprotect(address, size, protection);
}

int __wrap_madvise(void *address, size_t size, int advice)
{
    if (advice == MADV_POPULATE_WRITE && is_refused(KERNEL_POPULATE)) {
        errno = EINVAL;
        return -1;
    }
    if (advice == MADV_POPULATE_WRITE && memrt__load_relaxed(&has_pool) != 0 &&
        size >= (size_t)1 << 30) {
        return 0;
    }
    if (advice == MADV_COLLAPSE && is_refused(KERNEL_COLLAPSE)) {
        errno = EINVAL;
        return -1;
    }
    if (is_refused(advice == MADV_DONTNEED ? KERNEL_DISCARD : KERNEL_ADVISE)) {
        errno = ENOMEM;
        return -1;
    }
    size_t page = memrt__load_relaxed(&pretended);
    if (page != 0 && advice == MADV_DONTNEED) {
        if ((size_t)address % page != 0) {
            errno = EINVAL;
            return -1;
        }
        size = (size + page - 1) / page * page;
    }
    return __real_madvise(address, size, advice);
}

int __wrap_open(const char *path, int flags, ...)
{
    va_list more;
    va_start(more, flags);
    bool creates = (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE;
    mode_t mode = creates ? va_arg(more, mode_t) : 0;
    va_end(more);
    run_call_action(0);
    if (is_refused(KERNEL_OPEN)) {
        errno = EMFILE;
        return -1;
    }
    return __real_open(path, flags, mode);
}

ssize_t __wrap_read(int file, void *bytes, size_t size)
{
    if (is_refused(KERNEL_READ)) {
        errno = EIO;
        return -1;
    }
    return __real_read(file, bytes, size);
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *out)
{
    const uint64_t second = 1000000000u;
    int status = __real_clock_gettime(clock, out);
    if (status == 0 && clock == CLOCK_MONOTONIC) {
        uint64_t ahead = memrt__load_relaxed(&passed) + (uint64_t)out->tv_nsec;
        out->tv_sec += (time_t)(ahead / second);
        out->tv_nsec = (long)(ahead % second);
    }
    return status;
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*start)(void *), void *context)
{
    if (is_refused(KERNEL_THREAD)) {
        return EAGAIN;
    }
    return __real_pthread_create(thread, attributes, start, context);
}

ssize_t __wrap_pread(int file, void *bytes, size_t size, off_t at)
{
    if (is_refused(KERNEL_READ)) {
        errno = EIO;
        return -1;
    }
    return __real_pread(file, bytes, size, at);
}

ssize_t __wrap_pwrite(int file, const void *bytes, size_t size, off_t at)
{
    if (is_refused(KERNEL_WRITE)) {
        errno = ENOSPC;
        return -1;
    }
    if (is_refused(KERNEL_DISTURB)) {
        errno = EINTR;
        return -1;
    }
    return __real_pwrite(file, bytes, is_refused(KERNEL_PART) ? size / 2 : size, at);
}

int __wrap_posix_fallocate(int file, off_t at, off_t size)
{
    return is_refused(KERNEL_RESERVE) ? ENOSPC : __real_posix_fallocate(file, at, size);
}

int __wrap_mkostemp(char *path, int flags)
{
    if (is_refused(KERNEL_OPEN)) {
        errno = EMFILE;
        return -1;
    }
    return __real_mkostemp(path, flags);
}

int __wrap_memfd_create(const char *name, unsigned flags)
{
    if (is_refused(KERNEL_OPEN)) {
        errno = EMFILE;
        return -1;
    }
    return __real_memfd_create(name, flags);
}

int __wrap_ftruncate(int file, off_t size)
{
    if (is_refused(KERNEL_TRUNCATE)) {
        errno = EIO;
        return -1;
    }
    return __real_ftruncate(file, size);
}

size_t __wrap_memrt__os_page_size(void)
{
    size_t page = memrt__load_relaxed(&pretended);
    return page != 0 ? page : __real_memrt__os_page_size();
}

int __wrap_memrt__lock_wait(memrt__rank_t rank, pthread_cond_t *condition, uint64_t until)
{
    memrt__store_relaxed(&sleep_end, (size_t)(until / 1000000000u));
    return __real_memrt__lock_wait(rank, condition, until);
}

void kernel_at_yield(void (*call)(void))
{
    memrt__store_relaxed(&at_yield, (size_t)call);
}

int __wrap_sched_yield(void)
{
    void (*call)(void) = (void (*)(void))memrt__load_relaxed(&at_yield);
    if (call != NULL) {
        memrt__store_relaxed(&at_yield, 0);
        call();
    }
    return __real_sched_yield();
}
