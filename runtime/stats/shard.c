#include "runtime/stats/shard.h"

#include "runtime/config/options.h"
#include "runtime/stats/allowance.h"
#include "runtime/stats/promise.h"

_Static_assert(MEMRT__PROMISE_AHEAD == (size_t)MEMRT__GAUGE_RISE, "a promise lasts to a report");
_Static_assert(MEMRT__QUANTUM_MAX == (size_t)MEMRT__GAUGE_FALL, "a high limit causes no report");

/// Begin a slow path of the owner: `bytes_in` and `bytes_out` count. The releases and the fence
/// keep the order of the stores for read_counter().
static void open_shard(memrt__shard_t *shard)
{
    MEMRT__ASSERT(!memrt__shard_is_open(shard));
    size_t in = memrt__shard_own_in(shard), out = memrt__shard_own_out(shard);
    memrt__store_release(&shard->bytes_in, in);
    memrt__store_release(&shard->bytes_out, out);
    memrt__own_add_release(&shard->sequence, 1);
    memrt__fence_write();
}

/// End a slow path: the next one begins before the bytes in use leave `low` to `most`. A limited
/// gauge rises no further than promised, and notices a fall of `quantum` bytes.
static void close_shard_within(memrt__shard_t *shard, size_t low, size_t most)
{
    MEMRT__ASSERT(memrt__shard_is_open(shard));
    size_t in = memrt__own_load(&shard->bytes_in), out = memrt__own_load(&shard->bytes_out);
    size_t fall = in - out - low, rise = most - (in - out);
    if (MEMRT__UNLIKELY(shard->quantum != 0)) {
        rise = memrt__promise_bound_rise(shard, rise);
        fall = (ptrdiff_t)fall < (ptrdiff_t)shard->quantum ? fall : shard->quantum;
    }
    memrt__store_relaxed(&shard->alloc_left, rise + fall);
    memrt__store_relaxed(&shard->free_left, fall);
    memrt__store_relaxed(&shard->in_limit, in + rise + fall);
    memrt__store_relaxed(&shard->out_limit, out + fall);
    memrt__own_add_release(&shard->sequence, 1);
}

static void close_shard(memrt__shard_t *shard)
{
    MEMRT__ASSERT(!memrt__gauge_climbs(shard));
    close_shard_within(shard, shard->low, shard->high);
}

/// Return a counter of a shard of any thread: `slow` on the slow path of the owner, otherwise
/// `limit` less `left`. A change of `sequence` in between begins the reading again.
static size_t read_counter(const memrt__shard_t *shard, const size_t *slow, const size_t *limit,
                           const size_t *left)
{
    size_t before, value, after = memrt__load_acquire(&shard->sequence);
    do {
        before = after;
        value = before % 2 != 0 ? memrt__load_acquire(slow)
                                : memrt__load_acquire(limit) - memrt__load_acquire(left);
        after = memrt__load_acquire(&shard->sequence);
    } while (before != after);
    return value;
}

size_t memrt__shard_bytes_in(const memrt__shard_t *shard)
{
    return read_counter(shard, &shard->bytes_in, &shard->in_limit, &shard->alloc_left);
}

size_t memrt__shard_bytes_out(const memrt__shard_t *shard)
{
    return read_counter(shard, &shard->bytes_out, &shard->out_limit, &shard->free_left);
}

/// Return the bytes by which a gauge reports ahead of a rise of `rise` bytes: half of the distance
/// to the peaks that the rise leaves. The other half is for other gauges. A fall is reported as it
/// is. A limited gauge never reports ahead: its promises allow the next rise.
static size_t choose_bytes_ahead(const memrt__shard_t *shard, const memrt__account_t *account,
                                 size_t rise)
{
    if ((ptrdiff_t)rise <= 0 || shard->quantum != 0) {
        return 0;
    }
    size_t of_policy = memrt__level_distance_to_peak(account->policy);
    size_t of_scope = memrt__level_distance_to_peak(account->scope);
    size_t least = (ptrdiff_t)of_policy < (ptrdiff_t)of_scope ? of_policy : of_scope;
    ptrdiff_t half = (ptrdiff_t)(least - rise) / 2;
    return half < 0 ? 0 : memrt__size_min((size_t)half, memrt__allowance_ahead(shard));
}

/// Set the use from which a fall is reported. At rest, the allowance is 0.
static void set_low(memrt__shard_t *shard)
{
    size_t fall = shard->allowance - memrt__allowance_rise(shard);
    memrt__store_relaxed(&shard->low, shard->reported - fall);
}

