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

#include "runtime/base/shield.h"
#include "runtime/os/os.h"

/* Files of statistics pages, on Linux. Reads files without stdio, because stdio allocates. */

/// Read the first bytes of a file. Returns the number of bytes, or 0 if the file cannot be read.
static size_t read_bytes(const char *path, char *bytes, size_t room)
{
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = read(file, bytes, room);
    close(file);
    return length < 0 ? 0 : (size_t)length;
}

/// Reads /proc/self/cmdline, where each word ends with a NUL, including the last word.
void memrt__os_command(char *text, size_t room)
{
    MEMRT__SHIELD;
    size_t length = read_bytes("/proc/self/cmdline", text, room - 1);
    for (size_t i = 0; i + 1 < length; i++) {
        text[i] = text[i] == '\0' ? ' ' : text[i];
    }
    text[length] = '\0';
}

/// Return the start time of the process: field 22 of /proc/self/stat. The search starts behind the
/// last bracket, because field 2, in brackets, may contain any text.
static uint64_t read_start_time(void)
{
    char text[1024] = "";
    (void)read_bytes("/proc/self/stat", text, sizeof(text) - 1);
    const char *at = strrchr(text, ')');
    for (int field = 2; at != NULL && field < 22; field++) {
        at = strchr(at + 1, ' ');
    }
    return at == NULL ? 0 : strtoull(at, NULL, 10);
}

void memrt__os_shared_file_folder(char *folder, size_t room)
{
    snprintf(folder, room, "/dev/shm/memrt-%u", (unsigned)geteuid());
}

/// Return whether the path is a folder of this user without access for other users.
static bool is_private_folder(const char *folder)
{
    struct stat about;
    return lstat(folder, &about) == 0 && S_ISDIR(about.st_mode) && about.st_uid == geteuid() &&
           (about.st_mode & (S_IRWXG | S_IRWXO)) == 0;
}

bool memrt__os_shared_file_make(const char *folder, memrt__os_shared_file_t *out, char *why,
                                size_t length)
{
    MEMRT__SHIELD;
    (void)mkdir(folder, S_IRWXU);
    if (!is_private_folder(folder)) {
        snprintf(why, length,
                 "MEMRT_SHARE is refused: cannot use %s: the folder must be owned by the user, "
                 "with mode 0700",
                 folder);
        return false;
    }
    out->process = memrt__os_process_id();
    out->started = read_start_time();
    snprintf(out->path, sizeof(out->path), "%s/%" PRIu64 "-%" PRIu64, folder, out->process,
             out->started);
    (void)unlink(out->path);
    int file = open(out->path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (file < 0) {
        snprintf(why, length, "MEMRT_SHARE is refused: %s cannot be created: %s", out->path,
                 strerror(errno));
        return false;
    }
    close(file);
    return true;
}

bool memrt__os_shared_file_write(const memrt__os_shared_file_t *page, const void *data, size_t size,
                                 size_t at)
{
    MEMRT__SHIELD;
    int file = open(page->path, O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
    ssize_t written = pwrite(file, data, size, (off_t)at);
    close(file);
    return written == (ssize_t)size;
}

void memrt__os_shared_file_remove(const memrt__os_shared_file_t *page)
{
    MEMRT__SHIELD;
    (void)unlink(page->path);
}

/// Return the id of the process that a page is named after, or 0 if the name is not a page's name.
static uint64_t parse_process_id(const char *name)
{
    uint64_t process, began;
    char more;
    return sscanf(name, "%10" SCNu64 "-%20" SCNu64 "%c", &process, &began, &more) == 2 ? process
                                                                                       : 0;
}

/// Return whether the process has ended. A live process of another user fails with EPERM, not
/// ESRCH.
static bool has_process_ended(uint64_t process)
{
    return kill((pid_t)process, 0) != 0 && errno == ESRCH;
}

static bool is_stale_page(int folder, const char *name, time_t written)
{
    struct stat about;
    uint64_t process = parse_process_id(name);
    return process != 0 && fstatat(folder, name, &about, AT_SYMLINK_NOFOLLOW) == 0 &&
           about.st_mtime < written && has_process_ended(process);
}

void memrt__os_shared_file_sweep(const char *folder, uint64_t age)
{
    MEMRT__SHIELD;
    time_t written = time(NULL) - (time_t)age;
    const struct dirent *entry;
    DIR *open_folder = opendir(folder);
    while (open_folder != NULL && (entry = readdir(open_folder)) != NULL) {
        if (is_stale_page(dirfd(open_folder), entry->d_name, written)) {
            (void)unlinkat(dirfd(open_folder), entry->d_name, 0);
        }
    }
    if (open_folder != NULL) {
        closedir(open_folder);
    }
}
