#include "runtime/stats/peak.h"

#include <stdbool.h>

#include "runtime/base/atomics.h"
#include "runtime/base/size.h"
#include "runtime/stats/shard.h"
#include "runtime/thread/thread.h"

/// Raise `rise` to the maximum of the unreported rises of all gauges of an account. Returns false
/// if a gauge reports meanwhile.
static bool find_higher_rise(const memrt__account_t *account, size_t *rise)
{
    bool calm = true;
    for (memrt__thread_t *t = memrt__thread_first(); t != NULL; t = t->next) {
        const memrt__shard_t *shard = memrt__thread_shard(t, account->index);
        size_t other = shard == NULL ? 0 : memrt__gauge_rise(shard);
        *rise = (ptrdiff_t)other > (ptrdiff_t)*rise ? other : *rise;
        calm = calm && !memrt__is_rise_of_report(other);
    }
    return calm;
}

/// Set `rise` to the highest unreported rise of a gauge of the aggregate. Returns false if a gauge
/// reports meanwhile.
static bool find_highest_rise(const memrt__level_t *level, size_t *rise)
{
    bool calm = true;
    *rise = 0;
    for (memrt__account_t *a = memrt__account_first(); a != NULL; a = a->next) {
        if (memrt__account_is_in(a, level)) {
            calm = find_higher_rise(a, rise) && calm;
        }
    }
    return calm;
}

static size_t count_account_falls(const memrt__account_t *account)
{
    size_t falls = memrt__load_acquire(&account->shared->falls);
    for (memrt__thread_t *t = memrt__thread_first(); t != NULL; t = t->next) {
        const memrt__shard_t *shard = memrt__thread_shard(t, account->index);
        falls += shard == NULL ? 0 : memrt__load_acquire(&shard->falls);
    }
    return falls;
}

/// Return the number of reports of a decrease to an aggregate.
static size_t count_falls(const memrt__level_t *level)
{
    size_t falls = 0;
    for (memrt__account_t *a = memrt__account_first(); a != NULL; a = a->next) {
        falls += memrt__account_is_in(a, level) ? count_account_falls(a) : 0;
    }
    return falls;
}

/// Read the reported bytes of an aggregate plus the highest rise of a gauge. Returns false if the
/// result may be too high: if a gauge reports meanwhile, the reported bytes may be ahead of the
/// bytes in use, and no peak includes them yet. If a decrease was reported meanwhile, the reported
/// bytes may include a block freed meanwhile, and the gauge a later allocation, although both were
/// never in use together.
static bool read_unreported_peak(const memrt__level_t *level, uint64_t *out)
{
    size_t falls = count_falls(level), rise;
    size_t flushed = memrt__load_acquire(&level->flushed);
    bool calm = find_highest_rise(level, &rise);
    *out = memrt__size_at_least_zero(flushed + rise);
    return calm && count_falls(level) == falls;
}

/// Return the error bound of the peak. The peak of a single gauge is exact. Several gauges may each
/// hold back a rise and a fall.
static uint64_t compute_error(const memrt__level_t *level, bool complete)
{
    bool several = memrt__load_relaxed(&level->most_gauges) != 1 ||
                   memrt__load_relaxed(&level->past_gauges) != 0;
    return complete && !several ? 0 : memrt__load_relaxed(&level->most_hidden);
}

/// The order of the loads is: reported bytes, gauges, peak. So a rise that a gauge reports
/// meanwhile is in exactly one of the three.
void memrt__peak_read(const memrt__level_t *level, memrt__peak_t *out)
{
    uint64_t risen = 0;
    bool calm = false;
    for (int look = 0; look < MEMRT__PEAK_LOOKS && !calm; look++) {
        calm = read_unreported_peak(level, &risen);
    }
    uint64_t highest = memrt__size_at_least_zero(memrt__load_acquire(&level->peak));
    out->bytes = calm ? memrt__size_max(risen, highest) : highest;
    out->error = compute_error(level, calm);
}
