#ifndef MEMRT_OS_LINUX_TEXT_FILE_H
#define MEMRT_OS_LINUX_TEXT_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/// Reader of small text files of the system. Allocates nothing, because the readers also run while
/// a refused allocation is explained. The callers hold a shield: the functions change `errno` and
/// are cancellation points.

/// Read the first bytes of a file as text; "" if the file cannot be read.
void memrt__text_read(const char *path, char *text, size_t room);

/// Read the number at the start of a file. Returns false without a number, as for "max".
bool memrt__text_read_number(const char *path, uint64_t *out);

/// Read the number behind `name` and a blank in a file of lines "name number".
bool memrt__text_read_field(const char *path, const char *name, uint64_t *out);

/// Maximum length of a line, newline included. Longer lines are skipped.
#define MEMRT__TEXT_LINE 4096

/// File that is read line by line.
typedef struct memrt__text_lines {
    int file;             ///< -1: not open, no lines
    size_t start, length; ///< unread part of `text`
    char text[MEMRT__TEXT_LINE];
} memrt__text_lines_t;

void memrt__text_open(memrt__text_lines_t *lines, const char *path);

/// Return the next line without its newline, or NULL at the end. The caller may change the line,
/// which lasts until the next call.
char *memrt__text_next(memrt__text_lines_t *lines);

void memrt__text_close(memrt__text_lines_t *lines);

#endif
