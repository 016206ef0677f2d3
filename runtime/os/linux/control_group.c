#include "runtime/os/linux/control_group.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/check.h"
#include "runtime/os/linux/text_file.h"

#define PATH MEMRT__CONTROL_GROUP_PATH
#define NAME 48 /* bytes for the name of a file of a group, with slash and NUL */

const char *memrt__control_group_root = "";

/// Append text to a path. Returns false if the path is too long.
static bool append_text(char *path, size_t room, const char *text)
{
    size_t length = strlen(path), more = strlen(text);
    if (length + more >= room) {
        return false;
    }
    memcpy(path + length, text, more + 1);
    return true;
}

static bool write_system_path(char *path, size_t room, const char *name)
{
    path[0] = '\0';
    return append_text(path, room, memrt__control_group_root) && append_text(path, room, name);
}

/// Return whether a list of words with commas has a word.
static bool has_word(const char *list, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = list; at != NULL; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, word, length) == 0 && (at[length] == ',' || at[length] == '\0')) {
            return true;
        }
    }
    return false;
}

/// Return the path in a line "number:controllers:path" of /proc/self/cgroup. NULL: the line is not
/// for the hierarchy with the memory controller. The path may contain colons.
static const char *parse_group_line(char *line, int version)
{
    char *controllers = strchr(line, ':');
    char *path = controllers == NULL ? NULL : strchr(controllers + 1, ':');
    if (path == NULL || path[1] != '/') {
        return NULL;
    }
    *path++ = '\0';
    *controllers++ = '\0';
    bool found = version == 1 ? has_word(controllers, "memory")
                              : strcmp(line, "0") == 0 && controllers[0] == '\0';
    return found ? path : NULL;
}

static bool read_group_path(int version, char *path, size_t room)
{
    memrt__text_lines_t lines;
    char file[PATH];
    bool found = false;
    if (!write_system_path(file, sizeof(file), "/proc/self/cgroup")) {
        return false;
    }
    memrt__text_open(&lines, file);
    for (char *line = memrt__text_next(&lines); line != NULL && !found;
         line = memrt__text_next(&lines)) {
        const char *text = parse_group_line(line, version);
        path[0] = '\0';
        found = text != NULL && append_text(path, room, text);
    }
    memrt__text_close(&lines);
    return found;
}

static bool is_octal(char digit)
{
    return digit >= '0' && digit <= '7';
}

/// Replace escapes such as \040 in a word of /proc/self/mountinfo, in place.
static void replace_escapes(char *word)
{
    char *to = word;
    for (const char *from = word; *from != '\0'; to++) {
        if (from[0] == '\\' && is_octal(from[1]) && is_octal(from[2]) && is_octal(from[3])) {
            *to = (char)((from[1] - '0') * 64 + (from[2] - '0') * 8 + (from[3] - '0'));
            from += 4;
        } else {
            *to = *from++;
        }
    }
    *to = '\0';
}

/// Cut the next word with blanks around off a line. Returns "" at the end.
static char *take_word(char **line)
{
    char *word = *line + strspn(*line, " ");
    char *end = word + strcspn(word, " ");
    *line = end + (*end != '\0');
    *end = '\0';
    return word;
}

/// Mount of a control group file system.
typedef struct mount {
    char *root;  ///< group at the mount point
    char *point; ///< path of the mount point
} mount_t;

enum { WORDS_BEFORE_ROOT = 3 };

/// Parse a line "id parent device root point options tags - type source options" of
/// /proc/self/mountinfo. Returns false if the line is not for the memory controller of `version`.
static bool parse_mount_line(char *line, int version, mount_t *out)
{
    for (int i = 0; i < WORDS_BEFORE_ROOT; i++) {
        (void)take_word(&line);
    }
    out->root = take_word(&line);
    out->point = take_word(&line);
    const char *word = take_word(&line);
    while (*word != '\0' && strcmp(word, "-") != 0) {
        word = take_word(&line);
    }
    const char *type = take_word(&line);
    (void)take_word(&line);
    const char *options = take_word(&line);
    replace_escapes(out->root);
    replace_escapes(out->point);
    return version == 1 ? strcmp(type, "cgroup") == 0 && has_word(options, "memory")
                        : strcmp(type, "cgroup2") == 0;
}

/// Return the part of a group's path below the root of a mount, NULL if the mount does not show the
/// group. A path with ".." below the root is outside of the namespace of the mount.
static const char *find_path_below(const char *path, const char *root)
{
    size_t length = strcmp(root, "/") == 0 ? 0 : strlen(root);
    if (strncmp(path, root, length) != 0 || (path[length] != '/' && path[length] != '\0')) {
        return NULL;
    }
    const char *rest = path + length;
    bool outside = strncmp(rest, "/..", 3) == 0 && (rest[3] == '/' || rest[3] == '\0');
    return outside ? NULL : rest;
}

