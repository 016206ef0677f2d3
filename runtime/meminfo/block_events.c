#include "runtime/meminfo/block_events.h"

#include "runtime/base/usdt.h"
#include "runtime/config/options.h"
#include "runtime/meminfo/block_trace.h"
#include "runtime/observe/live_set.h"
#include "runtime/observe/named_refs.h"
#include "runtime/observe/sites.h"

static const memrt_watcher_t *watcher;

void memrt__watcher_set(const memrt_watcher_t *next)
{
    memrt__store_release((size_t *)&watcher, (size_t)next);
}

static const memrt_watcher_t *get_watcher(void)
{
    return (const memrt_watcher_t *)memrt__load_acquire((const size_t *)&watcher);
}

void memrt__observer_notify(const memrt_meminfo_t *mi)
{
    const memrt_watcher_t *now = get_watcher();
    if (now != NULL && now->struct_size >= sizeof(*now) && now->watch != NULL) {
        now->watch(mi->data);
    }
}

static void notify_free(const memrt_meminfo_t *mi)
{
    const memrt_watcher_t *now = get_watcher();
    if (now != NULL) {
        now->death(mi->data);
    }
}

void memrt__block_notify_resize(void *old_data, const memrt_meminfo_t *mi)
{
    const memrt_watcher_t *now = get_watcher();
    if (now != NULL) {
        now->resize(old_data, mi->data, mi->size);
    }
}

bool memrt__block_list(memrt_meminfo_t *mi, memrt__alloc_event_t birth, size_t bytes)
{
    MEMRT__ASSERT(!memrt__block_is_listed(mi) && birth.share > 0);
    mi->flags |= MEMRT__FLAG_LISTED; /* no other thread knows the block yet */
    if (!memrt__live_insert((uintptr_t)mi, birth.site, birth.share)) {
        mi->flags &= ~MEMRT__FLAG_LISTED;
        return false;
    }
    memrt__site_count(birth.site, bytes);
    return true;
}

void memrt__block_unlist(const memrt_meminfo_t *mi)
{
    memrt__live_trace_t trace = {
        .data = (uintptr_t)mi->data, .size = mi->size, .policy = memrt__policy_of(mi)->name};
    memrt__live_remove((uintptr_t)mi, memrt__options.check ? &trace : NULL);
}

bool memrt__block_set_name(memrt_meminfo_t *mi, const char *name)
{
    if (name == NULL && !memrt__block_is_listed(mi)) {
        return true;
    }
    if (!memrt__live_set_name((uintptr_t)mi, name)) {
        return false;
    }
    memrt__flags_set_relaxed(&mi->flags, MEMRT__FLAG_LISTED);
    return true;
}

void memrt__block_drop_names(const memrt_meminfo_t *mi)
{
    size_t exports = memrt__named_refs_forget((uintptr_t)mi);
    if (exports != 0) {
        memrt__tally_t tally = memrt__tally(&memrt__policy_of(mi)->account);
        memrt__tally_out(&tally, &tally.shard->exported_out, exports);
    }
}

void memrt__block_notify_free(memrt_meminfo_t *mi, unsigned flags)
{
    if ((flags & MEMRT__FLAG_OBSERVED) != 0 && mi->data != NULL) {
        notify_free(mi);
    }
    if ((flags & MEMRT__FLAG_TRACED) != 0 && memrt__trace_is_on()) {
        memrt__block_trace_free(mi);
    }
    if ((flags & MEMRT__FLAG_HELD) != 0) {
        memrt__block_drop_names(mi);
    }
    if ((flags & MEMRT__FLAG_LISTED) != 0) {
        memrt__block_unlist(mi);
    }
}

void memrt__block_refused(memrt_policy_t *policy, size_t size)
{
    memrt__probe_failure(size, policy->account.index);
    if (memrt__trace_is_on()) {
        memrt__block_trace_failure(policy, size);
    }
    memrt__tally_t tally = memrt__tally(&policy->account);
    memrt__tally_in(&tally, &tally.shard->failed, 1);
}
