#include "support/suite.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/os/linux/control_group.h"
#include "runtime/os/pressure_source.h"
#include "support/kernel.h"
#include "support/system_tree.h"

static memrt__pressure_source_t source;

static memrt_pressure_source_t open_source(void)
{
    memrt__pressure_source_open(&source);
    return source.kind;
}

static void write_events(unsigned high, unsigned max, unsigned oom)
{
    char text[128];
    snprintf(text, sizeof(text), "low 0\nhigh %u\nmax %u\noom %u\noom_kill 9\n", high, max, oom);
    system_tree_write("/cg/job/memory.events", text);
}

static void begin_group_2(void)
{
    system_tree_begin();
    system_tree_write("/proc/self/cgroup", "0::/job\n");
    system_tree_write("/proc/self/mountinfo", "41 31 0:38 / /cg rw - cgroup2 cgroup2 rw\n");
}

TEST(events_that_rise_signal_their_level_once)
{
    begin_group_2();
    write_events(5, 0, 0);
    ck_assert_int_eq(open_source(), MEMRT_PRESSURE_EVENTS);
    ck_assert_int_eq(memrt__pressure_source_read(&source), MEMRT_PRESSURE_NONE);
    write_events(6, 0, 0);
    ck_assert_int_eq(memrt__pressure_source_read(&source), MEMRT_PRESSURE_MEDIUM);
    ck_assert_int_eq(memrt__pressure_source_read(&source), MEMRT_PRESSURE_NONE);
    write_events(6, 2, 0);
    ck_assert_int_eq(memrt__pressure_source_read(&source), MEMRT_PRESSURE_MEDIUM);
    write_events(7, 2, 1);
    ck_assert_int_eq(memrt__pressure_source_read(&source), MEMRT_PRESSURE_CRITICAL);
    write_events(0, 0, 0);
    ck_assert_int_eq(memrt__pressure_source_read(&source), MEMRT_PRESSURE_NONE);
    system_tree_write("/cg/job/memory.events", "high\nmax x\n");
    ck_assert_int_eq(memrt__pressure_source_read(&source), MEMRT_PRESSURE_NONE);
    memrt__pressure_source_close(&source);
    system_tree_end();
}

TEST(source_without_files_is_the_headroom)
{
    system_tree_begin();
    ck_assert_int_eq(open_source(), MEMRT_PRESSURE_HEADROOM);
    ck_assert_int_eq(memrt__pressure_source_read(&source), MEMRT_PRESSURE_NONE);
    memrt__pressure_source_close(&source);
    system_tree_write("/proc/self/cgroup", "0::/job\n4:memory:/job\n");
    system_tree_write("/proc/self/mountinfo",
                      "41 31 0:38 / /cg rw - cgroup2 cgroup2 rw\n"
                      "35 31 0:32 / /cg/memory rw - cgroup cgroup rw,memory\n");
    system_tree_write("/cg/job/memory.events", "low 0\n");
    ck_assert_int_eq(open_source(), MEMRT_PRESSURE_HEADROOM);
    system_tree_write("/cg/memory/job/memory.pressure_level", "");
    ck_assert_int_eq(open_source(), MEMRT_PRESSURE_HEADROOM);
    ck_assert_int_eq(source.files[0], -1);
    system_tree_end();
}

/// A file in the place of the system's file takes each trigger, and is always readable, but never
/// signals.
TEST_EACH(stalls_of_the_group_come_before_stalls_of_the_machine, 2)
{
    begin_group_2();
    write_events(0, 0, 0);
    system_tree_write("/proc/pressure/memory", "");
    if (index == 1) {
        system_tree_write("/cg/job/memory.pressure", "");
    }
    ck_assert_int_eq(open_source(), MEMRT_PRESSURE_STALL);
    char link[64], path[256] = "";
    snprintf(link, sizeof(link), "/proc/self/fd/%d", source.files[0]);
    ck_assert_int_gt(readlink(link, path, sizeof(path) - 1), 0);
    ck_assert_msg(strstr(path, index == 1 ? "/cg/job/memory.pressure" : "/proc/pressure/memory") !=
                      NULL,
                  "%s", path);
    ck_assert_int_eq(memrt__pressure_source_read(&source), MEMRT_PRESSURE_NONE);
    memrt__pressure_source_close(&source);
    system_tree_end();
}

