#ifndef MEMRT_STATS_LEVEL_H
#define MEMRT_STATS_LEVEL_H

#include <stdbool.h>
#include <stddef.h>

#include <memrt/meminfo.h>
#include <memrt/observe/stats.h>

#include "runtime/thread/shard_layout.h"

/// Aggregates: bytes in use and peaks of a policy, a scope and the process. Gauges report to them.

/// Sums of the counters of shards, with a counter of blocks for each kind.
typedef struct memrt__sums {
    size_t bytes_in, bytes_out;
    size_t made[MEMRT__KINDS], freed[MEMRT__KINDS]; ///< by memrt_kind_t
    size_t promoted_in, promoted_out;
    size_t extra_in, extra_out;
    size_t adopted_in, adopted_out;
    size_t exported_in, exported_out;
    size_t realloc, failed;
} memrt__sums_t;

/// Aggregate: a sum over accounts. A policy, a scope with its inner scopes, and the process are
/// aggregates. Each account is part of several aggregates, and its gauges report to all of them.
typedef struct memrt__level {
    struct memrt__level *up; ///< fixed; enclosing aggregate
    size_t flushed;          ///< any thread, release add; bytes in use, as reported by gauges
    size_t peak;             ///< any thread, release raise; maximum of `flushed` plus a rise; never
                             ///< less than `flushed`, except during a report
    size_t gauges;           ///< any thread, relaxed add; gauges not at rest now
    size_t most_gauges;      ///< any thread, raise; maximum of `gauges` since the peak started
    size_t past_gauges;      ///< any thread, relaxed; not 0: a single gauge does not prove the peak
    size_t promised;         ///< any thread, add; bytes that gauges may rise without a report
    size_t limit;            ///< any thread, relaxed; maximum of live bytes, plus 1; 0: no limit
    memrt__sums_t past;      ///< under the lock of rank THREADS; counts of retired accounts
    size_t past_sizes[MEMRT_SIZE_BINS]; ///< under the same lock; their blocks by size, all freed
} memrt__level_t;

/// Aggregate of all accounts.
extern memrt__level_t memrt__process;

/// Number of aggregates with a limit. Relaxed.
extern size_t memrt__limited_levels;

/// Number of changes of limits. Release, after the change; partner: the acquire load of a gauge,
/// which then reads the changed limits.
extern size_t memrt__limit_changes;

/// Add `change` to the reported bytes of an aggregate and all outer aggregates, and raise their
/// peaks by `rise` above the earlier reported bytes. A `change` above `rise` is a report ahead of
/// the bytes in use. If it exceeds a peak, a single gauge no longer proves that peak.
void memrt__level_report(memrt__level_t *level, size_t change, size_t rise);

/// Raise the peaks of an aggregate and all outer aggregates to the reported bytes plus `rise`.
/// Release; partner: the acquire load of a reader that loads the peak before the sums.
void memrt__level_raise_peaks(memrt__level_t *level, size_t rise);

/// Return the minimum, over an aggregate and all outer aggregates, of the peak less the reported
/// bytes, as a signed number. PTRDIFF_MAX for NULL. Other threads may change the result at once.
size_t memrt__level_distance_to_peak(const memrt__level_t *level);

/// Add `change`, 1 or -1, to the number of gauges that are not at rest.
void memrt__level_count_gauges(memrt__level_t *level, size_t change);

/// Record that a single gauge no longer proves the peak: one gauge reported while another gauge was
/// not at rest.
void memrt__level_mark_several_gauges(memrt__level_t *level);

/// Set or remove the limit of an aggregate. `limit` SIZE_MAX: no limit.
///
/// Invariant: `flushed` plus `promised` stay within the limit, except for bytes that were in use
/// before the limit was set. The sum is never less than the bytes in use of gauges that rise only
/// by promised bytes.
void memrt__level_set_limit(memrt__level_t *level, size_t limit);

/// Return the limit of an aggregate, or SIZE_MAX.
size_t memrt__level_limit(const memrt__level_t *level);

/// Return the signed bytes that gauges have reported or may use by promises.
size_t memrt__level_used(const memrt__level_t *level);

/// Return the bytes that an aggregate has left below its limit: 0 if none, SIZE_MAX without a
/// limit.
size_t memrt__level_room(const memrt__level_t *level);

/// Promise `bytes` to a gauge, in an aggregate and all outer aggregates. False, with nothing
/// changed: a limit has less room.
bool memrt__level_promise(memrt__level_t *level, size_t bytes) MEMRT_MUST_CHECK;

/// Promise bytes that a gauge reported and no longer uses, without a check. The gauge then reports
/// the fall, so that no other gauge gets the bytes in between.
void memrt__level_keep_promise(memrt__level_t *level, size_t bytes);

/// Take back a promise, because the gauge reported the bytes or does not need them.
void memrt__level_end_promise(memrt__level_t *level, size_t bytes);

/// Return the lowest limit of an aggregate and all outer aggregates, or SIZE_MAX.
size_t memrt__level_lowest_limit(const memrt__level_t *level);

#endif
