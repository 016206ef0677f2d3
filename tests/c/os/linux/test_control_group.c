#include "support/suite.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/os/linux/control_group.h"
#include "runtime/os/linux/text_file.h"
#include "runtime/os/os.h"
#include "support/system_tree.h"

#define MIB ((uint64_t)1 << 20)
#define UNLIMITED "9223372036854771712"

typedef struct file {
    const char *name, *text;
} file_t;

/// Tree of files, and what a process in the tree finds.
typedef struct sample {
    const char *what;
    const char *groups, *mounts;
    file_t files[8];
    uint64_t limit, used; ///< MiB; 0: no limit
} sample_t;

#define MOUNT_2 "41 31 0:38 / /cg rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"
#define MOUNT_1 "35 31 0:32 / /cg/memory rw,relatime shared:9 - cgroup cgroup rw,memory\n"
#define OTHER_MOUNTS                                                                               \
    "22 1 8:1 / / rw,relatime - ext4 /dev/root rw\n"                                               \
    "32 31 0:29 / /cg/cpu rw,relatime - cgroup cgroup rw,cpu,cpuacct\n"

static const sample_t samples[] = {
    {"version 2",
     "0::/job\n",
     MOUNT_2,
     {{"/cg/job/memory.max", "104857600\n"},
      {"/cg/job/memory.high", "max\n"},
      {"/cg/job/memory.current", "31457280\n"},
      {"/cg/job/memory.stat", "anon 1\ninactive_file 10485760\n"}},
     100,
     20},
    {"a limit of the grandparent",
     "0::/a/b/c\n",
     OTHER_MOUNTS MOUNT_2,
     {{"/cg/a/b/c/memory.max", "max\n"},
      {"/cg/a/b/c/memory.current", "1048576\n"},
      {"/cg/a/b/memory.max", "209715200\n"},
      {"/cg/a/memory.max", "104857600\n"},
      {"/cg/a/memory.current", "52428800\n"}},
     100,
     50},
    {"memory.high below memory.max",
     "0::/job\n",
     MOUNT_2,
     {{"/cg/job/memory.max", "104857600\n"},
      {"/cg/job/memory.high", "73400320\n"},
      {"/cg/job/memory.current", "73400320\n"}},
     70,
     70},
    {"a namespace of control groups",
     "0::/\n",
     MOUNT_2,
     {{"/cg/memory.max", "104857600\n"}, {"/cg/memory.current", "1048576\n"}},
     100,
     1},
    {"a process outside of the namespace",
     "0::/../other\n",
     MOUNT_2,
     {{"/cg/memory.max", "104857600\n"}, {"/other/memory.max", "1048576\n"}},
     0,
     0},
    {"a mount and a process outside of the namespace",
     "0::/../other\n",
     "41 31 0:38 /.. /cg rw - cgroup2 cgroup2 rw\n",
     {{"/cg/other/memory.max", "104857600\n"}, {"/cg/other/memory.current", "1048576\n"}},
     100,
     1},
    {"a container whose mount starts at the group",
     "0::/docker/abc\n",
     "41 31 0:38 /docker/abc /cg ro - cgroup2 cgroup rw\n",
     {{"/cg/memory.max", "104857600\n"},
      {"/cg/memory.current", "1048576\n"},
      {"/memory.max", "1048576\n"}},
     100,
     1},
    {"a group inside a container",
     "0::/docker/abc/inner\n",
     "41 31 0:38 /docker/abc /cg ro - cgroup2 cgroup rw\n",
     {{"/cg/inner/memory.max", "max\n"},
      {"/cg/memory.max", "104857600\n"},
      {"/cg/memory.current", "1048576\n"}},
     100,
     1},
    {"a mount of another group",
     "0::/docker/abcd\n",
     "41 31 0:38 /docker/abc /cg ro - cgroup2 cgroup rw\n",
     {{"/cg/memory.max", "104857600\n"}},
     0,
     0},
    {"the second of two mounts",
     "0::/docker/abc\n",
     "40 31 0:38 /docker/x /other ro - cgroup2 cgroup rw\n"
     "41 31 0:38 /docker/abc /cg ro - cgroup2 cgroup rw\n",
     {{"/other/memory.max", "1048576\n"},
      {"/cg/memory.max", "104857600\n"},
      {"/cg/memory.current", "1048576\n"}},
     100,
     1},
    {"a group whose folder is missing, below a group with a limit",
     "0::/a/gone (deleted)\n",
     MOUNT_2,
     {{"/cg/a/memory.max", "104857600\n"}, {"/cg/a/memory.current", "1048576\n"}},
     100,
     1},
    {"a path with blanks and colons",
     "0::/a b:c/d\n",
     "41 31 0:38 / /my\\040cg\\134x rw - cgroup2 cgroup2 rw\n",
     {{"/my cg\\x/a b:c/d/memory.max", "104857600\n"},
      {"/my cg\\x/a b:c/d/memory.current", "1048576\n"}},
     100,
     1},
    {"version 1",
     "9:name=systemd:/\n4:cpu,memory:/job\n",
     OTHER_MOUNTS MOUNT_1,
     {{"/cg/memory/job/memory.limit_in_bytes", "104857600\n"},
      {"/cg/memory/memory.limit_in_bytes", UNLIMITED "\n"},
      {"/cg/memory/job/memory.usage_in_bytes", "31457280\n"},
      {"/cg/memory/job/memory.stat",
       "inactive_file 1\nhierarchical_memory_limit 104857600\ntotal_inactive_file 10485760\n"}},
     100,
     20},
    {"version 1 with a limit of the parent",
     "4:memory:/a/b\n",
     MOUNT_1,
     {{"/cg/memory/a/b/memory.limit_in_bytes", UNLIMITED "\n"},
      {"/cg/memory/a/memory.limit_in_bytes", "104857600\n"},
      {"/cg/memory/a/memory.usage_in_bytes", "52428800\n"}},
     100,
     50},
    {"version 1 in a container with a limit of a hidden parent",
     "4:memory:/docker/abc\n",
     "35 31 0:32 /docker/abc /cg/memory ro - cgroup cgroup rw,memory\n",
     {{"/cg/memory/memory.limit_in_bytes", "104857600\n"},
      {"/cg/memory/memory.usage_in_bytes", "1048576\n"},
      {"/cg/memory/memory.stat", "hierarchical_memory_limit 52428800\n"}},
     50,
     1},
    {"a hybrid system with the memory controller in version 1",
     "4:memory:/job\n0::/unit\n",
     MOUNT_1 "41 31 0:38 / /cg/unified rw - cgroup2 cgroup2 rw\n",
     {{"/cg/memory/job/memory.limit_in_bytes", "104857600\n"},
      {"/cg/memory/job/memory.usage_in_bytes", "1048576\n"},
      {"/cg/unified/unit/cgroup.procs", "1\n"}},
     100,
     1},
    {"a hybrid system with a lower limit in version 2",
     "4:memory:/job\n0::/unit\n",
     MOUNT_1 "41 31 0:38 / /cg/unified rw - cgroup2 cgroup2 rw\n",
     {{"/cg/memory/job/memory.limit_in_bytes", "209715200\n"},
      {"/cg/unified/unit/memory.max", "104857600\n"},
      {"/cg/unified/unit/memory.current", "1048576\n"}},
     100,
     1},
    {"no figure of use", "0::/a/b\n", MOUNT_2, {{"/cg/a/b/memory.max", "1048576\n"}}, 1, 0},
    {"more unused file pages than bytes in use",
     "0::/job\n",
     MOUNT_2,
     {{"/cg/job/memory.max", "104857600\n"},
      {"/cg/job/memory.current", "1048576\n"},
      {"/cg/job/memory.stat", "inactive_file 10485760\n"}},
     100,
     0},
    {"no limit",
     "0::/job\n",
     MOUNT_2,
     {{"/cg/job/memory.max", "max\n"}, {"/cg/job/memory.high", "max\n"}},
     0,
     0},
    {"huge numbers",
     "4:memory:/job\n0::/job\n",
     MOUNT_1 MOUNT_2,
     {{"/cg/job/memory.max", "99999999999999999999999999\n"},
      {"/cg/job/memory.high", "18446744073709551615\n"},
      {"/cg/memory/job/memory.limit_in_bytes", UNLIMITED "\n"},
      {"/cg/memory/job/memory.stat", "hierarchical_memory_limit " UNLIMITED "\n"}},
     0,
     0},
    {"malformed limits",
     "4:memory:/job\n0::/job\n",
     MOUNT_1 MOUNT_2,
     {{"/cg/job/memory.max", "-5\n"},
      {"/cg/job/memory.high", ""},
      {"/cg/memory/job/memory.limit_in_bytes", "many\n"},
      {"/cg/memory/job/memory.stat", "hierarchical_memory_limit\nhierarchical_memory_limit x"}},
     0,
     0},
    {"malformed lines of groups",
     "\n0\n0:\n0::\n0::job\n0:memory\n4:memory\n4:memory,:x\nmemory:/job\n1::/job\n4:xmemory:/"
     "job\n",
     MOUNT_1 MOUNT_2,
     {{"/cg/memory.max", "104857600\n"}, {"/cg/job/memory.max", "104857600\n"}},
     0,
     0},
    {"malformed lines of mounts",
     "4:memory:/job\n0::/job\n",
     "\n41\n41 31 0:38\n41 31 0:38 / /cg rw\n41 31 0:38 / /cg rw -\n41 31 0:38 / /cg rw - "
     "cgroup2x\n"
     "41 31 0:38 / /cg rw - cgroup cgroup rw,memory_x\n41 31 0:38 /job\\04 /cg rw - cgroup2 x\n",
     {{"/cg/job/memory.max", "104857600\n"}},
     0,
     0},
    {"no newline at the end of the file", "0::/job", MOUNT_2, {{"/cg/job/memory.max", "5"}}, 0, 0},
};
enum { SAMPLES = sizeof(samples) / sizeof(samples[0]) };