/// The kernel accepts or refuses a trigger. A refusal leaves another source.
TEST(source_of_this_machine_is_open_and_closes_its_files)
{
    memrt_pressure_source_t kind = open_source();
    ck_assert_int_eq(source.files[0] >= 0,
                     kind == MEMRT_PRESSURE_STALL || kind == MEMRT_PRESSURE_NOTICE);
    int file = source.files[0];
    ck_assert_int_le(memrt__pressure_source_read(&source), MEMRT_PRESSURE_CRITICAL);
    memrt__pressure_source_close(&source);
    ck_assert(file < 0 || fcntl(file, F_GETFD) == -1);
}

TEST(refused_files_leave_the_headroom)
{
    kernel_refuse(KERNEL_OPEN, 0, SIZE_MAX);
    ck_assert_int_eq(open_source(), MEMRT_PRESSURE_HEADROOM);
    kernel_obey();
    memrt__pressure_source_close(&source);
}

/// A program may close all descriptors, and open its own files under the same numbers.
TEST(foreign_file_under_the_same_descriptor_stays_open)
{
    system_tree_begin();
    system_tree_write("/proc/pressure/memory", "");
    ck_assert_int_eq(open_source(), MEMRT_PRESSURE_STALL);
    int file = source.files[0], own = open("/dev/null", O_RDWR);
    ck_assert_int_eq(dup2(own, file), file);
    ck_assert_int_eq(memrt__pressure_source_read(&source), MEMRT_PRESSURE_NONE);
    memrt__pressure_source_close(&source);
    ck_assert_int_ne(fcntl(file, F_GETFD), -1);
    close(file);
    close(own);
    system_tree_end();
}

static char group[MEMRT__CONTROL_GROUP_PATH + 32];

/// Make a group of version 1 below the group of this process, with a limit of 16 MiB. Returns false
/// if the system refuses.
static bool make_group_1(void)
{
    memrt__control_group_t own;
    if (!memrt__control_group_find(1, &own)) {
        return false;
    }
    snprintf(group, sizeof(group), "%s/memrt-test-%d", own.folder, (int)getpid());
    return mkdir(group, 0700) == 0;
}

/// Write a text to a file of the group.
static bool write_to_group(const char *name, const char *text)
{
    char path[sizeof(group) + 64];
    snprintf(path, sizeof(path), "%s/%s", group, name);
    int file = open(path, O_WRONLY | O_CLOEXEC);
    bool done = file >= 0 && write(file, text, strlen(text)) == (ssize_t)strlen(text);
    if (file >= 0) {
        close(file);
    }
    return done;
}

/// Fork a child that needs more memory than the group may have. The system ends the child.
static void exceed_limit_in_child(void)
{
    pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        size_t bytes = (size_t)64 << 20;
        if (write_to_group("cgroup.procs", "0")) {
            volatile char *memory = malloc(bytes);
            for (size_t at = 0; at < bytes; at += 4096) {
                memory[at] = 1;
            }
        }
        _exit(0);
    }
    int status;
    REQUIRE(waitpid(child, &status, 0) == child && WIFSIGNALED(status));
}

static memrt_pressure_level_t await_signal(void)
{
    memrt_pressure_level_t level = MEMRT_PRESSURE_NONE;
    for (int i = 0; i < 500 && level == MEMRT_PRESSURE_NONE; i++) {
        usleep(10000);
        level = memrt__pressure_source_read(&source);
    }
    return level;
}

/* On a system without groups of version 1, or without the right to make groups, there is nothing to
   examine. */
TEST(notices_of_a_real_group_are_critical_at_its_limit)
{
    char link[128];
    if (!make_group_1()) {
        return;
    }
    system_tree_begin();
    system_tree_write("/proc/self/cgroup", "4:memory:/\n");
    system_tree_write("/proc/self/mountinfo", "35 31 0:32 / /cg rw - cgroup cgroup rw,memory\n");
    snprintf(link, sizeof(link), "%s/cg", memrt__control_group_root);
    ck_assert_int_eq(symlink(group, link), 0);
    if (write_to_group("memory.limit_in_bytes", "16777216") &&
        open_source() == MEMRT_PRESSURE_NOTICE) {
        ck_assert_int_eq(memrt__pressure_source_read(&source), MEMRT_PRESSURE_NONE);
        exceed_limit_in_child();
        ck_assert_int_eq(await_signal(), MEMRT_PRESSURE_CRITICAL);
        memrt__pressure_source_close(&source);
    }
    system_tree_end();
    ck_assert_int_eq(rmdir(group), 0);
}
