/// Fail every slot of the API table at every failure point: each memory request and each system
/// call of memrt. Each point fails in two ways: once, and from there on. A refused call leaves
/// everything as before, and the same call then works.

#include "support/suite.h"

#include <string.h>

#include "conformance/pattern.h"
#include "runtime/config/options.h"
#include "support/attempts.h"
#include "support/books.h"
#include "support/cuda.h"
#include "support/kernel.h"
#include "support/points.h"

void suite_prepare(void)
{
    cuda_prepare();
}

/// Fault to inject from the nth call on: once or always.
typedef struct fault {
    const char *name;
    int call;     ///< a kernel_call_t, or MEMRTS_OWN for memory requests inside memrt
    bool goes_on; ///< all calls from the nth on fail
    bool shows;   ///< the outcome shows the fault: memrt has no fallback
} fault_t;

#define MEMRTS_OWN (-1)

static const fault_t faults[] = {
    {"memory", MEMRTS_OWN, false, true},       {"memory", MEMRTS_OWN, true, true},
    {"mmap", KERNEL_MAP, false, true},         {"mmap", KERNEL_MAP, true, true},
    {"munmap", KERNEL_UNMAP, false, false},    {"munmap", KERNEL_UNMAP, true, false},
    {"mremap", KERNEL_REMAP, false, false},    {"mremap", KERNEL_REMAP, true, false},
    {"mprotect", KERNEL_PROTECT, false, true}, {"mprotect", KERNEL_PROTECT, true, true},
    {"madvise", KERNEL_ADVISE, true, false},   {"madvise", KERNEL_DISCARD, true, false},
    {"thread", KERNEL_THREAD, false, false},   {"thread", KERNEL_THREAD, true, false},
};
#define FAULTS (sizeof(faults) / sizeof(faults[0]))

TEST(slot_list_has_every_api_slot_once)
{
    unsigned seen[sizeof(memrt_api_t) / 8] = {0};
    for (size_t i = 0; i < SLOTS; i++) {
        if (slots[i].offset != SIZE_MAX) {
            seen[slots[i].offset / 8]++;
        }
    }
    for (size_t word = 0; word < sizeof(seen) / sizeof(seen[0]); word++) {
        ck_assert_msg(seen[word] == 1, "slot %zu must be in the list once, got %u times", word,
                      seen[word]);
    }
}

/// Inject `fault` at the nth call from now. Returns the number of affected calls so far.
static uint64_t inject_fault(const fault_t *fault, uint64_t nth)
{
    if (fault->call != MEMRTS_OWN) {
        kernel_call_t call = (kernel_call_t)fault->call;
        kernel_refuse(call, nth - 1, fault->goes_on ? SIZE_MAX : 1);
        return kernel_calls(call);
    }
    memrt_failure_plan_t plan = {.struct_size = sizeof(plan), .nth = nth, .every = fault->goes_on};
    ck_assert_int_eq(api->fail_allocations(&plan), MEMRT_OK);
    return 0;
}

static uint64_t stop_fault(const fault_t *fault)
{
    if (fault->call != MEMRTS_OWN) {
        kernel_obey();
        return kernel_calls((kernel_call_t)fault->call);
    }
    uint64_t points = api->failure_points();
    ck_assert_int_eq(api->fail_allocations(NULL), MEMRT_OK);
    return points;
}

typedef struct trial {
    outcome_t outcome;
    uint64_t points; ///< affected calls made by the attempt
} trial_t;

static trial_t attempt_with_fault(const fault_t *fault, const slot_t *slot, ground_t *ground,
                                  uint64_t nth)
{
    uint64_t before = inject_fault(fault, nth);
    trial_t trial = {.outcome = slot->attempt(ground)};
    trial.points = stop_fault(fault) - before;
    return trial;
}

/// Return the references to existing objects, as one number. A refused attempt changes no reference
/// count.
static size_t count_references(const ground_t *ground)
{
    return api->refcount(ground->mi) + 100 * api->refcount(ground->resizable) +
           10000 * api->refcount(ground->sharer) + 1000000 * api->refcount(ground->growing);
}

