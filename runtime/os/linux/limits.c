#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "runtime/base/shield.h"
#include "runtime/os/linux/control_group.h"
#include "runtime/os/linux/text_file.h"
#include "runtime/os/os.h"

/* Memory limits of the process, on Linux. Reads files without stdio, because stdio allocates. */

static bool read_address_space_limit(memrt__os_limit_t *out)
{
    struct rlimit limit;
    uint64_t pages;
    if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) {
        return false;
    }
    bool known = memrt__text_read_number("/proc/self/statm", &pages);
    *out = (memrt__os_limit_t){"of address space (RLIMIT_AS)", limit.rlim_cur,
                               known ? pages * memrt__os_page_size() : 0};
    return true;
}

/// Find the lower of the limits of both versions of control groups.
static bool find_group_limit(memrt__os_limit_t *out)
{
    bool found = false;
    for (int version = 2; version >= 1; version--) {
        memrt__control_group_t group;
        uint64_t limit, used;
        if (memrt__control_group_find(version, &group) &&
            memrt__control_group_limit(&group, &limit, &used) && (!found || limit < out->bytes)) {
            *out = (memrt__os_limit_t){"for the control group", limit, used};
            found = true;
        }
    }
    return found;
}

static bool read_machine_memory(memrt__os_limit_t *out)
{
    char text[1024];
    memrt__text_read("/proc/meminfo", text, sizeof(text));
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