static void write_tree(const sample_t *sample)
{
    system_tree_write("/proc/self/cgroup", sample->groups);
    system_tree_write("/proc/self/mountinfo", sample->mounts);
    for (size_t i = 0; i < 8 && sample->files[i].name != NULL; i++) {
        system_tree_write(sample->files[i].name, sample->files[i].text);
    }
}

/// Return the limit for the control group among all limits of the system.
static memrt__os_limit_t find_group_limit(void)
{
    memrt__os_limit_t limits[MEMRT__OS_LIMITS];
    size_t count = memrt__os_limits(limits);
    for (size_t i = 0; i < count; i++) {
        if (strcmp(limits[i].what, "for the control group") == 0) {
            return limits[i];
        }
    }
    return (memrt__os_limit_t){NULL, 0, 0};
}

TEST_EACH(control_group_gives_its_lowest_limit, SAMPLES)
{
    const sample_t *sample = &samples[index];
    system_tree_begin();
    write_tree(sample);
    memrt__os_limit_t limit = find_group_limit();
    ck_assert_msg(limit.bytes == sample->limit * MIB && limit.used == sample->used * MIB,
                  "%s: %" PRIu64 " of %" PRIu64, sample->what, limit.used, limit.bytes);
    system_tree_end();
}

TEST(limit_is_unknown_without_files_of_the_system)
{
    system_tree_begin();
    ck_assert_ptr_null(find_group_limit().what);
    system_tree_write("/proc/self/cgroup", "0::/job\n4:memory:/job\n");
    ck_assert_ptr_null(find_group_limit().what);
    system_tree_write("/proc/self/mountinfo", MOUNT_1 MOUNT_2);
    ck_assert_ptr_null(find_group_limit().what);
    system_tree_end();
}

