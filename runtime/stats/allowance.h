#ifndef MEMRT_STATS_ALLOWANCE_H
#define MEMRT_STATS_ALLOWANCE_H

#include <stddef.h>

#include "runtime/stats/account.h"

/// Allowances: the bytes that a gauge may hide from its aggregates, by a rise or a fall. The sum of
/// the allowances in an aggregate is the error of its peak. All functions are for an own gauge.

/// Bytes that a gauge may rise or fall before a report. A rise of more than 64 KiB is reported, and
/// a fall of more than 960 KiB. A fall is often made up for at once, so its limit is larger. The
/// sum of both limits is the allowance of a gauge, its contribution to the error of the peak.
/// Gauges of close peaks have a smaller allowance, with the same parts.
#define MEMRT__GAUGE_RISE (MEMRT__GAUGE_ERROR / MEMRT__GAUGE_PARTS)
#define MEMRT__GAUGE_FALL (MEMRT__GAUGE_ERROR - MEMRT__GAUGE_RISE)
#define MEMRT__GAUGE_ERROR ((ptrdiff_t)1 << 20)
#define MEMRT__GAUGE_PARTS 16

/// Parts of the allowance in memrt__allowance_ahead().
#define MEMRT__GAUGE_AHEAD_PARTS 7

/// Return the bytes that a gauge may rise above the last report. The rest is for a fall.
static inline size_t memrt__allowance_rise(const memrt__shard_t *shard)
{
    return shard->allowance / MEMRT__GAUGE_PARTS;
}

/// Return the maximum of the bytes by which a gauge reports more than its bytes in use, as long as
/// the reports stay below the peaks. The gauge then rises by as much without a report.
static inline size_t memrt__allowance_ahead(const memrt__shard_t *shard)
{
    return MEMRT__GAUGE_AHEAD_PARTS * memrt__allowance_rise(shard);
}

/// Return the allowance that the mode of peaks gives to a gauge; 0: every change is reported.
size_t memrt__allowance_choose(const memrt__shard_t *shard, const memrt__account_t *account);

/// Raise the allowance of a gauge to `allowance` in all aggregates, before the gauge holds back
/// more. The allowance stays as it is where close peaks leave no room.
void memrt__allowance_raise(memrt__shard_t *shard, memrt__account_t *account, size_t allowance);

/// Lower the allowance of a gauge to `allowance`, after the gauge reported its changes.
void memrt__allowance_lower(memrt__shard_t *shard, memrt__account_t *account, size_t allowance);

#endif
