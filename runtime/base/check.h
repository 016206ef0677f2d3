#ifndef MEMRT_BASE_CHECK_H
#define MEMRT_BASE_CHECK_H

#include "runtime/base/compiler.h"

/// Write "memrt: " and the message to standard error, then abort. For a detected bug of the caller.
///
/// Allocates nothing. Cuts a message of more than 4,000 bytes.
_Noreturn MEMRT__COLD void memrt__abort(const char *format, ...) MEMRT__PRINTF(1, 2);

/// End of a message about a caller's bug that a build without checking detects but cannot locate.
#define MEMRT__CHECK_HINT "; run with MEMRT_CHECK=1 for call stacks"

/// Check an internal invariant of memrt, in development builds only.
#ifdef NDEBUG
#define MEMRT__ASSERT(condition) ((void)0)
#else
#define MEMRT__ASSERT(condition)                                                                   \
    (MEMRT__LIKELY(condition)                                                                      \
         ? (void)0                                                                                 \
         : memrt__abort("%s:%d: broken invariant: %s", __FILE__, __LINE__, #condition))
#endif

#endif