/// Write a text with a part that is repeated `count` times.
static void write_long(const char *name, const char *before, const char *part, size_t count,
                       const char *after)
{
    size_t room = strlen(before) + strlen(part) * count + strlen(after) + 1;
    char *text = calloc(room, 1);
    char *at = stpcpy(text, before);
    for (size_t i = 0; i < count; i++) {
        at = stpcpy(at, part);
    }
    strcpy(at, after);
    system_tree_write(name, text);
    free(text);
}

TEST(long_lines_are_skipped)
{
    system_tree_begin();
    system_tree_write("/proc/self/cgroup", "0::/job\n");
    system_tree_write("/cg/job/memory.max", "104857600\n");
    write_long("/proc/self/mountinfo",
               "22 1 0:9 / / rw - overlay overlay lowerdir=", "/layer:", 3000, "\n" MOUNT_2);
    ck_assert_uint_eq(find_group_limit().bytes, 100 * MIB);
    write_long("/proc/self/mountinfo", OTHER_MOUNTS, OTHER_MOUNTS, 200, MOUNT_2);
    ck_assert_uint_eq(find_group_limit().bytes, 100 * MIB);
    system_tree_end();
}

TEST_EACH(longest_line_is_read, 3)
{
    size_t length = (size_t)(MEMRT__TEXT_LINE - 2 + index); /* without the newline */
    char name[128];
    memrt__text_lines_t lines;
    system_tree_begin();
    write_long("/long", "", "x", length, "\nnext\n");
    snprintf(name, sizeof(name), "%s/long", memrt__control_group_root);
    memrt__text_open(&lines, name);
    const char *line = memrt__text_next(&lines);
    if (index < 2) {
        ck_assert_uint_eq(strlen(line), length);
        line = memrt__text_next(&lines);
    }
    ck_assert_str_eq(line, "next");
    ck_assert_ptr_null(memrt__text_next(&lines));
    memrt__text_close(&lines);
    system_tree_end();
}