/// Write the folder of a group that a mount shows.
static bool write_group_folder(const mount_t *mount, const char *rest, memrt__control_group_t *out)
{
    out->folder[0] = '\0';
    if (!append_text(out->folder, PATH - NAME, memrt__control_group_root) ||
        !append_text(out->folder, PATH - NAME, mount->point)) {
        return false;
    }
    out->top = strlen(out->folder);
    return append_text(out->folder, PATH - NAME, strcmp(rest, "/") == 0 ? "" : rest);
}

/// Find the first mount that shows a group.
static bool find_group_folder(const char *path, memrt__control_group_t *out)
{
    memrt__text_lines_t lines;
    char file[PATH];
    bool found = false;
    if (!write_system_path(file, sizeof(file), "/proc/self/mountinfo")) {
        return false;
    }
    memrt__text_open(&lines, file);
    for (char *line = memrt__text_next(&lines); line != NULL && !found;
         line = memrt__text_next(&lines)) {
        mount_t mount;
        const char *rest =
            parse_mount_line(line, out->version, &mount) ? find_path_below(path, mount.root) : NULL;
        found = rest != NULL && write_group_folder(&mount, rest, out);
    }
    memrt__text_close(&lines);
    return found;
}

bool memrt__control_group_find(int version, memrt__control_group_t *out)
{
    char path[PATH];
    MEMRT__ASSERT(version == 1 || version == 2);
    out->version = version;
    return read_group_path(version, path, sizeof(path)) && find_group_folder(path, out);
}

/// Write the path of a file of the group whose folder has `length` bytes.
static bool write_file_path(const memrt__control_group_t *group, size_t length, const char *name,
                            char *path, size_t room)
{
    MEMRT__ASSERT(length < PATH);
    if (length >= room) {
        return false;
    }
    memcpy(path, group->folder, length);
    path[length] = '\0';
    return append_text(path, room, "/") && append_text(path, room, name);
}

bool memrt__control_group_file(const memrt__control_group_t *group, const char *name, char *path,
                               size_t room)
{
    return write_file_path(group, strlen(group->folder), name, path, room);
}

/// Names of the files of a version.
typedef struct names {
    const char *limits[2]; ///< "": no further file
    const char *used;
    const char *unused_files; ///< line of memory.stat with the unused file pages
} names_t;

static const names_t names_1 = {
    {"memory.limit_in_bytes", ""}, "memory.usage_in_bytes", "total_inactive_file"};
static const names_t names_2 = {{"memory.max", "memory.high"}, "memory.current", "inactive_file"};

/// Version 1 writes a huge number for no limit.
#define UNLIMITED ((uint64_t)1 << 60)

/// Read a number of the group whose folder has `length` bytes.
static bool read_number(const memrt__control_group_t *group, size_t length, const char *name,
                        uint64_t *out)
{
    char path[PATH];
    return write_file_path(group, length, name, path, sizeof(path)) &&
           memrt__text_read_number(path, out);
}

static bool read_field(const memrt__control_group_t *group, size_t length, const char *name,
                       uint64_t *out)
{
    char path[PATH];
    return write_file_path(group, length, "memory.stat", path, sizeof(path)) &&
           memrt__text_read_field(path, name, out);
}

static uint64_t read_used(const memrt__control_group_t *group, size_t length, const names_t *names)
{
    uint64_t used, unused;
    if (!read_number(group, length, names->used, &used)) {
        return 0;
    }
    if (!read_field(group, length, names->unused_files, &unused)) {
        return used;
    }
    return used > unused ? used - unused : 0;
}

/// Lower `*limit` to the limits of one group. Returns whether a limit is lower.
static bool lower_limit(const memrt__control_group_t *group, size_t length, const names_t *names,
                        uint64_t *limit)
{
    bool lower = false;
    for (size_t i = 0; i < 2 && names->limits[i][0] != '\0'; i++) {
        uint64_t bytes;
        if (read_number(group, length, names->limits[i], &bytes) && bytes < *limit) {
            *limit = bytes;
            lower = true;
        }
    }
    return lower;
}

/// Return the length of the folder of the parent, less than `top` behind the last group.
static size_t find_parent(const memrt__control_group_t *group, size_t length)
{
    while (length > group->top && group->folder[length - 1] != '/') {
        length--;
    }
    return length > group->top ? length - 1 : 0;
}

bool memrt__control_group_limit(const memrt__control_group_t *group, uint64_t *limit,
                                uint64_t *used)
{
    const names_t *names = group->version == 1 ? &names_1 : &names_2;
    size_t length = strlen(group->folder), lowest = length;
    uint64_t hidden;
    *limit = UNLIMITED;
    for (size_t at = length; at >= group->top && at != 0; at = find_parent(group, at)) {
        if (lower_limit(group, at, names, limit)) {
            lowest = at;
        }
    }
    if (group->version == 1 && read_field(group, length, "hierarchical_memory_limit", &hidden) &&
        hidden < *limit) {
        *limit = hidden;
    }
    *used = *limit == UNLIMITED ? 0 : read_used(group, lowest, names);
    return *limit != UNLIMITED;
}
