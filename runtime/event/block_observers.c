#include "runtime/event/block_observers.h"

#include "runtime/base/size.h"
#include "runtime/event/hooks.h"
#include "runtime/event/names_observer.h"
#include "runtime/event/operation_log.h"
#include "runtime/event/trace_observer.h"
#include "runtime/event/user_observer.h"

/// Observers by the position of their bit.
static const memrt__observer_fn observers[] = {
    [2] = memrt__user_observer_notify,
    [3] = memrt__trace_observe,
    [4] = memrt__names_observe,
    [5] = memrt__live_observe,
};

_Static_assert(MEMRT_FLAG_OBSERVED == 1u << 2 && MEMRT__FLAG_TRACED == 1u << 3 &&
                   MEMRT__FLAG_HELD == 1u << 4 && MEMRT__FLAG_LISTED == 1u << 5,
               "the table has the order of the bits");

/// Bits of observers outside of the table.
#define FLAGS_APART (MEMRT__FLAG_HOOKS | MEMRT__FLAG_LOGGED)

static void notify_observers(const memrt__block_event_t *event, unsigned wanted)
{
    unsigned rest = wanted & ~FLAGS_APART;
    if ((wanted & MEMRT__FLAG_LOGGED) != 0) {
        memrt__log_observe(event);
    }
    while (rest != 0) {
        unsigned others = rest & (rest - 1);
        observers[memrt__log2(rest ^ others)](event);
        rest = others;
    }
    if ((wanted & MEMRT__FLAG_HOOKS) != 0) {
        memrt__hooks_notify(event, wanted);
    }
}

/// Notify in the reverse order: the live set knows the new address before the observer's callback.
static void notify_observers_of_resize(const memrt__block_event_t *event, unsigned wanted)
{
    unsigned rest = wanted & ~FLAGS_APART;
    while (rest != 0) {
        unsigned bit = memrt__floor_log2(rest);
        observers[bit](event);
        rest &= ~(1u << bit);
    }
    if ((wanted & MEMRT__FLAG_LOGGED) != 0) {
        memrt__log_observe(event);
    }
    if ((wanted & MEMRT__FLAG_HOOKS) != 0) {
        memrt__hooks_notify(event, wanted);
    }
}

void memrt__observers_notify_allocate(memrt_meminfo_t *mi, uint32_t site, unsigned wanted)
{
    memrt__block_event_t event = {.type = MEMRT__EVENT_ALLOCATE,
                                  .site = site,
                                  .mi = mi,
                                  .policy = memrt__policy_of(mi),
                                  .size = mi->size};
    notify_observers(&event, wanted);
}

void memrt__observers_notify_resize(memrt_meminfo_t *mi, const memrt__block_before_t *before,
                                    unsigned wanted)
{
    memrt__block_event_t event = {.type = MEMRT__EVENT_RESIZE,
                                  .mi = mi,
                                  .policy = memrt__policy_of(mi),
                                  .size = mi->size,
                                  .before = before};
    notify_observers_of_resize(&event, wanted);
}

void memrt__observers_notify_free(memrt_meminfo_t *mi, unsigned wanted)
{
    memrt__block_event_t event = {
        .type = MEMRT__EVENT_FREE, .mi = mi, .policy = memrt__policy_of(mi), .size = mi->size};
    notify_observers(&event, wanted);
}

void memrt__observers_notify_failure(memrt_policy_t *policy, size_t size, unsigned wanted)
{
    memrt__block_event_t event = {.type = MEMRT__EVENT_FAILURE, .policy = policy, .size = size};
    notify_observers(&event, wanted);
}
