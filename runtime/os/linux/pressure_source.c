#include "runtime/os/pressure_source.h"

#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/shield.h"
#include "runtime/os/linux/control_group.h"
#include "runtime/os/linux/text_file.h"

/* Stalls of 150 ms in 1 s. The kernel allows unprivileged programs only windows of whole 2 s. */
static const char *const triggers[] = {"some 150000 1000000", "some 150000 2000000"};

/// Return a number that another file under the same descriptor does not have.
static uint64_t get_identity(int file)
{
    struct stat about;
    return fstat(file, &about) == 0 ? about.st_ino ^ (uint64_t)about.st_dev << 32 : 0;
}

/// Keep an open file. A program may close all descriptors and open other files, which must stay.
static void keep_file(memrt__pressure_source_t *source, int index, int file)
{
    source->files[index] = file;
    source->identity[index] = get_identity(file);
}

static bool is_still_open(const memrt__pressure_source_t *source, int index)
{
    int file = source->files[index];
    return file >= 0 && get_identity(file) == source->identity[index];
}

static bool write_text(int file, const char *text)
{
    size_t length = strlen(text) + 1;
    return write(file, text, length) == (ssize_t)length;
}

/// Open a file of stalls and set a trigger.
static bool open_trigger(memrt__pressure_source_t *source, const char *path)
{
    for (size_t i = 0; i < sizeof(triggers) / sizeof(triggers[0]); i++) {
        int file = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
        if (file >= 0 && write_text(file, triggers[i])) {
            source->kind = MEMRT_PRESSURE_STALL;
            keep_file(source, 0, file);
            return true;
        }
        if (file >= 0) {
            close(file);
        }
    }
    return false;
}

/// Open the stalls of the control group, otherwise of the machine.
static bool open_stalls(memrt__pressure_source_t *source, const memrt__control_group_t *group)
{
    char path[MEMRT__CONTROL_GROUP_PATH];
    bool found = group != NULL &&
                 memrt__control_group_file(group, "memory.pressure", path, sizeof(path)) &&
                 open_trigger(source, path);
    int length = snprintf(path, sizeof(path), "%s/proc/pressure/memory", memrt__control_group_root);
    return found || (length < (int)sizeof(path) && open_trigger(source, path));
}

enum { EVENTS = 3 };
static const char *const event_names[EVENTS] = {"high", "max", "oom"};
static const memrt_pressure_level_t event_levels[EVENTS] = {
    MEMRT_PRESSURE_MEDIUM, MEMRT_PRESSURE_MEDIUM, MEMRT_PRESSURE_CRITICAL};

/// Read the counts of events, and return the highest level of a count that has risen.
static memrt_pressure_level_t read_events(memrt__pressure_source_t *source)
{
    memrt_pressure_level_t level = MEMRT_PRESSURE_NONE;
    for (size_t i = 0; i < EVENTS; i++) {
        uint64_t count;
        if (memrt__text_read_field(source->path, event_names[i], &count)) {
            level = count > source->events[i] && event_levels[i] > level ? event_levels[i] : level;
            source->events[i] = count;
        }
    }
    return level;
}

static bool open_events(memrt__pressure_source_t *source, const memrt__control_group_t *group)
{
    uint64_t count;
    if (!memrt__control_group_file(group, "memory.events", source->path, sizeof(source->path)) ||
        !memrt__text_read_field(source->path, "max", &count)) {
        return false;
    }
    source->kind = MEMRT_PRESSURE_EVENTS;
    (void)read_events(source);
    return true;
}

static const char *const notice_names[MEMRT__PRESSURE_FILES] = {"medium", "critical"};
static const memrt_pressure_level_t notice_levels[MEMRT__PRESSURE_FILES] = {
    MEMRT_PRESSURE_MEDIUM, MEMRT_PRESSURE_CRITICAL};

/// Have the kernel write notices of a level to the event descriptor `event`.
static bool request_notices(const memrt__control_group_t *group, int event, const char *level)
{
    char path[MEMRT__CONTROL_GROUP_PATH], request[64];
    if (!memrt__control_group_file(group, "memory.pressure_level", path, sizeof(path))) {
        return false;
    }
    int pressure = open(path, O_RDONLY | O_CLOEXEC);
    bool found = memrt__control_group_file(group, "cgroup.event_control", path, sizeof(path));
    int control = found ? open(path, O_WRONLY | O_CLOEXEC) : -1;
    snprintf(request, sizeof(request), "%d %d %s", event, pressure, level);
    bool done = pressure >= 0 && control >= 0 && write_text(control, request);
    if (pressure >= 0) {
        close(pressure);
    }
    if (control >= 0) {
        close(control);
    }
    return done;
}

static bool open_notices(memrt__pressure_source_t *source, const memrt__control_group_t *group)
{
    for (int i = 0; i < MEMRT__PRESSURE_FILES; i++) {
        int event = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
        if (event >= 0) {
            keep_file(source, i, event);
        }
        if (event < 0 || !request_notices(group, event, notice_names[i])) {
            memrt__pressure_source_close(source);
            return false;
        }
    }
    source->kind = MEMRT_PRESSURE_NOTICE;
    return true;
}

void memrt__pressure_source_open(memrt__pressure_source_t *source)
{
    MEMRT__SHIELD;
    memrt__control_group_t group;
    *source = (memrt__pressure_source_t){.kind = MEMRT_PRESSURE_HEADROOM, .files = {-1, -1}};
    bool found = memrt__control_group_find(2, &group);
    if (open_stalls(source, found ? &group : NULL) || (found && open_events(source, &group))) {
        return;
    }
    if (memrt__control_group_find(1, &group)) {
        (void)open_notices(source, &group);
    }
}

static memrt_pressure_level_t read_stalls(const memrt__pressure_source_t *source)
{
    struct pollfd request = {.fd = source->files[0], .events = POLLPRI};
    bool stalled = is_still_open(source, 0) && poll(&request, 1, 0) == 1 &&
                   (request.revents & POLLPRI) != 0 && (request.revents & POLLERR) == 0;
    return stalled ? MEMRT_PRESSURE_MEDIUM : MEMRT_PRESSURE_NONE;
}

static memrt_pressure_level_t read_notices(const memrt__pressure_source_t *source)
{
    memrt_pressure_level_t level = MEMRT_PRESSURE_NONE;
    for (int i = 0; i < MEMRT__PRESSURE_FILES; i++) {
        uint64_t count;
        if (is_still_open(source, i) &&
            read(source->files[i], &count, sizeof(count)) == (ssize_t)sizeof(count)) {
            level = notice_levels[i];
        }
    }
    return level;
}

memrt_pressure_level_t memrt__pressure_source_read(memrt__pressure_source_t *source)
{
    MEMRT__SHIELD;
    switch (source->kind) {
    case MEMRT_PRESSURE_STALL:
        return read_stalls(source);
    case MEMRT_PRESSURE_EVENTS:
        return read_events(source);
    case MEMRT_PRESSURE_NOTICE:
        return read_notices(source);
    default:
        return MEMRT_PRESSURE_NONE;
    }
}

void memrt__pressure_source_close(memrt__pressure_source_t *source)
{
    MEMRT__SHIELD;
    for (int i = 0; i < MEMRT__PRESSURE_FILES; i++) {
        if (is_still_open(source, i)) {
            close(source->files[i]);
        }
        source->files[i] = -1;
    }
}
