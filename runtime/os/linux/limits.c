#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "runtime/base/shield.h"
#include "runtime/os/os.h"

/* Memory limits of the process, on Linux. Reads files without stdio, because stdio allocates. */

#define PATH 512

/// Read the first bytes of a file as text; "" if the file cannot be read.
static void read_text(const char *path, char *text, size_t room)
{
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = file < 0 ? 0 : read(file, text, room - 1);
    text[length < 0 ? 0 : length] = '\0';
    if (file >= 0) {
        close(file);
    }
}

/// Read the number at the start of a file. Returns false without a number, as for "max".
static bool read_number(const char *path, uint64_t *out)
{
    char text[64], *end;
    read_text(path, text, sizeof(text));
    *out = strtoull(text, &end, 10);
    return end != text;
}

static bool read_address_space_limit(memrt__os_limit_t *out)
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

/// A control group hierarchy: the location and the names of its files for this process.
typedef struct group {
    const char *line; ///< start of its line in /proc/self/cgroup, behind the number
    const char *root, *limit, *used;
} group_t;

static const group_t groups[] = {
    {"::", "/sys/fs/cgroup", "memory.max", "memory.current"},
    {":memory:", "/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes"},
};

/// Write the path of the process's control group. Inside a container, the path may not exist.
static void read_group_path(const char *line, char *path, size_t room)
{
    char text[4096];
    read_text("/proc/self/cgroup", text, sizeof(text));
    const char *start = strstr(text, line);
    size_t length = start == NULL ? 0 : strcspn(start + strlen(line), "\n");
    snprintf(path, room, "%.*s", (int)length, start == NULL ? "" : start + strlen(line));
}

static bool read_group_limit(const group_t *group, const char *path, memrt__os_limit_t *out)
{
    char file[2 * PATH];
    snprintf(file, sizeof(file), "%s%s/%s", group->root, path, group->limit);
    if (!read_number(file, &out->bytes) || out->bytes > (uint64_t)1 << 60) {
        return false; /* version 1 writes a huge number for no limit */
    }
    snprintf(file, sizeof(file), "%s%s/%s", group->root, path, group->used);
    out->what = "for the control group";
    return read_number(file, &out->used);
}

static bool find_group_limit(memrt__os_limit_t *out)
{
    for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
        char path[PATH];
        read_group_path(groups[i].line, path, sizeof(path));
        if (read_group_limit(&groups[i], path, out) || read_group_limit(&groups[i], "", out)) {
            return true;
        }
    }
    return false;
}

static bool read_machine_memory(memrt__os_limit_t *out)
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
    MEMRT__SHIELD;
    size_t count = 0;
    count += read_address_space_limit(&out[count]);
    count += find_group_limit(&out[count]);
    count += read_machine_memory(&out[count]);
    return count;
}