/// End the climb of an open gauge, if any: record the bytes in use as the maximum. Release;
/// partner: the acquire loads of memrt__gauge_rise(). After the fence, a reader that sees a later
/// change of the limits also sees the end of the climb.
static void end_climb(memrt__shard_t *shard)
{
    if (memrt__gauge_climbs(shard)) {
        memrt__store_release(&shard->high, memrt__shard_net(shard));
        memrt__own_add_release(&shard->climbs, 1);
        memrt__fence_write();
    }
}

/// Give a gauge at rest an allowance, and count the gauge as not at rest in all aggregates, before
/// the gauge holds back any change. False: the gauge stays at rest.
static bool leave_rest(memrt__shard_t *shard, memrt__account_t *account)
{
    MEMRT__ASSERT(memrt__gauge_is_at_rest(shard));
    size_t allowance = memrt__allowance_choose(shard, account);
    if (allowance != 0) {
        memrt__allowance_raise(shard, account, allowance);
    }
    if (shard->allowance == 0) {
        return false;
    }
    memrt__level_count_gauges(account->policy, 1);
    memrt__level_count_gauges(account->scope, 1);
    set_low(shard);
    MEMRT__ASSERT(!memrt__gauge_is_at_rest(shard));
    return true;
}

/// Report the rise of a gauge and its bytes in use plus `ahead` to all aggregates. The shard is
/// open.
///
/// During the report the gauge shows no rise, even if some aggregates already have the change. The
/// releases are partners of the acquire loads of gauge readers: when the gauge shows no rise, the
/// peak includes the rise. A fall is counted after the aggregates have the change, and before the
/// gauge can rise again.
static void report_gauge(memrt__shard_t *shard, memrt__account_t *account, size_t ahead)
{
    end_climb(shard);
    size_t now = memrt__shard_net(shard) + ahead;
    size_t change = now - shard->reported, rise = shard->high - shard->reported;
    MEMRT__ASSERT(account->policy != NULL && shard != account->shared);
    memrt__level_raise_peaks(account->policy, rise);
    memrt__level_raise_peaks(account->scope, rise);
    memrt__store_release(&shard->high, MEMRT__GAUGE_REPORTS);
    memrt__level_report(account->policy, change, rise);
    memrt__level_report(account->scope, change, rise);
    memrt__own_add_release(&shard->falls, (ptrdiff_t)change < 0);
    memrt__store_release(&shard->reported, now);
    memrt__store_release(&shard->high, now);
    memrt__promise_end_reported(shard, account, change);
}

static void (*pending_call)(void); /* relaxed; the thread that removes the pointer makes the call */

void memrt__gauge_call_once(void (*call)(void))
{
    memrt__store_relaxed((size_t *)&pending_call, (size_t)call);
}

static void run_pending_call(void)
{
    size_t call = memrt__load_relaxed((const size_t *)&pending_call);
    if (MEMRT__UNLIKELY(call != 0) && memrt__cas_relaxed((size_t *)&pending_call, call, 0)) {
        ((void (*)(void))call)();
    }
}

/// Report an open gauge and bring the gauge to rest.
static void rest_gauge(memrt__shard_t *shard, memrt__account_t *account)
{
    bool rested = memrt__gauge_is_at_rest(shard);
    report_gauge(shard, account, 0);
    memrt__promise_keep(shard, account, 0);
    memrt__allowance_lower(shard, account, 0);
    set_low(shard);
    MEMRT__ASSERT(memrt__gauge_is_at_rest(shard));
    if (!rested) {
        memrt__level_count_gauges(account->policy, (size_t)-1);
        memrt__level_count_gauges(account->scope, (size_t)-1);
    }
}

/// Return the allowance of a gauge after its report; 0: the gauge comes to rest. A raise takes
/// effect now. Changes of up to an eighth are not worth the additions.
static size_t follow_allowance(memrt__shard_t *shard, memrt__account_t *account)
{
    if (memrt__gauge_is_at_rest(shard)) {
        (void)leave_rest(shard, account);
        return shard->allowance;
    }
    size_t allowance = memrt__allowance_choose(shard, account), eighth = shard->allowance / 8;
    if (allowance > shard->allowance + eighth) {
        memrt__allowance_raise(shard, account, allowance);
    }
    return allowance < shard->allowance - eighth ? allowance : shard->allowance;
}

