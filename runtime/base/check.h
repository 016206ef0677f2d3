#ifndef MEMRT_BASE_CHECK_H
#define MEMRT_BASE_CHECK_H

#include "runtime/base/compiler.h"

/// Write "memrt: " and the message to standard error and abort. For a caller's bug that was seen.
///
/// Allocates nothing; a message of over 4,000 bytes is cut.
_Noreturn MEMRT__COLD void memrt__abort(const char *format, ...) MEMRT__PRINTF(1, 2);

/// An invariant of memrt's own, in builds for development only.
#ifdef NDEBUG
#define MEMRT__ASSERT(condition) ((void)0)
#else
#define MEMRT__ASSERT(condition)                                                                   \
    (MEMRT__LIKELY(condition)                                                                      \
         ? (void)0                                                                                 \
         : memrt__abort("%s:%d: broken invariant: %s", __FILE__, __LINE__, #condition))
#endif

#endif
