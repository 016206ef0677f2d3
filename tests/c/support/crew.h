#ifndef MEMRT_TESTS_SUPPORT_CREW_H
#define MEMRT_TESTS_SUPPORT_CREW_H

#include <stddef.h>

/// Threads that start their work at the same moment.

/// Work of thread `index`. Fails by REQUIRE.
typedef void (*crew_fn)(size_t index, void *context);

/// Run `count` threads, at most 64, and wait for all.
void crew_run(size_t count, crew_fn work, void *context);

#endif
