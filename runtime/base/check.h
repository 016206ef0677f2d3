#ifndef MEMRT_BASE_CHECK_H
#define MEMRT_BASE_CHECK_H

#include <stdbool.h>

#include <memrt/observe/site.h>

#include "runtime/base/compiler.h"

/// Write "memrt: " and the message to standard error, then abort. For a detected bug of the caller.
/// The calls of an interpreter on the calling thread follow, if memrt__set_write_frames() has a
/// function.
///
/// Allocates nothing. Cuts a message of more than 4,000 bytes.
_Noreturn MEMRT__COLD void memrt__abort(const char *format, ...) MEMRT__PRINTF(1, 2);

/// See memrt_api_t.set_write_frames.
void memrt__set_write_frames(memrt_write_frames_fn write);

/// Write `heading` and the calls of an interpreter on the calling thread to standard error, each
/// call on a line of its own. Without a function of memrt__set_write_frames(), write nothing.
///
/// Threads: for a signal handler: takes no lock and allocates nothing.
void memrt__write_running_calls(const char *heading);

/// End of a message about a caller's bug that a build without checking detects but cannot locate.
#define MEMRT__CHECK_HINT "; run with MEMRT_CHECK=1 for call stacks"

/// MEMRT_DEBUG of CMake: 1 in builds that check internal invariants.
#ifndef MEMRT_DEBUG
#define MEMRT_DEBUG 0
#endif

/// Check an internal invariant of memrt. A broken invariant aborts in a build with MEMRT_DEBUG.
/// Other builds do not evaluate the condition.
#if MEMRT_DEBUG
#define MEMRT__ASSERT(condition)                                                                   \
    (MEMRT__LIKELY(condition)                                                                      \
         ? (void)0                                                                                 \
         : memrt__abort("%s:%d: broken invariant: %s", __FILE__, __LINE__, #condition))
#else
#define MEMRT__ASSERT(condition) ((void)0)
#endif

#if MEMRT_DEBUG
/// Evaluate a condition of a function memrt__<structure>_is_valid(). The text of a false condition
/// is recorded for memrt__invariant_broken().
#define MEMRT__HOLDS(condition)                                                                    \
    (MEMRT__LIKELY(condition) || memrt__invariant_record(__FILE__ ": " #condition))

/// Record the text of a broken invariant; returns false.
MEMRT__COLD bool memrt__invariant_record(const char *text);

/// Return the text of the last broken invariant that MEMRT__HOLDS() found, or "none".
const char *memrt__invariant_broken(void);
#endif

#endif
