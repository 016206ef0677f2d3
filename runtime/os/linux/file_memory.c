#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "runtime/base/check.h"
#include "runtime/base/shield.h"
#include "runtime/os/latency.h"
#include "runtime/os/linux/control_group.h"
#include "runtime/os/os.h"

/* Memory in files without names, and memory that is not needed soon, on Linux. */

/// Open a new file in a folder and remove its name, where the file system cannot create a file
/// without a name.
static int open_removed(const char *folder)
{
    char path[PATH_MAX];
    int length = snprintf(path, sizeof(path), "%s/.memrt-XXXXXX", folder);
    int file = length < (int)sizeof(path) ? mkostemp(path, O_CLOEXEC) : -1;
    if (file >= 0) {
        (void)unlink(path);
    }
    return file;
}

static int open_in_folder(const char *folder)
{
    int file = open(folder, O_TMPFILE | O_RDWR | O_EXCL | O_CLOEXEC, 0600);
    return file >= 0 ? file : open_removed(folder);
}

/// Return whether the system refuses memory when it promises more than exists. It then refuses
/// pages of memory files at their first touch, by a signal.
static bool is_accounting_strict(void)
{
    char mode = '0', path[PATH_MAX];
    snprintf(path, sizeof(path), "%s/proc/sys/vm/overcommit_memory", memrt__control_group_root);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file >= 0) {
        (void)!read(file, &mode, 1);
        close(file);
    }
    return mode == '2';
}

/// Give the file `size` bytes, with space for all of them if `reserve`. Signals wait meanwhile: an
/// interrupted call begins anew, and so a frequent signal would keep it from an end. Beyond the
/// limit of file sizes, the system would send SIGXFSZ. Returns 0, or the errno.
static int set_size(int file, size_t size, bool reserve)
{
    struct rlimit most = {.rlim_cur = RLIM_INFINITY};
    (void)getrlimit(RLIMIT_FSIZE, &most);
    if (size > most.rlim_cur) {
        return EFBIG;
    }
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = reserve ? posix_fallocate(file, 0, (off_t)size)
                        : (ftruncate(file, (off_t)size) == 0 ? 0 : errno);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

static int map_over(void *address, size_t size, int file)
{
    void *mapped = mmap(address, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0);
    return mapped != MAP_FAILED ? 0 : errno;
}

int memrt__os_map_file(void *address, size_t size, const char *folder)
{
    MEMRT__SHIELD;
    MEMRT__TIMED(MEMRT_LATENCY_MAP);
    MEMRT__ASSERT((size_t)address % memrt__os_page_size() == 0 && size != 0);
    int file = folder == NULL ? memfd_create("memrt", MFD_CLOEXEC) : open_in_folder(folder);
    if (file < 0) {
        return errno;
    }
    int error = set_size(file, size, folder != NULL || is_accounting_strict());
    error = error != 0 ? error : map_over(address, size, file);
    close(file);
    return error;
}

#ifndef MADV_COLD
#define MADV_COLD 20 /* headers before Linux 5.4 */
#define MADV_PAGEOUT 21
#endif

bool memrt__os_cold(void *address, size_t size, bool now)
{
    MEMRT__KEEP_ERRNO;
    MEMRT__TIMED(MEMRT_LATENCY_ADVISE);
    MEMRT__ASSERT((size_t)address % memrt__os_page_size() == 0 && size != 0);
    return madvise(address, size, now ? MADV_PAGEOUT : MADV_COLD) == 0;
}

bool memrt__os_can_map_file(const char *folder)
{
    MEMRT__SHIELD;
    int file = open_in_folder(folder);
    if (file >= 0) {
        close(file);
    }
    return file >= 0;
}
