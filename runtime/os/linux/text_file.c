#include "runtime/os/linux/text_file.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/check.h"

static int open_file(const char *path)
{
    return open(path, O_RDONLY | O_CLOEXEC);
}

void memrt__text_read(const char *path, char *text, size_t room)
{
    int file = open_file(path);
    ssize_t length = file < 0 ? 0 : read(file, text, room - 1);
    text[length < 0 ? 0 : length] = '\0';
    if (file >= 0) {
        close(file);
    }
}

static bool parse_number(const char *text, uint64_t *out)
{
    char *end;
    *out = strtoull(text, &end, 10);
    return end != text;
}

bool memrt__text_read_number(const char *path, uint64_t *out)
{
    char text[64];
    memrt__text_read(path, text, sizeof(text));
    return parse_number(text, out);
}

bool memrt__text_read_field(const char *path, const char *name, uint64_t *out)
{
    memrt__text_lines_t lines;
    size_t length = strlen(name);
    bool found = false;
    memrt__text_open(&lines, path);
    for (char *line = memrt__text_next(&lines); line != NULL && !found;
         line = memrt__text_next(&lines)) {
        found = strncmp(line, name, length) == 0 && line[length] == ' ' &&
                parse_number(line + length, out);
    }
    memrt__text_close(&lines);
    return found;
}

void memrt__text_open(memrt__text_lines_t *lines, const char *path)
{
    lines->file = open_file(path);
    lines->start = 0;
    lines->length = 0;
}

/// Move the unread part to the front and read more. Returns false at the end of the file.
static bool read_more(memrt__text_lines_t *lines)
{
    memmove(lines->text, lines->text + lines->start, lines->length);
    lines->start = 0;
    size_t room = sizeof(lines->text) - lines->length;
    ssize_t count = read(lines->file, lines->text + lines->length, room);
    lines->length += count > 0 ? (size_t)count : 0;
    return count > 0;
}

/// Take the line that ends at `end` out of the unread part.
static char *take_line(memrt__text_lines_t *lines, char *end)
{
    char *line = lines->text + lines->start;
    size_t length = (size_t)(end - line) + 1;
    MEMRT__ASSERT(length <= lines->length);
    *end = '\0';
    lines->start += length;
    lines->length -= length;
    return line;
}

char *memrt__text_next(memrt__text_lines_t *lines)
{
    bool skipping = false; /* inside a line that is too long */
    while (lines->file >= 0) {
        char *end = memchr(lines->text + lines->start, '\n', lines->length);
        if (end != NULL) {
            char *line = take_line(lines, end);
            if (!skipping) {
                return line;
            }
            skipping = false;
        } else if (lines->length == sizeof(lines->text)) {
            skipping = true;
            lines->length = 0;
        } else if (!read_more(lines)) {
            return NULL;
        }
    }
    return NULL;
}

void memrt__text_close(memrt__text_lines_t *lines)
{
    if (lines->file >= 0) {
        close(lines->file);
    }
}
