#ifndef MEMRT_OS_LINUX_CONTROL_GROUP_H
#define MEMRT_OS_LINUX_CONTROL_GROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/// Memory limits of control groups (cgroups) of version 1 and 2.
///
/// /proc/self/cgroup names the group of the process, and /proc/self/mountinfo the folder where the
/// group is visible. In a container, the mount may start at the group itself, or a namespace may
/// hide the ancestors. Limits of invisible ancestors are unknown, except in version 1, where the
/// kernel reports the lowest limit of all ancestors.
///
/// Allocates nothing. The callers hold a shield.

/// Longest path of a folder; a group with a longer path is not found.
#define MEMRT__CONTROL_GROUP_PATH 1024

typedef struct memrt__control_group {
    char folder[MEMRT__CONTROL_GROUP_PATH]; ///< folder with the files of the group
    size_t top;                             ///< length of the mount point in `folder`
    int version;                            ///< 1 or 2
} memrt__control_group_t;

/// Folder of the files of the system, without a slash at the end: "". Tests set another folder.
extern const char *memrt__control_group_root;

/// Find the memory control group of this process in the hierarchies of `version`. Returns false if
/// the group is not visible. A hybrid system has groups of both versions; the memory controller
/// belongs to one version.
bool memrt__control_group_find(int version, memrt__control_group_t *out);

/// Write the path of a file of the group, for example "memory.events". Returns false if the path is
/// too long.
bool memrt__control_group_file(const memrt__control_group_t *group, const char *name, char *path,
                               size_t room);

/// Read the lowest limit of the group and its visible ancestors, and the bytes in use under this
/// limit. Unused file pages, which the system frees on demand, are not counted as used. Returns
/// false without a limit.
bool memrt__control_group_limit(const memrt__control_group_t *group, uint64_t *limit,
                                uint64_t *used);

#endif
