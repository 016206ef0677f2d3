#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/os.h"

/* No stdio on files here: it allocates. */

/// The first bytes of a file; returns how many, 0 where it cannot be read.
static size_t read_bytes(const char *path, char *bytes, size_t room)
{
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = read(file, bytes, room);
    close(file);
    return length < 0 ? 0 : (size_t)length;
}

/// Each word ends with a zero, the last one, too.
void memrt__os_command(char *text, size_t room)
{
    size_t length = read_bytes("/proc/self/cmdline", text, room - 1);
    for (size_t i = 0; i + 1 < length; i++) {
        text[i] = text[i] == '\0' ? ' ' : text[i];
    }
    text[length] = '\0';
}

/// The 22nd field of the process's line, of which the second may hold anything, in brackets.
static uint64_t started(void)
{
    char text[1024] = "";
    (void)read_bytes("/proc/self/stat", text, sizeof(text) - 1);
    const char *at = strrchr(text, ')');
    for (int field = 2; at != NULL && field < 22; field++) {
        at = strchr(at + 1, ' ');
    }
    return at == NULL ? 0 : strtoull(at, NULL, 10);
}

void memrt__os_page_folder(char *folder, size_t room)
{
    snprintf(folder, room, "/dev/shm/memrt-%u", (unsigned)geteuid());
}

/// Whether it is a folder that nobody else can look into or write to.
static bool is_own(const char *folder)
{
    struct stat about;
    return lstat(folder, &about) == 0 && S_ISDIR(about.st_mode) && about.st_uid == geteuid() &&
           (about.st_mode & (S_IRWXG | S_IRWXO)) == 0;
}

bool memrt__os_page_make(const char *folder, memrt__os_page_t *out, char *why, size_t length)
{
    (void)mkdir(folder, S_IRWXU);
    if (!is_own(folder)) {
        snprintf(why, length,
                 "MEMRT_SHARE is refused: %s is no folder of this user's alone, or cannot be made",
                 folder);
        return false;
    }
    out->process = memrt__os_process_id();
    out->started = started();
    snprintf(out->path, sizeof(out->path), "%s/%" PRIu64 "-%" PRIu64, folder, out->process,
             out->started);
    (void)unlink(out->path);
    int file = open(out->path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (file < 0) {
        snprintf(why, length, "MEMRT_SHARE is refused: %s cannot be made: %s", out->path,
                 strerror(errno));
        return false;
    }
    close(file);
    return true;
}

bool memrt__os_page_write(const memrt__os_page_t *page, const void *data, size_t size, size_t at)
{
    int file = open(page->path, O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
    ssize_t written = pwrite(file, data, size, (off_t)at);
    close(file);
    return written == (ssize_t)size;
}

void memrt__os_page_remove(const memrt__os_page_t *page)
{
    (void)unlink(page->path);
}

/// The process that a page is named after; 0: it is no page's name.
static uint64_t process_of(const char *name)
{
    uint64_t process, began;
    char more;
    return sscanf(name, "%10" SCNu64 "-%20" SCNu64 "%c", &process, &began, &more) == 2 ? process
                                                                                       : 0;
}

/// One that lives but is another user's is refused, and so not missing.
static bool is_gone(uint64_t process)
{
    return kill((pid_t)process, 0) != 0 && errno == ESRCH;
}

static bool is_stale(int folder, const char *name, time_t written)
{
    struct stat about;
    uint64_t process = process_of(name);
    return process != 0 && fstatat(folder, name, &about, AT_SYMLINK_NOFOLLOW) == 0 &&
           about.st_mtime < written && is_gone(process);
}

void memrt__os_page_sweep(const char *folder, uint64_t age)
{
    time_t written = time(NULL) - (time_t)age;
    const struct dirent *entry;
    DIR *open_folder = opendir(folder);
    while (open_folder != NULL && (entry = readdir(open_folder)) != NULL) {
        if (is_stale(dirfd(open_folder), entry->d_name, written)) {
            (void)unlinkat(dirfd(open_folder), entry->d_name, 0);
        }
    }
    if (open_folder != NULL) {
        closedir(open_folder);
    }
}
