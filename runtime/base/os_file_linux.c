#include "runtime/base/os.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/// Waits for nobody, as for who reads a pipe.
#define FLAGS (O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK)

#define MODE (S_IRUSR | S_IWUSR | S_IRGRP | S_IWGRP | S_IROTH | S_IWOTH) /* less the umask */

static bool is_regular(int file)
{
    struct stat about;
    return fstat(file, &about) == 0 && S_ISREG(about.st_mode);
}

int memrt__os_file_create(const char *path, bool replace, int *error)
{
    int file = open(path, FLAGS | (replace ? 0 : O_EXCL), MODE);
    if (file < 0) {
        *error = errno;
        return -1;
    }
    if (!is_regular(file)) {
        close(file);
        *error = EINVAL;
        return -1;
    }
    if (ftruncate(file, 0) != 0) {
        *error = errno;
        close(file);
        return -1;
    }
    return file;
}

/// A thread that is not disturbed: by the signal for a file that is as large as the process may
/// make one, nor by its end.
typedef struct calm {
    sigset_t signals;
    int cancel;
    bool was_pending;
} calm_t;

static void make_signal(sigset_t *out)
{
    sigemptyset(out);
    sigaddset(out, SIGXFSZ);
}

static bool is_pending(void)
{
    sigset_t pending;
    sigpending(&pending);
    return sigismember(&pending, SIGXFSZ) == 1;
}

static void begin_calm(calm_t *calm)
{
    sigset_t signal;
    make_signal(&signal);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &calm->cancel);
    pthread_sigmask(SIG_BLOCK, &signal, &calm->signals);
    calm->was_pending = is_pending();
}

static void end_calm(const calm_t *calm)
{
    if (!calm->was_pending && is_pending()) {
        sigset_t signal;
        const struct timespec now = {0, 0};
        make_signal(&signal);
        (void)sigtimedwait(&signal, NULL, &now);
    }
    int ignored;
    pthread_sigmask(SIG_SETMASK, &calm->signals, NULL);
    pthread_setcancelstate(calm->cancel, &ignored);
}

static bool write_all(int file, uint64_t at, const char *bytes, size_t size)
{
    while (size != 0) {
        errno = EIO;
        ssize_t done = pwrite(file, bytes, size, (off_t)at);
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
    calm_t calm;
    int before = errno;
    begin_calm(&calm);
    bool done = write_all(file, at, bytes, size);
    if (!done) {
        *error = errno;
    }
    end_calm(&calm);
    errno = before;
    return done;
}

void memrt__os_file_cut(int file, uint64_t size)
{
    (void)!ftruncate(file, (off_t)size);
}

void memrt__os_file_close(int file)
{
    close(file);
}

void memrt__os_file_remove(const char *path)
{
    (void)!unlink(path);
}
