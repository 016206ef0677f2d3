/// Every slot of the table meets every failure: memrt's requests for memory and its calls of the
/// system, each at every place, once and from there on. What is refused leaves everything as it
/// was, and the same call then works.

#include "support/suite.h"

#include <string.h>

#include "conformance/pattern.h"
#include "runtime/base/options.h"
#include "support/attempts.h"
#include "support/books.h"
#include "support/cuda.h"
#include "support/kernel.h"
#include "support/points.h"

void suite_prepare(void)
{
    cuda_prepare();
}

/// What fails, from the nth time on: then only, or always.
typedef struct fault {
    const char *name;
    int call;     ///< a kernel_call_t, or MEMRTS_OWN for requests that memrt makes of itself
    bool goes_on; ///< all from the nth on
    bool shows;   ///< in the outcome: memrt has no other way to go
} fault_t;

#define MEMRTS_OWN (-1)

static const fault_t faults[] = {
    {"memory", MEMRTS_OWN, false, true},     {"memory", MEMRTS_OWN, true, true},
    {"mmap", KERNEL_MAP, false, true},       {"mmap", KERNEL_MAP, true, true},
    {"munmap", KERNEL_UNMAP, false, false},  {"munmap", KERNEL_UNMAP, true, false},
    {"mremap", KERNEL_REMAP, false, false},  {"mremap", KERNEL_REMAP, true, false},
    {"madvise", KERNEL_ADVISE, true, false}, {"madvise", KERNEL_DISCARD, true, false},
    {"thread", KERNEL_THREAD, false, false}, {"thread", KERNEL_THREAD, true, false},
};
#define FAULTS (sizeof(faults) / sizeof(faults[0]))

TEST(every_slot_of_the_table_is_in_the_list_once)
{
    unsigned seen[sizeof(memrt_api_t) / 8] = {0};
    for (size_t i = 0; i < SLOTS; i++) {
        if (slots[i].offset != SIZE_MAX) {
            seen[slots[i].offset / 8]++;
        }
    }
    for (size_t word = 0; word < sizeof(seen) / sizeof(seen[0]); word++) {
        ck_assert_msg(seen[word] == 1, "slot %zu is in the list %u times", word, seen[word]);
    }
}

/// Returns the calls so far of what `fault` strikes.
static uint64_t strike(const fault_t *fault, uint64_t nth)
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

static uint64_t relent(const fault_t *fault)
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
    uint64_t points; ///< calls that the attempt made of what is struck
} trial_t;

static trial_t attempt_under(const fault_t *fault, const slot_t *slot, ground_t *ground,
                             uint64_t nth)
{
    uint64_t before = strike(fault, nth);
    trial_t trial = {.outcome = slot->attempt(ground)};
    trial.points = relent(fault) - before;
    return trial;
}

/// References to what stood before, of which an attempt that is refused takes and leaves none.
static size_t references(const ground_t *ground)
{
    return api->refcount(ground->mi) + 100 * api->refcount(ground->resizable) +
           10000 * api->refcount(ground->sharer);
}

/// Nothing is kept for reuse, so that an attempt has to ask the system.
static ground_t fresh_ground(void)
{
    ground_t ground = ground_new();
    api->release_unused();
    return ground;
}

/// Returns whether there was an nth request to fail; counts the refusals.
static bool fail_nth(const fault_t *fault, const slot_t *slot, uint64_t nth, size_t *refusals)
{
    books_t start = books_now();
    ground_t ground = fresh_ground();
    books_t before = books_now();
    size_t held = references(&ground);
    trial_t trial = attempt_under(fault, slot, &ground, nth);
    if (trial.outcome == REFUSED) {
        ++*refusals;
        ck_assert_msg(fault->shows, "%s is refused for %s", slot->name, fault->name);
        ck_assert_uint_ge(trial.points, nth);
        ck_assert_uint_eq(references(&ground), held);
        books_expect_unchanged(&before);
        ck_assert_msg(slot->attempt(&ground) == MADE, "%s does not work again", slot->name);
    }
    ground_clear(&ground);
    books_expect_no_leak(&start);
    return trial.points >= nth;
}

/// Returns how many points were met.
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
    /* Twice: the first time tables grow that the second time have room, so other requests fail. */
    for (int round = 0; round < 2; round++) {
        points += fail_each(fault, slot, 0, refusals);
        points += fail_each(fault, slot, 1, refusals);
    }
    return points;
}

static void expect_need(const slot_t *slot, uint64_t points, size_t refusals)
{
    if (slot->need == MEMORY) {
        ck_assert_msg(refusals > 0, "%s was never refused", slot->name);
    } else {
        ck_assert_msg(points == 0, "%s asked for memory", slot->name);
    }
}

/// What has to be kept for how long so that the call is made. The purger makes such calls too, at
/// times of its own: it runs only where it cannot be started.
static void set_decay(const fault_t *fault)
{
    bool at_once = fault->call == KERNEL_UNMAP || fault->call == KERNEL_REMAP;
    size_t kept = fault->call == KERNEL_THREAD ? 60000 : MEMRT__DECAY_NEVER;
    suite_set_decay(at_once ? 0 : kept);
}

static void meet(const fault_t *fault, const slot_t *slot)
{
    size_t refusals = 0;
    set_decay(fault);
    uint64_t points = fail_each_twice(fault, slot, &refusals);
    if (fault->call == MEMRTS_OWN) {
        expect_need(slot, points, refusals);
    }
    points_note(slot->name, fault->name, points);
}

TEST_EACH(every_slot_meets_every_failure_and_leaves_no_trace, SLOTS)
{
    for (size_t i = 0; i < FAULTS; i++) {
        meet(&faults[i], &slots[index]);
    }
}