TEST_EACH(too_long_paths_have_no_limit, 3)
{
    system_tree_begin();
    system_tree_write("/proc/self/cgroup", "0::/job\n");
    system_tree_write("/proc/self/mountinfo", MOUNT_2);
    system_tree_write("/cg/job/memory.max", "104857600\n");
    ck_assert_uint_eq(find_group_limit().bytes, 100 * MIB);
    if (index == 0) {
        write_long("/proc/self/cgroup", "0::", "/job", MEMRT__CONTROL_GROUP_PATH / 4, "\n");
    } else if (index == 1) {
        write_long("/proc/self/cgroup", "0::", "/job", MEMRT__CONTROL_GROUP_PATH / 4 - 12, "\n");
    } else {
        write_long("/proc/self/mountinfo", "41 31 0:38 / ", "/cg", 400,
                   " rw - cgroup2 cgroup2 rw\n");
    }
    ck_assert_ptr_null(find_group_limit().what);
    system_tree_end();
}

TEST(path_of_a_file_that_does_not_fit_is_refused)
{
    memrt__control_group_t group = {.folder = "/cg/job", .top = 3, .version = 2};
    char path[24];
    ck_assert(memrt__control_group_file(&group, "memory.events", path, sizeof(path)));
    ck_assert_str_eq(path, "/cg/job/memory.events");
    ck_assert(!memrt__control_group_file(&group, "memory.events", path, 21));
    ck_assert(!memrt__control_group_file(&group, "memory.events", path, 8));
    ck_assert(!memrt__control_group_file(&group, "memory.events", path, 7));
}

static char long_root[MEMRT__CONTROL_GROUP_PATH + 1];

TEST(too_long_root_has_no_limit)
{
    memset(long_root, 'x', sizeof(long_root) - 1);
    memrt__control_group_root = long_root;
    ck_assert_ptr_null(find_group_limit().what);
    memrt__control_group_root = "";
}

TEST(group_of_this_process_is_in_a_control_group_file_system)
{
    for (int version = 1; version <= 2; version++) {
        memrt__control_group_t group;
        char path[MEMRT__CONTROL_GROUP_PATH];
        if (memrt__control_group_find(version, &group)) {
            ck_assert_uint_le(group.top, strlen(group.folder));
            group.folder[group.top] = '\0';
            ck_assert(memrt__control_group_file(&group, "cgroup.procs", path, sizeof(path)));
            ck_assert_msg(access(path, F_OK) == 0, "%s", path);
        }
    }
}