/// Create inputs and empty the caches, so that an attempt must call the system.
static ground_t create_ground(void)
{
    ground_t ground = ground_new();
    api->release_unused();
    return ground;
}

/// Return whether a call may fail by a fault. Only pressure_add needs a thread.
static bool may_show(const fault_t *fault, const slot_t *slot)
{
    bool needs_thread = slot->offset == offsetof(memrt_api_t, pressure_add);
    return fault->shows || (fault->call == KERNEL_THREAD && needs_thread);
}

/// Fail the nth request of an attempt. Returns whether the attempt made an nth request; counts the
/// refusals.
static bool fail_nth(const fault_t *fault, const slot_t *slot, uint64_t nth, size_t *refusals)
{
    books_t start = books_now();
    ground_t ground = create_ground();
    books_t before = books_now();
    size_t held = count_references(&ground);
    trial_t trial = attempt_with_fault(fault, slot, &ground, nth);
    if (trial.outcome == REFUSED) {
        ++*refusals;
        ck_assert_msg(may_show(fault, slot), "%s must succeed despite a failed %s", slot->name,
                      fault->name);
        ck_assert_uint_ge(trial.points, nth);
        ck_assert_uint_eq(count_references(&ground), held);
        books_expect_unchanged(&before);
        ck_assert_msg(slot->attempt(&ground) == MADE, "%s failed again without the fault",
                      slot->name);
    }
    ground_clear(&ground);
    books_expect_no_leak(&start);
    return trial.points >= nth;
}

/// Fail each request of a slot in turn. Returns the number of failure points.
static uint64_t fail_each(const fault_t *fault, const slot_t *slot, int tracking, size_t *refusals)
{
    uint64_t nth = 1;
    int was = api->tracking(tracking);
    while (fail_nth(fault, slot, nth, refusals)) {
        nth++;
    }
    api->tracking(was);
    return nth - 1;
}

static uint64_t fail_each_twice(const fault_t *fault, const slot_t *slot, size_t *refusals)
{
    uint64_t points = 0;
    /* Two rounds: in the first round tables grow. In the second round they have room, so different
     * requests fail. A slot without such requests in the first round has none in the second. */
    for (int round = 0; round < 2 && (round == 0 || points > 0); round++) {
        points += fail_each(fault, slot, 0, refusals);
        points += fail_each(fault, slot, 1, refusals);
    }
    return points;
}

static void expect_need(const slot_t *slot, uint64_t points, size_t refusals)
{
    if (slot->need == MEMORY) {
        ck_assert_msg(refusals > 0, "%s must need memory, but never failed", slot->name);
    } else {
        ck_assert_msg(points == 0, "%s must need no memory, but requested memory", slot->name);
    }
}

/// Choose the decay time under which memrt makes the call. The purger makes such calls too, at
/// times of its own. The purger therefore runs only for the fault that stops it from starting.
static void set_decay(const fault_t *fault)
{
    bool at_once = fault->call == KERNEL_UNMAP || fault->call == KERNEL_REMAP;
    size_t kept = fault->call == KERNEL_THREAD ? 60000 : MEMRT__DECAY_NEVER;
    suite_set_decay(at_once ? 0 : kept);
}

static void run_slot_with_fault(const fault_t *fault, const slot_t *slot)
{
    size_t refusals = 0;
    set_decay(fault);
    uint64_t points = fail_each_twice(fault, slot, &refusals);
    if (fault->call == MEMRTS_OWN) {
        expect_need(slot, points, refusals);
    }
    points_note(slot->name, fault->name, points);
}

TEST_EACH(failed_slot_call_changes_no_account_and_leaks_nothing, SLOTS)
{
    for (size_t i = 0; i < FAULTS; i++) {
        run_slot_with_fault(&faults[i], &slots[index]);
    }
}
