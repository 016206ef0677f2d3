#ifndef MEMRT_BASE_WATCH_H
#define MEMRT_BASE_WATCH_H

#include <stdbool.h>

#include "runtime/base/atomics.h"

/// Who wants to know of new blocks, or have them fail: while this is not 0, allocations take the
/// long way. One word, so that the short way looks once. Relaxed: it publishes nothing, a thread
/// may see it late.
extern unsigned memrt__watch;

#define MEMRT__WATCH_TRACKING 1u ///< new blocks are listed
#define MEMRT__WATCH_FAILURE 2u  ///< a plan of failures is set
#define MEMRT__WATCH_SCOPES 4u   ///< a thread entered a scope
#define MEMRT__WATCH_SAMPLING 8u ///< a sample of new blocks is listed

#define MEMRT__WATCH_TRACING 16u ///< a trace is recorded

#define MEMRT__WATCH_ANY (~0u)

/// Those that no short way serves.
#define MEMRT__WATCH_SLOWLY (MEMRT__WATCH_TRACKING | MEMRT__WATCH_FAILURE | MEMRT__WATCH_TRACING)

static inline bool memrt__is_watched(unsigned by)
{
    return (memrt__flags_load_relaxed(&memrt__watch) & by) != 0;
}

/// Whether scopes are all there is to watch for.
static inline bool memrt__is_watched_for_scopes_alone(void)
{
    return memrt__flags_load_relaxed(&memrt__watch) == MEMRT__WATCH_SCOPES;
}

static inline void memrt__watch_set(unsigned by, bool on)
{
    if (on) {
        memrt__flags_set_relaxed(&memrt__watch, by);
    } else {
        memrt__flags_clear_relaxed(&memrt__watch, by);
    }
}

#endif
