#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "runtime/base/os.h"

/* No stdio on files here: it allocates. */

#define PATH 512

/// The first bytes of a file as text, "" where it cannot be read.
static void read_text(const char *path, char *text, size_t room)
{
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = file < 0 ? 0 : read(file, text, room - 1);
    text[length < 0 ? 0 : length] = '\0';
    if (file >= 0) {
        close(file);
    }
}

/// The number in a file. False: there is none, as "max".
static bool read_number(const char *path, uint64_t *out)
{
    char text[64], *end;
    read_text(path, text, sizeof(text));
    *out = strtoull(text, &end, 10);
    return end != text;
}

static bool address_space(memrt__os_limit_t *out)
{
    struct rlimit limit;
    uint64_t pages;
    if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) {
        return false;
    }
    bool known = read_number("/proc/self/statm", &pages);
    *out = (memrt__os_limit_t){"of address space (RLIMIT_AS)", limit.rlim_cur,
                               known ? pages * memrt__os_page_size() : 0};
    return true;
}

/// Where a hierarchy of control groups keeps its files for this process, and how they are called.
typedef struct group {
    const char *line; ///< how its line in /proc/self/cgroup begins, behind the number
    const char *root, *limit, *used;
} group_t;

static const group_t groups[] = {
    {"::", "/sys/fs/cgroup", "memory.max", "memory.current"},
    {":memory:", "/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes"},
};

/// The path of the process's group; inside a container it may not be there.
static void group_path(const char *line, char *path, size_t room)
{
    char text[4096];
    read_text("/proc/self/cgroup", text, sizeof(text));
    const char *start = strstr(text, line);
    size_t length = start == NULL ? 0 : strcspn(start + strlen(line), "\n");
    snprintf(path, room, "%.*s", (int)length, start == NULL ? "" : start + strlen(line));
}

static bool read_group(const group_t *group, const char *path, memrt__os_limit_t *out)
{
    char file[2 * PATH];
    snprintf(file, sizeof(file), "%s%s/%s", group->root, path, group->limit);
    if (!read_number(file, &out->bytes) || out->bytes > (uint64_t)1 << 60) {
        return false; /* the old hierarchy writes no limit as a number above any */
    }
    snprintf(file, sizeof(file), "%s%s/%s", group->root, path, group->used);
    out->what = "for the control group";
    return read_number(file, &out->used);
}

static bool control_group(memrt__os_limit_t *out)
{
    for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
        char path[PATH];
        group_path(groups[i].line, path, sizeof(path));
        if (read_group(&groups[i], path, out) || read_group(&groups[i], "", out)) {
            return true;
        }
    }
    return false;
}

static bool machine(memrt__os_limit_t *out)
{
    char text[1024];
    read_text("/proc/meminfo", text, sizeof(text));
    const char *total = strstr(text, "MemTotal:"), *available = strstr(text, "MemAvailable:");
    if (total == NULL || available == NULL) {
        return false;
    }
    uint64_t bytes = strtoull(total + strlen("MemTotal:"), NULL, 10) * 1024;
    uint64_t free = strtoull(available + strlen("MemAvailable:"), NULL, 10) * 1024;
    *out = (memrt__os_limit_t){"in the machine", bytes, bytes - free};
    return true;
}

size_t memrt__os_limits(memrt__os_limit_t *out)
{
    size_t count = 0;
    count += address_space(&out[count]);
    count += control_group(&out[count]);
    count += machine(&out[count]);
    return count;
}
