#ifndef MEMRT_BASE_SLOW_PATH_H
#define MEMRT_BASE_SLOW_PATH_H

#include <stdbool.h>

#include "runtime/base/atomics.h"

/// Observers of block events, as a set of MEMRT__SLOW_* bits: tracking, event trace, fault
/// injection, hooks, log of operations, and snapshots of the statistics. While the word is 0,
/// allocations take the fast path. One word lets the fast path check all observers with one load.
/// The load is relaxed: the word publishes nothing, and a thread may see a change late.
extern MEMRT__HIDDEN unsigned memrt__slow_path;

#define MEMRT__SLOW_TRACKING 1u ///< each new block is listed
#define MEMRT__SLOW_FAILURE 2u  ///< a fault injection plan is set
#define MEMRT__SLOW_SAMPLING 4u ///< a sample of new blocks is listed
#define MEMRT__SLOW_TRACING 8u  ///< an event trace is recorded
#define MEMRT__SLOW_HOOKS 16u   ///< a hook exists, or operations on MemInfos are logged
#define MEMRT__SLOW_PAUSE 32u   ///< a snapshot of the statistics is being read
#define MEMRT__SLOW_GUARD 64u   ///< most blocks get guard pages
#define MEMRT__SLOW_CLOSE 128u  ///< most blocks of a policy with a fast path get guard pages

/// Observers that need the slow path for each allocation.
#define MEMRT__SLOW_ALWAYS                                                                         \
    (MEMRT__SLOW_TRACKING | MEMRT__SLOW_FAILURE | MEMRT__SLOW_TRACING | MEMRT__SLOW_HOOKS)

static inline bool memrt__is_slow(unsigned by)
{
    return (memrt__flags_load_relaxed(&memrt__slow_path) & by) != 0;
}

/// Return whether any observer is on.
static MEMRT__INLINE bool memrt__is_observed(void)
{
    return MEMRT__UNLIKELY(!memrt__flags_equal(&memrt__slow_path, 0));
}

static inline void memrt__slow_path_set(unsigned by, bool on)
{
    if (on) {
        memrt__flags_set_relaxed(&memrt__slow_path, by);
    } else {
        memrt__flags_clear_relaxed(&memrt__slow_path, by);
    }
}

#endif
