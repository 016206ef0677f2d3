#ifndef MEMRT_TESTS_SUPPORT_POINTS_H
#define MEMRT_TESTS_SUPPORT_POINTS_H

#include <stddef.h>

/// Append the line "what<tab>kind<tab>count" to the file named by POINTS_FILE, if the variable is
/// set. The line records: `what` met failures of `kind` at `count` points.
void points_note(const char *what, const char *kind, size_t count);

#endif
