#include "runtime/os/os.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/check.h"
#include "runtime/base/shield.h"

/// Signal state of a thread that must not receive SIGXFSZ, the signal for exceeding the file size
/// limit.
typedef struct signal_state {
    sigset_t signals;
    bool was_pending;
} signal_state_t;

static void make_signal_set(sigset_t *out)
{
    sigemptyset(out);
    sigaddset(out, SIGXFSZ);
}

static bool is_signal_pending(void)
{
    sigset_t pending;
    sigpending(&pending);
    return sigismember(&pending, SIGXFSZ) == 1;
}

static void block_file_size_signal(signal_state_t *signal_state)
{
    sigset_t signal;
    make_signal_set(&signal);
    pthread_sigmask(SIG_BLOCK, &signal, &signal_state->signals);
    signal_state->was_pending = is_signal_pending();
}

static void restore_signals(const signal_state_t *signal_state)
{
    if (!signal_state->was_pending && is_signal_pending()) {
        sigset_t signal;
        const struct timespec now = {0, 0};
        make_signal_set(&signal);
        (void)sigtimedwait(&signal, NULL, &now);
    }
    pthread_sigmask(SIG_SETMASK, &signal_state->signals, NULL);
}

static bool write_all_bytes(int file, uint64_t at, const char *bytes, size_t size)
{
    while (size != 0) {
        errno = EIO;
        ssize_t done = pwrite(file, bytes, size, (off_t)at);
        MEMRT__ASSERT(done < 0 || (size_t)done <= size);
        if (done > 0) {
            bytes += done;
            size -= (size_t)done;
            at += (uint64_t)done;
        } else if (errno != EINTR) {
            return false;
        }
    }
    return true;
}

bool memrt__os_file_write(int file, uint64_t at, const void *bytes, size_t size, int *error)
{
    MEMRT__SHIELD;
    signal_state_t signal_state;
    block_file_size_signal(&signal_state);
    bool done = write_all_bytes(file, at, bytes, size);
    if (!done) {
        *error = errno;
    }
    restore_signals(&signal_state);
    return done;
}

/// Flags for a new file with access for this user alone. An existing file or symbolic link is
/// refused.
#define FLAGS (O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY)
#define MODE (S_IRUSR | S_IWUSR)

/// Number of temporary names tried for a file that replaces another.
#define NAMES_MAX 100u

/// Create a file with the given bytes. On failure returns false, `*error` is the errno of the
/// system, and no file remains.
static bool create_file(const char *path, const void *bytes, size_t size, int *file, int *error)
{
    *file = open(path, FLAGS, MODE);
    if (*file < 0) {
        *error = errno;
        return false;
    }
    if (!memrt__os_file_write(*file, 0, bytes, size, error)) {
        close(*file);
        (void)unlink(path);
        return false;
    }
    return true;
}

/// Return whether a new file may replace the file at `path`, if any. On refusal sets `*error`.
static bool can_replace_file(const char *path, int *error)
{
    struct stat about;
    bool there = lstat(path, &about) == 0;
    if (there && !S_ISREG(about.st_mode)) {
        *error = S_ISLNK(about.st_mode) ? ELOOP : EINVAL;
    }
    return !there || S_ISREG(about.st_mode);
}

/// Write a temporary file name in the folder of `path`. Returns false if the name is too long.
static bool write_temporary_name(const char *path, unsigned number, char *name)
{
    const char *last = strrchr(path, '/');
    int folder = last == NULL ? 0 : (int)(last + 1 - path);
    int length = snprintf(name, PATH_MAX, "%.*s.memrt-%" PRIu64 "-%u", folder, path,
                          memrt__os_process_id(), number);
    return length < PATH_MAX;
}

/// Create a file with a temporary name in the folder of `path`. Writes the chosen name to `name`.
static bool create_temporary_file(const char *path, const void *bytes, size_t size, char *name,
                                  int *file, int *error)
{
    bool done = false;
    *error = EEXIST;
    for (unsigned number = 0; number < NAMES_MAX && !done && *error == EEXIST; number++) {
        if (!write_temporary_name(path, number, name)) {
            *error = ENAMETOOLONG;
            return false;
        }
        done = create_file(name, bytes, size, file, error);
    }
    return done;
}

/// Create a file under a temporary name, and rename the file to `path` once its first bytes are
/// written. Until then the file at `path` is unchanged.
static bool replace_file(const char *path, const void *bytes, size_t size, int *file, int *error)
{
    char name[PATH_MAX];
    if (!can_replace_file(path, error) ||
        !create_temporary_file(path, bytes, size, name, file, error)) {
        return false;
    }
    if (rename(name, path) != 0) {
        *error = errno;
        close(*file);
        (void)unlink(name);
        return false;
    }
    return true;
}

int memrt__os_file_create(const char *path, bool replace, const void *bytes, size_t size,
                          int *error)
{
    MEMRT__SHIELD;
    int file, why;
    if (!(replace ? replace_file : create_file)(path, bytes, size, &file, &why)) {
        *error = why;
        return -1;
    }
    return file;
}

void memrt__os_file_cut(int file, uint64_t size)
{
    MEMRT__SHIELD;
    (void)!ftruncate(file, (off_t)size);
}

void memrt__os_file_close(int file)
{
    MEMRT__SHIELD;
    close(file);
}
