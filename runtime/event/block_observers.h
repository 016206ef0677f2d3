#ifndef MEMRT_EVENT_BLOCK_OBSERVERS_H
#define MEMRT_EVENT_BLOCK_OBSERVERS_H

#include "runtime/base/slow_path.h"
#include "runtime/base/usdt.h"
#include "runtime/event/block_event.h"
#include "runtime/event/live_observer.h"

/// Delivery of block events to the observers: live set with site counters, named references, event
/// trace, observer of the user, log of operations, hooks. The table of observers is constant, so
/// that delivery needs no lock.
///
/// Only slow paths emit events. A fast path serves only blocks without an observer: a bit of
/// memrt__slow_path closes the fast path of allocations, a bit of the header the fast paths of
/// resizes and frees.
///
/// Order: an allocation is admitted to the live set before the event, and a resize that moves a
/// block too. A resize is emitted before the old memory of a moved block is freed, a free before
/// the block is freed.

/// Admit a new block, which is complete except for the data of a header without data. `size` is the
/// size of the data. Only the live set needs memory for a block, so no other observer can refuse.
/// Failure: returns false when out of memory; the caller then discards the block.
static inline bool memrt__block_admit(memrt_meminfo_t *mi, memrt__alloc_event_t event, size_t size)
{
    return event.weight == 0 || memrt__live_admit(mi, event, size);
}

/// Admit the header to which a resize moves a block, as memrt__block_admit().
static inline bool memrt__block_admit_moved(const memrt_meminfo_t *moved)
{
    return !memrt__block_is_listed(moved) || memrt__live_admit_moved(moved);
}

/// Slow paths of the functions below: deliver the event to the observers in `wanted`, a set of bits
/// of MEMRT__FLAG_KNOWN, not 0.
void memrt__observers_notify_allocate(memrt_meminfo_t *mi, uint32_t site, unsigned wanted);
void memrt__observers_notify_resize(memrt_meminfo_t *mi, const memrt__block_before_t *before,
                                    unsigned wanted);
void memrt__observers_notify_free(memrt_meminfo_t *mi, unsigned wanted);
void memrt__observers_notify_failure(memrt_policy_t *policy, size_t size, unsigned wanted);

/// Return the observers that receive each allocation and failure: the event trace, while a trace is
/// recorded, and the hooks and the log, if either exists. One test serves both.
static inline unsigned memrt__observers_of_all(void)
{
    unsigned trace = memrt__is_slow(MEMRT__SLOW_TRACING) ? MEMRT__FLAG_TRACED : 0;
    unsigned apart = MEMRT__FLAG_HOOKS | MEMRT__FLAG_LOGGED;
    return memrt__is_slow(MEMRT__SLOW_HOOKS) ? trace | apart : trace;
}

static inline unsigned memrt__observers_of(const memrt_meminfo_t *mi)
{
    return memrt__flags_load_relaxed(&mi->flags) & MEMRT__FLAG_KNOWN;
}

/// Emit the allocation of a complete block that is about to be published.
static inline void memrt__block_emit_allocate(memrt_meminfo_t *mi, uint32_t site)
{
    unsigned wanted = memrt__observers_of_all();
    if (mi->kind != MEMRT_KIND_RESIZABLE) {
        memrt__probe_alloc(mi->data, mi->size, mi->policy, mi->kind);
    }
    if (MEMRT__UNLIKELY(wanted != 0)) {
        memrt__observers_notify_allocate(mi, site, wanted);
    }
}

/// Emit the resize of a claimed block.
static inline void memrt__block_emit_resize(memrt_meminfo_t *mi,
                                            const memrt__block_before_t *before)
{
    unsigned wanted = memrt__observers_of(mi);
    memrt__probe_resize(before->data, mi->data, before->size, mi->size);
    if (MEMRT__UNLIKELY(wanted != 0)) {
        memrt__observers_notify_resize(mi, before, wanted);
    }
}

/// Emit the free of a block that is about to be freed. The probe `free` fires once the memory is
/// freed, on the fast path too, so the functions that free memory fire the probe.
static inline void memrt__block_emit_free(memrt_meminfo_t *mi)
{
    unsigned wanted = memrt__observers_of(mi);
    if (MEMRT__UNLIKELY(wanted != 0)) {
        memrt__observers_notify_free(mi, wanted);
    }
}

/// Emit a failed request for `size` bytes.
static inline void memrt__block_emit_failure(memrt_policy_t *policy, size_t size)
{
    unsigned wanted = memrt__observers_of_all();
    memrt__probe_failure(size, policy->account.index);
    if (MEMRT__UNLIKELY(wanted != 0)) {
        memrt__observers_notify_failure(policy, size, wanted);
    }
}

#endif
