#ifndef MEMRT_TESTS_SUPPORT_POINTS_H
#define MEMRT_TESTS_SUPPORT_POINTS_H

#include <stddef.h>

/// Add a line "what<tab>kind<tab>count" to the file that POINTS_FILE names, if it names one: at so
/// many points of `what` a failure of that kind was met.
void points_note(const char *what, const char *kind, size_t count);

#endif