/// Report an open gauge.
static void report_open_gauge(memrt__shard_t *shard, memrt__account_t *account)
{
    run_pending_call();
    size_t allowance = follow_allowance(shard, account);
    if (allowance == 0) {
        rest_gauge(shard, account);
        memrt__level_mark_several_gauges(account->policy);
        memrt__level_mark_several_gauges(account->scope);
        return;
    }
    size_t rise = memrt__shard_net(shard) - shard->reported;
    bool lowers = allowance < shard->allowance;
    report_gauge(shard, account, lowers ? 0 : choose_bytes_ahead(shard, account, rise));
    if (lowers) {
        memrt__allowance_lower(shard, account, allowance);
    }
    set_low(shard);
}

void memrt__gauge_report(memrt__shard_t *shard, memrt__account_t *account)
{
    open_shard(shard);
    report_open_gauge(shard, account);
    close_shard(shard);
}

void memrt__gauge_rest(memrt__shard_t *shard, memrt__account_t *account)
{
    open_shard(shard);
    rest_gauge(shard, account);
    close_shard(shard);
}

/// Close a shard whose bytes in use are the maximum, and start a climb.
static void close_to_climb(memrt__shard_t *shard)
{
    size_t net = memrt__shard_net(shard);
    MEMRT__ASSERT(!memrt__gauge_climbs(shard) && shard->high == net);
    close_shard_within(shard, net, shard->reported + memrt__allowance_rise(shard));
    memrt__own_add_release(&shard->climbs, 1);
}

/// Return the maximum of a gauge of another thread: the bytes in use during a climb, otherwise
/// `high`. The limits belong to a climb, and no free is counted, if the climb has not ended
/// meanwhile.
static size_t read_maximum(const memrt__shard_t *shard)
{
    size_t climb = memrt__load_acquire(&shard->climbs);
    size_t in = memrt__load_acquire(&shard->in_limit) - memrt__load_acquire(&shard->alloc_left);
    size_t net = in - memrt__load_acquire(&shard->out_limit);
    bool climbs = climb % 2 != 0 && memrt__load_acquire(&shard->climbs) == climb;
    size_t high = memrt__load_acquire(&shard->high);
    bool reports = high == MEMRT__GAUGE_REPORTS;
    return climbs && !reports && (ptrdiff_t)net > (ptrdiff_t)high ? net : high;
}

size_t memrt__gauge_rise(const memrt__shard_t *shard)
{
    size_t before = read_maximum(shard);
    size_t reported = memrt__load_acquire(&shard->reported);
    size_t after = memrt__load_acquire(&shard->high);
    bool reports = before == MEMRT__GAUGE_REPORTS || after == MEMRT__GAUGE_REPORTS;
    return (reports ? MEMRT__GAUGE_REPORTS : before) - reported;
}

/// Record a new maximum, report a rise beyond the allowance, and start a climb. Release;
/// partner: the acquire load of a reader that loads the gauge before the sums.
void memrt__gauge_grow(memrt__shard_t *shard, memrt__account_t *account, size_t bytes)
{
    open_shard(shard);
    end_climb(shard);
    memrt__own_add(&shard->bytes_in, bytes);
    size_t net = memrt__shard_net(shard);
    bool rests = memrt__gauge_is_at_rest(shard) && !leave_rest(shard, account);
    bool exact = memrt__load_relaxed(&memrt__options.peak_mode) == MEMRT__PEAK_EXACT;
    if ((ptrdiff_t)net > (ptrdiff_t)shard->high) {
        memrt__store_release(&shard->high, net);
    }
    if (rests || exact ||
        (ptrdiff_t)(net - shard->reported) > (ptrdiff_t)memrt__allowance_rise(shard)) {
        report_open_gauge(shard, account);
    }
    if (memrt__gauge_is_at_rest(shard) || shard->high != net) {
        close_shard(shard); /* exact peaks were requested, or the gauge reported ahead */
    } else {
        close_to_climb(shard);
    }
}

/// End a climb, report a fall below `low`, or measure anew how far the gauge is above `low`.
void memrt__gauge_shrink(memrt__shard_t *shard, memrt__account_t *account, size_t bytes)
{
    open_shard(shard);
    end_climb(shard);
    memrt__own_add_release(&shard->bytes_out, bytes);
    size_t net = memrt__shard_net(shard);
    bool limited = shard->quantum != 0;
    ptrdiff_t fall = (ptrdiff_t)(shard->reported - net), quantum = (ptrdiff_t)shard->quantum;
    if ((ptrdiff_t)(net - shard->low) < 0 || (limited && fall > quantum)) {
        report_open_gauge(shard, account);
    }
    if (limited) {
        memrt__promise_follow_limits(shard, account);
    }
    close_shard(shard);
}

