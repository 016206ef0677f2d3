#include "runtime/runtime.h"

#include <pthread.h>
#include <stdlib.h>

#include "runtime/alloc/inherited.h"
#include "runtime/alloc/mapped.h"
#include "runtime/alloc/policy.h"
#include "runtime/alloc/pool.h"
#include "runtime/alloc/purger.h"
#include "runtime/base/lock.h"
#include "runtime/base/options.h"
#include "runtime/base/unwind.h"
#include "runtime/debug/live.h"
#include "runtime/debug/trace.h"
#include "runtime/debug/tracking.h"
#include "runtime/device/driver.h"
#include "runtime/leaks.h"
#include "runtime/meminfo/block.h"
#include "runtime/share.h"
#include "runtime/stats/stats.h"

static void before_fork(void)
{
    memrt__share_pause();
    memrt__purger_stop();
    memrt__lock_all();
    memrt__unwind_pause();
}

static void in_parent(void)
{
    memrt__unwind_resume();
    memrt__unlock_all();
    memrt__share_resume();
}

static void in_child(void)
{
    memrt__lock_renew_all();
    memrt__unwind_forked();
    memrt__purger_forked();
    memrt__thread_forked();
    memrt__stats_forked();
    memrt__inherited_forked();
    memrt__live_forked();
    memrt__trace_forked();
    memrt__driver_forked();
    memrt__share_forked();
}

static void share(void)
{
    char why[256];
    if (!memrt__share_follow(why, sizeof(why))) {
        memrt__options_warn(why);
    }
}

static void start(void)
{
    memrt__options_read();
    memrt__policy_start();
    memrt__tracking_start();
    /* Refused only for want of memory; then a child of a threaded process may find locks held. */
    (void)pthread_atfork(before_fork, in_parent, in_child);
    memrt__leaks_start();
    share();
    /* Refused only for want of memory; then what was freed last is not verified. */
    if (memrt__options.check) {
        (void)atexit(memrt__policy_verify_dead);
    }
}

void memrt__runtime_start(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, start);
}

static bool peak_is_exact(void)
{
    return memrt__load_relaxed(&memrt__options.exact_peak) != 0;
}

/// Gauges of other threads rest when these next give small blocks back.
static void follow_peak(bool was_exact)
{
    if (peak_is_exact() && !was_exact) {
        memrt__stats_rest_gauges();
        memrt__cache_ask_others(memrt__self);
    }
}

memrt_status_t memrt__runtime_set_option(const char *name, const char *value, char *why,
                                         size_t length)
{
    memrt__lock(MEMRT__RANK_OPTIONS);
    memrt__huge_t before = memrt__huge_of(MEMRT__INHERIT);
    bool was_exact = peak_is_exact();
    memrt_status_t status = memrt__options_set(name, value, why, length);
    if (status == MEMRT_OK) {
        memrt__pool_follow(before);
        follow_peak(was_exact);
        if (!memrt__share_follow(why, length)) {
            memrt__store_relaxed(&memrt__options.share, 0);
            status = MEMRT_EINVAL;
        }
    }
    memrt__unlock(MEMRT__RANK_OPTIONS);
    return status;
}
