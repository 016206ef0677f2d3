#include "runtime/event/hooks.h"

#include <math.h>
#include <sched.h>

#include "runtime/base/size.h"
#include "runtime/base/slow_path.h"
#include "runtime/config/options.h"
#include "runtime/observe/tracking.h"
#include "runtime/os/lock.h"
#include "runtime/policy/policy.h"

/// State of a slot: this bit while the slot has a hook, plus CALL for each running call. With both
/// in one word, no call begins after the bit is cleared.
#define IN_USE 1u
#define CALL 2u

typedef struct slot {
    size_t state;      ///< atomic; see IN_USE
    uint64_t id;       ///< under the lock of rank OPTIONS; index plus a multiple of MEMRT_HOOKS_MAX
    memrt_hook_t hook; ///< fixed while `state` is not 0
} slot_t;

static slot_t slots[MEMRT_HOOKS_MAX];
static size_t last; ///< under the lock of rank OPTIONS; index of the slot that was taken last

/// Slot whose hook the thread calls, or NULL.
static MEMRT__THREAD_LOCAL slot_t *current;

_Static_assert(MEMRT__FLAG_HOOKS / MEMRT__FLAG_FIRST_HOOK == (1u << MEMRT_HOOKS_MAX) - 1,
               "each slot has a bit");

/// Return the free slot that was free for longest, or NULL.
static slot_t *find_free_slot(void)
{
    for (size_t i = 1; i <= MEMRT_HOOKS_MAX; i++) {
        slot_t *slot = &slots[(last + i) % MEMRT_HOOKS_MAX];
        if (memrt__load_acquire(&slot->state) == 0) {
            return slot;
        }
    }
    return NULL;
}

static void follow_slots(void)
{
    bool any = memrt__options.log; /* the log shares the bit */
    for (size_t i = 0; i < MEMRT_HOOKS_MAX; i++) {
        any |= (memrt__load_relaxed(&slots[i].state) & IN_USE) != 0;
    }
    memrt__slow_path_set(MEMRT__SLOW_HOOKS, any);
}

/// Fill a slot, and take a reference to the policy. A subpolicy stands for its base, since events
/// name the base. Release order, partner: the acquire addition of begin_call(), which then reads
/// the hook.
static void fill_slot(slot_t *slot, const memrt_hook_t *hook)
{
    memrt_policy_t *base = hook->policy == NULL ? NULL : hook->policy->base;
    if (base != NULL) {
        memrt__policy_acquire(base);
    }
    last = (size_t)(slot - slots);
    slot->id += slot->id == 0 ? last + MEMRT_HOOKS_MAX : MEMRT_HOOKS_MAX;
    slot->hook.call = hook->call;
    slot->hook.context = hook->context;
    slot->hook.policy = base;
    slot->hook.sample = hook->sample;
    slot->hook.wants = hook->wants;
    memrt__fetch_add_release(&slot->state, IN_USE);
}

memrt_status_t memrt__hook_add(const memrt_hook_t *hook, uint64_t *id)
{
    if (hook->struct_size < sizeof(*hook) || hook->call == NULL || id == NULL) {
        return MEMRT_EINVAL;
    }
    memrt__lock(MEMRT__RANK_OPTIONS);
    slot_t *slot = find_free_slot();
    if (slot != NULL) {
        fill_slot(slot, hook);
        follow_slots();
        *id = slot->id;
    }
    memrt__unlock(MEMRT__RANK_OPTIONS);
    return slot == NULL ? MEMRT_ELIMIT : MEMRT_OK;
}

static slot_t *find_slot(uint64_t id)
{
    slot_t *slot = &slots[id % MEMRT_HOOKS_MAX];
    bool in_use = (memrt__load_relaxed(&slot->state) & IN_USE) != 0;
    return in_use && slot->id == id ? slot : NULL;
}

/// Return whether a thread still calls the removed hook of a slot. Acquire; partner: the release
/// subtraction of end_call(). What the calls did happens before the result false. A slot that has a
/// hook again had no calls in between.
static bool has_calls(const slot_t *slot)
{
    size_t state = memrt__load_acquire(&slot->state);
    return state >= CALL && (state & IN_USE) == 0;
}