/// Report a fall of the bytes in use, if any, and keep `bytes` of the fall as a promise. A pending
/// block needs a promise, because a report would end the use of unreported bytes.
static void report_fall(memrt__shard_t *shard, memrt__account_t *account, size_t bytes)
{
    size_t fall = shard->reported - memrt__shard_net(shard);
    if (shard->quantum != 0 && (ptrdiff_t)fall > 0) {
        memrt__promise_keep_fall(shard, account, memrt__size_min(fall, bytes));
        report_open_gauge(shard, account);
    }
}

bool memrt__gauge_ensure(memrt__shard_t *shard, memrt__account_t *account, size_t bytes,
                         bool pending)
{
    open_shard(shard);
    end_climb(shard);
    memrt__promise_follow_limits(shard, account);
    if (pending) {
        report_fall(shard, account, bytes);
    }
    bool fits = memrt__promise_rise(shard, account, bytes);
    if (fits && pending && shard->quantum != 0) {
        shard->pending += bytes;
    }
    close_shard(shard);
    return fits;
}

void memrt__gauge_drop(memrt__shard_t *shard, memrt__account_t *account, size_t bytes)
{
    open_shard(shard);
    end_climb(shard);
    memrt__promise_settle(shard, bytes);
    memrt__promise_follow_limits(shard, account);
    close_shard(shard);
}

void memrt__shard_ungrow(memrt__shard_t *shard, size_t bytes)
{
    open_shard(shard);
    end_climb(shard);
    memrt__own_add(&shard->bytes_in, (size_t)0 - bytes);
    close_shard(shard);
}

void memrt__gauge_forked(memrt__shard_t *shard)
{
    if (!memrt__shard_is_open(shard)) {
        open_shard(shard);
    }
    end_climb(shard);
    shard->high = shard->low = shard->reported = memrt__shard_net(shard);
    shard->promised = shard->pending = shard->allowance = 0;
    close_shard(shard);
}

#if MEMRT_DEBUG

/// Return whether a gauge may rise by `rise_left`, if it could rise by `rise` without a limit.
static bool is_rise_left(const memrt__shard_t *shard, size_t rise_left, size_t rise)
{
    return shard->quantum == 0 ? rise_left == rise : rise_left <= rise;
}

/// During a climb, the bytes in use are at least `high`, and any free takes the slow path.
static bool is_climb_valid(const memrt__shard_t *shard, size_t rise_left)
{
    size_t net = memrt__shard_net(shard), limit = shard->reported + memrt__allowance_rise(shard);
    return MEMRT__HOLDS((ptrdiff_t)net >= (ptrdiff_t)shard->high) &&
           MEMRT__HOLDS((ptrdiff_t)net <= (ptrdiff_t)limit) &&
           MEMRT__HOLDS(is_rise_left(shard, rise_left, limit - net)) &&
           MEMRT__HOLDS(shard->free_left == 0);
}

/// The bytes in use lie between `low` and `high`; beyond, the gauge reports. The numbers are
/// signed.
bool memrt__shard_is_valid(const memrt__shard_t *shard)
{
    ptrdiff_t net = (ptrdiff_t)memrt__shard_net(shard), reported = (ptrdiff_t)shard->reported;
    size_t rise_left = shard->alloc_left - shard->free_left;
    if (!MEMRT__HOLDS(!memrt__shard_is_open(shard))) {
        return false;
    }
    if (memrt__gauge_climbs(shard)) {
        return is_climb_valid(shard, rise_left);
    }
    return MEMRT__HOLDS(net <= (ptrdiff_t)shard->high) &&
           MEMRT__HOLDS(net >= (ptrdiff_t)shard->low) &&
           MEMRT__HOLDS(shard->high - shard->reported <= memrt__allowance_rise(shard)) &&
           MEMRT__HOLDS((ptrdiff_t)shard->high >= reported) &&
           MEMRT__HOLDS(shard->pending <= shard->promised) &&
           MEMRT__HOLDS(is_rise_left(shard, rise_left, shard->high - (size_t)net)) &&
           MEMRT__HOLDS((ptrdiff_t)shard->free_left <= net - (ptrdiff_t)shard->low) &&
           MEMRT__HOLDS(memrt__gauge_is_at_rest(shard) == (shard->allowance == 0)) &&
           MEMRT__HOLDS(shard->reported - shard->low ==
                        shard->allowance - memrt__allowance_rise(shard));
}

#endif
