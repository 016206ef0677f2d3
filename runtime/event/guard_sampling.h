#ifndef MEMRT_EVENT_GUARD_SAMPLING_H
#define MEMRT_EVENT_GUARD_SAMPLING_H

#include <stdbool.h>

#include "runtime/alloc/guard/guard_pages.h"
#include "runtime/policy/policy_table.h"

/// Sampling of guarded blocks: which allocations get guard pages.
///
/// The bytes that a thread allocates for an account form a line, with sample points at
/// exponentially distributed distances. The mean is the policy's own, or MEMRT_GUARD_SAMPLE. The
/// first allocation on the slow path after a point gets guard pages. The counters of the shard
/// already have the position on the line, so the fast path has no instruction for sampling.
///
/// A loop of allocations and frees may stay on the fast path. Its counters then reach the slow path
/// of a free within 1 MiB. If a point was passed, the free clears the homes of the thread, and the
/// next allocation takes the slow path. With a mean below MEMRT__GUARD_PAGES_CLOSE, each
/// allocation takes the slow path. With a mean of 1, each block gets guard pages. After a change of
/// the mean of a policy, each thread draws a new point.
///
/// Without a shard, an allocation is chosen by its size alone.

/// Mean distance in bytes for policies without a mean of their own; 0: no guard pages. Fixed after
/// the start.
extern MEMRT__HIDDEN size_t memrt__guard_mean;

/// Start sampling as the options set it. Called once. Failure: returns false when out of memory, or
/// in checking mode, whose redzones exclude guard pages.
bool memrt__guard_sampling_start(void);

/// Set memrt__guard_mean. Failure: returns false when out of memory.
bool memrt__guard_sampling_set(size_t mean);

/// Slow paths of the functions below.
MEMRT__COLD bool memrt__guard_pick(const memrt_policy_t *policy, size_t size);
MEMRT__COLD void memrt__guard_follow(const memrt__tally_t *tally);

/// Return whether any policy may have guard pages.
static inline bool memrt__guard_is_on(void)
{
    return MEMRT__UNLIKELY(memrt__load_relaxed(&memrt__guard_pages_ready) != 0);
}

/// Return whether the next block, of `size` bytes from a policy in force, gets guard pages. Call
/// the function once for each allocation on the slow path. The function requests no memory.
static inline bool memrt__guard_is_due(const memrt_policy_t *policy, size_t size)
{
    return memrt__guard_is_on() && memrt__guard_pick(policy, size);
}

/// Lead the next allocation of the thread to the slow path if a sample point was passed. Call the
/// function for each free on the slow path.
static inline void memrt__guard_note_free(const memrt__tally_t *tally)
{
    if (memrt__guard_is_on()) {
        memrt__guard_follow(tally);
    }
}

#endif