memrt_status_t memrt__hook_remove(uint64_t id)
{
    memrt__lock(MEMRT__RANK_OPTIONS);
    slot_t *slot = find_slot(id);
    memrt_policy_t *policy = slot == NULL ? NULL : slot->hook.policy;
    if (slot != NULL) {
        memrt__fetch_add_relaxed(&slot->state, (size_t)0 - IN_USE);
        follow_slots();
    }
    memrt__unlock(MEMRT__RANK_OPTIONS);
    bool waits = slot != NULL && current == NULL;
    while (waits && has_calls(slot)) {
        sched_yield();
    }
    if (policy != NULL) {
        memrt__policy_release(policy);
    }
    return slot == NULL ? MEMRT_EINVAL : MEMRT_OK;
}

/// Count a call that begins. False: the slot has no hook.
static bool begin_call(slot_t *slot)
{
    if ((memrt__load_relaxed(&slot->state) & IN_USE) == 0) {
        return false;
    }
    bool in_use = (memrt__fetch_add_acquire(&slot->state, CALL) & IN_USE) != 0;
    if (!in_use) {
        memrt__fetch_add_relaxed(&slot->state, (size_t)0 - CALL);
    }
    return in_use;
}

static void end_call(slot_t *slot)
{
    memrt__fetch_add_release(&slot->state, (size_t)0 - CALL);
}

/// Return the weight of an allocation in a sample, or 0 for an allocation outside of the sample.
static double draw_weight(size_t size, uint64_t sample)
{
    if (sample == 0) {
        return 1;
    }
    double probability = -expm1(-(double)size / (double)sample);
    return memrt__draw_uniform() <= probability ? 1 / probability : 0;
}

static const uint8_t types[] = {[MEMRT__EVENT_ALLOCATE] = MEMRT_HOOK_ALLOCATE,
                                [MEMRT__EVENT_RESIZE] = MEMRT_HOOK_RESIZE,
                                [MEMRT__EVENT_FREE] = MEMRT_HOOK_FREE,
                                [MEMRT__EVENT_FAILURE] = MEMRT_HOOK_FAILURE};

/// Draw whether a hook gets a new block, and mark the block. False: the hook never gets the block.
static bool take_block(const slot_t *slot, memrt_meminfo_t *mi, memrt_hook_event_t *out)
{
    const memrt_hook_t *hook = &slot->hook;
    out->weight = draw_weight(out->size, hook->sample);
    if (out->weight == 0 || (hook->wants != NULL && !hook->wants(out, hook->context))) {
        return false;
    }
    memrt__flags_set_relaxed(&mi->flags, MEMRT__FLAG_FIRST_HOOK << (slot - slots));
    return true;
}

/// Call the hook of a slot if the event belongs to the hook.
static void call_hook(slot_t *slot, const memrt__block_event_t *event, memrt_hook_event_t *out)
{
    const memrt_hook_t *hook = &slot->hook;
    if (hook->policy != NULL && hook->policy != out->policy) {
        return;
    }
    current = slot;
    if (event->type != MEMRT__EVENT_ALLOCATE || take_block(slot, event->mi, out)) {
        hook->call(out, hook->context);
    }
    current = NULL;
}

void memrt__hooks_notify(const memrt__block_event_t *event, unsigned wanted)
{
    bool has_data = event->mi == NULL || event->mi->kind != MEMRT_KIND_RESIZABLE;
    if (current != NULL || !has_data) { /* a data block has its own events */
        return;
    }
    const memrt__block_before_t *before = event->before;
    memrt_hook_event_t out = {
        .struct_size = sizeof(memrt_hook_event_t),
        .type = types[event->type],
        .policy = event->policy->base,
        .data = event->mi == NULL ? NULL : event->mi->data,
        .size = event->size,
        .old_data = before == NULL ? NULL : (void *)(uintptr_t)before->data,
        .old_size = before == NULL ? 0 : before->size,
        .scope = event->policy->scope,
        .site = event->site,
    };
    for (size_t i = 0; i < MEMRT_HOOKS_MAX; i++) {
        bool is_wanted = (wanted & MEMRT__FLAG_FIRST_HOOK << i) != 0;
        if (is_wanted && begin_call(&slots[i])) {
            call_hook(&slots[i], event, &out);
            end_call(&slots[i]);
        }
    }
}

void memrt__hooks_forked(void)
{
    for (size_t i = 0; i < MEMRT_HOOKS_MAX; i++) {
        size_t own = current == &slots[i] ? CALL : 0;
        slots[i].state = (slots[i].state & IN_USE) + own;
    }
}
