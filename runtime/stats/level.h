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

/// Use of an aggregate, compared with its soft limit.
typedef enum memrt__soft_state {
    MEMRT__SOFT_BELOW, ///< the next promise above the soft limit is noted
    MEMRT__SOFT_NOTED, ///< a promise exceeded the soft limit
    MEMRT__SOFT_ABOVE, ///< a rise was counted; lasts until memrt__level_is_low()
} memrt__soft_state_t;

/// Aggregate: a sum over accounts. A policy, a scope with its inner scopes, and the process are
/// aggregates. Each account is part of several aggregates, and its gauges report to all of them.
typedef struct memrt__level {
    struct memrt__level *up; ///< fixed; enclosing aggregate
    size_t flushed;          ///< any thread, release add; bytes in use, as reported by gauges
    size_t peak;             ///< any thread, release raise; maximum of `flushed` plus a rise; never
                             ///< less than `flushed`, except during a report
    size_t gauges;           ///< any thread, relaxed add; gauges not at rest now
    size_t most_gauges;      ///< any thread, raise; maximum of `gauges` since the peak started
    size_t hidden;           ///< any thread, relaxed add; allowances of all gauges
    size_t most_hidden;      ///< any thread, raise; maximum of `hidden` since the peak started
    size_t past_gauges;      ///< any thread, relaxed; not 0: a single gauge does not prove the peak
    size_t promised;         ///< any thread, add; bytes that gauges may rise without a report
    size_t limit;            ///< any thread, relaxed; maximum of live bytes, plus 1; 0: no limit
    size_t soft;             ///< any thread, relaxed; soft limit, plus 1; 0: none
    size_t soft_state;       ///< any thread; a memrt__soft_state_t
    size_t soft_rises;       ///< any thread, relaxed add; rises above the soft limit
    memrt__sums_t past;      ///< under the lock of rank THREADS; counts of retired accounts
    size_t past_sizes[MEMRT_SIZE_BINS]; ///< under the same lock; their blocks by size, all freed
} memrt__level_t;

/// Aggregate of all accounts.
extern memrt__level_t memrt__process;

/// Number of limits and soft limits of aggregates. Relaxed.
extern size_t memrt__limited_levels;

/// Number of soft limits of aggregates. Relaxed.
extern size_t memrt__soft_limits;

/// 1: a promise exceeded a soft limit, and the pressure thread does not know yet. Relaxed.
extern size_t memrt__soft_noted;

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

/// A peak in the mode "close" is off by at most 1/50: 2 %.
#define MEMRT__CLOSE_PARTS 50u

/// Add `more` to the allowances in an aggregate and all outer aggregates. With `close`, the
/// allowances stay within 1/MEMRT__CLOSE_PARTS of each peak. False: nothing changed.
bool memrt__level_hide(memrt__level_t *level, size_t more, bool close) MEMRT_MUST_CHECK;

/// Take back a part of the allowances, after the gauge reported its changes.
void memrt__level_unhide(memrt__level_t *level, size_t less);

/// Return an allowance that leaves room for other gauges: half of the bytes that an aggregate and
/// all outer aggregates may hide, without `own`, the current allowance. SIZE_MAX for NULL.
size_t memrt__level_close_allowance(const memrt__level_t *level, size_t own);

/// Record that a single gauge no longer proves the peak: one gauge reported while another gauge was
/// not at rest.
void memrt__level_mark_several_gauges(memrt__level_t *level);

/// Set or remove the limit of an aggregate. `limit` SIZE_MAX: no limit.
///
/// Invariant: `flushed` plus `promised` stay within the limit, except for bytes that were in use
/// before the limit was set. The sum is never less than the bytes in use of gauges that rise only
/// by promised bytes.
void memrt__level_set_limit(memrt__level_t *level, size_t limit);

/// Set or remove the soft limit of an aggregate. `soft` SIZE_MAX: none. A use above the soft limit
/// is a rise at the next memrt__level_update_soft().
void memrt__level_set_soft(memrt__level_t *level, size_t soft);

/// Return whether an aggregate has a limit or a soft limit.
bool memrt__level_has_limits(const memrt__level_t *level);

/// Remove the limit and the soft limit of an aggregate.
void memrt__level_end_limits(memrt__level_t *level);

/// Return the soft limit of an aggregate, or SIZE_MAX.
size_t memrt__level_soft(const memrt__level_t *level);

/// Note, in an aggregate and all outer aggregates, that a promise may have exceeded a soft limit.
void memrt__level_note_soft(memrt__level_t *level);

/// Update the state of the soft limit, by one thread at a time. Returns whether the use rose above
/// the soft limit since the last update.
///
/// Invariant: a promise that exceeds the soft limit either finds MEMRT__SOFT_BELOW and is noted, or
/// its bytes are part of the use that this function compares.
bool memrt__level_update_soft(memrt__level_t *level) MEMRT_MUST_CHECK;

/// Return whether the use is at most 95 % of the soft limit.
bool memrt__level_is_low(const memrt__level_t *level);

/// Return the limit of an aggregate, or SIZE_MAX.
size_t memrt__level_limit(const memrt__level_t *level);

/// Return the signed bytes that gauges have reported or may use by promises.
size_t memrt__level_used(const memrt__level_t *level);

/// Return the bytes that an aggregate has left below its limit: 0 if none, SIZE_MAX without a
/// limit.
size_t memrt__level_room(const memrt__level_t *level);

/// Return the bytes that an aggregate has left below `limit`, in place of its own limit.
size_t memrt__level_room_below(const memrt__level_t *level, size_t limit);

/// Promise `bytes` to a gauge, in an aggregate and all outer aggregates. False, with nothing
/// changed: a limit has less room.
bool memrt__level_promise(memrt__level_t *level, size_t bytes) MEMRT_MUST_CHECK;

/// Promise bytes that a gauge reported and no longer uses, without a check. The gauge then reports
/// the fall, so that no other gauge gets the bytes in between.
void memrt__level_keep_promise(memrt__level_t *level, size_t bytes);

/// Take back a promise, because the gauge reported the bytes or does not need them.
void memrt__level_end_promise(memrt__level_t *level, size_t bytes);

/// Return the lowest limit or soft limit of an aggregate and all outer aggregates, or SIZE_MAX.
size_t memrt__level_lowest_limit(const memrt__level_t *level);

#endif
