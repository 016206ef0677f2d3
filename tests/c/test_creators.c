/// Every slot of the table that can fail for want of memory is made to, at each place in turn: what
/// it refuses leaves everything as it was, and the same call then works.

#include "support/suite.h"

#include <stdlib.h>
#include <string.h>

#include "support/books.h"
#include "support/pattern.h"

/// What an attempt works on and what it made; whatever is not NULL is given back at the end.
typedef struct ground {
    memrt_policy_t *policy;     ///< stood before
    memrt_meminfo_t *resizable; ///< stood before, 100 bytes of pattern 1
    memrt_meminfo_t *mi;        ///< stood before
    void *block;                ///< stood before, 100 bytes of pattern 2
    void *shared_block;         ///< stood before, 100 bytes of pattern 3
    memrt_meminfo_t *sharer;    ///< holds shared_block too
    memrt_meminfo_t *made;
    memrt_policy_t *made_policy;
    memrt_allocator_t made_guard;
    memrt_live_t *made_list;
    void *made_block;
    void *left; ///< data block that a resizable has no more
} ground_t;

typedef enum outcome {
    MADE,
    REFUSED, ///< with the error that the slot documents, and nothing written
} outcome_t;

typedef outcome_t (*attempt_fn)(ground_t *ground);

static char foreign[64];

static outcome_t of_pointer(const void *result)
{
    return result == NULL ? REFUSED : MADE;
}

static outcome_t of_status(memrt_status_t status, bool out_is_untouched)
{
    ck_assert(status == MEMRT_OK || status == MEMRT_ENOMEM);
    ck_assert(status == MEMRT_OK || out_is_untouched);
    return status == MEMRT_OK ? MADE : REFUSED;
}

static void *external_malloc(size_t size, void *opaque)
{
    (void)opaque;
    return malloc(size);
}

static void external_free(void *ptr, void *opaque)
{
    (void)opaque;
    free(ptr);
}

static memrt_external_allocator_t external = {external_malloc, NULL, external_free, NULL};

static outcome_t try_allocate(ground_t *ground)
{
    return of_pointer(ground->made = api->allocate(100));
}

static outcome_t try_allocate_external(ground_t *ground)
{
    return of_pointer(ground->made = api->allocate_external(100, &external));
}

static outcome_t try_manage_memory(ground_t *ground)
{
    return of_pointer(ground->made = api->manage_memory(foreign, NULL));
}

static memrt_new_options_t named_options(const ground_t *ground)
{
    return (memrt_new_options_t){
        .struct_size = sizeof(memrt_new_options_t), .policy = ground->policy, .name = "made"};
}

static outcome_t try_meminfo_new(ground_t *ground)
{
    memrt_new_options_t options = named_options(ground);
    return of_status(api->meminfo_new(3000000, &options, &ground->made), ground->made == NULL);
}

static outcome_t try_meminfo_adopt(ground_t *ground)
{
    memrt_new_options_t options = named_options(ground);
    return of_status(api->meminfo_adopt(foreign, sizeof(foreign), &options, &ground->made),
                     ground->made == NULL);
}

static outcome_t try_set_name(ground_t *ground)
{
    char before[MEMRT_NAME_MAX + 1], after[MEMRT_NAME_MAX + 1];
    api->get_name(ground->mi, before);
    memrt_status_t status = api->set_name(ground->mi, "named");
    api->get_name(ground->mi, after);
    return of_status(status, strcmp(before, after) == 0);
}

static outcome_t try_resizable_new(ground_t *ground)
{
    memrt_new_options_t options = named_options(ground);
    return of_status(api->resizable_new(100, &options, &ground->made), ground->made == NULL);
}

static outcome_t try_resizable_alloc(ground_t *ground)
{
    void *before = api->get_data(ground->resizable);
    void *data = api->resizable_alloc(ground->resizable, 200);
    if (data == NULL) {
        ck_assert_ptr_eq(api->get_data(ground->resizable), before);
    } else {
        ground->left = before;
    }
    return of_pointer(data);
}

static outcome_t try_resizable_realloc(ground_t *ground)
{
    void *data = api->resizable_realloc(ground->resizable, 3000000);
    ck_assert(pattern_holds(api->get_data(ground->resizable), 100, 1));
    ck_assert_uint_eq(api->size(ground->resizable), data == NULL ? 100 : 3000000);
    return of_pointer(data);
}

static outcome_t try_block_alloc(ground_t *ground)
{
    return of_pointer(ground->made_block = api->block_alloc(ground->policy, 100));
}

static outcome_t try_block_calloc(ground_t *ground)
{
    return of_pointer(ground->made_block = api->block_calloc(ground->policy, 10, 100));
}

/// One block that is the caller's alone and one that is shared: each is moved or copied.
static outcome_t try_block_realloc(ground_t *ground)
{
    void *moved = api->block_realloc(ground->policy, ground->block, 2000000);
    ground->block = moved == NULL ? ground->block : moved;
    ck_assert(pattern_holds(ground->block, 100, 2));
    return of_pointer(moved);
}

static outcome_t try_realloc_in_place(ground_t *ground)
{
    void *moved = api->block_realloc(ground->policy, ground->block, 101);
    ground->block = moved == NULL ? ground->block : moved;
    ck_assert(pattern_holds(ground->block, 100, 2));
    return of_pointer(moved);
}

static outcome_t try_realloc_of_shared(ground_t *ground)
{
    void *copy = api->block_realloc(ground->policy, ground->shared_block, 2000000);
    ck_assert(pattern_holds(api->get_data(ground->sharer), 100, 3));
    ck_assert_uint_eq(api->refcount(ground->sharer), copy == NULL ? 2 : 1);
    ground->shared_block = copy == NULL ? ground->shared_block : copy;
    return of_pointer(copy);
}

static outcome_t try_block_meminfo(ground_t *ground)
{
    return of_status(api->block_meminfo(ground->block, &ground->made), ground->made == NULL);
}

static outcome_t try_find(ground_t *ground)
{
    return of_status(api->find(api->get_data(ground->sharer), &ground->made), ground->made == NULL);
}

static outcome_t try_policy_new(ground_t *ground)
{
    return of_status(api->policy_new(NULL, &ground->made_policy), ground->made_policy == NULL);
}

static outcome_t try_policy_with_limits(ground_t *ground)
{
    memrt_policy_options_t options = {
        .struct_size = sizeof(options), .decay = "0", .hugepages = "off"};
    return of_status(api->policy_new(&options, &ground->made_policy), ground->made_policy == NULL);
}

static outcome_t try_policy_at(ground_t *ground)
{
    uint32_t index = api->policy_index(ground->policy);
    return of_pointer(ground->made_policy = api->policy_at(index));
}

static outcome_t try_allocator_guard(ground_t *ground)
{
    return of_status(api->allocator_guard(api->allocator_system(), &ground->made_guard),
                     ground->made_guard.alloc == NULL);
}

static outcome_t try_stats_read(ground_t *ground)
{
    memrt_stats_t stats = {.struct_size = sizeof(stats)};
    return of_status(api->stats_read(ground->policy, &stats), stats.alloc == 0);
}

static outcome_t try_live(ground_t *ground)
{
    size_t count = 12345;
    return of_status(api->live(&ground->made_list, &count),
                     ground->made_list == NULL && count == 12345);
}

typedef enum need {
    NOTHING,   ///< cannot fail: returns no status and no pointer, or one that stands already
    NO_MEMORY, ///< can fail, but never for want of memory: asks for none
    MEMORY,
} need_t;

typedef struct slot {
    const char *name;
    size_t offset;
    need_t need;
    attempt_fn attempt;
} slot_t;

#define PLAIN(slot) {#slot, offsetof(memrt_api_t, slot), NOTHING, NULL}
#define MODEST(slot) {#slot, offsetof(memrt_api_t, slot), NO_MEMORY, try_##slot}
#define CREATOR(slot) {#slot, offsetof(memrt_api_t, slot), MEMORY, try_##slot}

/* clang-format off */
static const slot_t slots[] = {
    CREATOR(allocate), CREATOR(allocate_external), CREATOR(manage_memory), PLAIN(acquire),
    PLAIN(release), PLAIN(get_data), PLAIN(struct_size), PLAIN(abi_major), PLAIN(features),
    PLAIN(version), CREATOR(meminfo_new), CREATOR(meminfo_adopt), PLAIN(try_acquire),
    PLAIN(call_dtor), PLAIN(refcount), PLAIN(size), PLAIN(dtor_info), PLAIN(readonly),
    PLAIN(external_allocator), CREATOR(set_name), PLAIN(get_name), PLAIN(dump), PLAIN(policy_of),
    CREATOR(resizable_new), CREATOR(resizable_alloc), CREATOR(resizable_realloc),
    PLAIN(resizable_free), CREATOR(block_alloc), CREATOR(block_calloc), CREATOR(block_realloc),
    PLAIN(block_free), MODEST(block_meminfo), MODEST(find), CREATOR(policy_new),
    PLAIN(policy_acquire), PLAIN(policy_release), PLAIN(policy_default), PLAIN(policy_name),
    PLAIN(policy_alignment), PLAIN(policy_index), MODEST(policy_at), PLAIN(policy_limit),
    PLAIN(allocator_default), PLAIN(allocator_system), PLAIN(allocator_mapped),
    CREATOR(allocator_guard), MODEST(stats_read), PLAIN(stats_reset_peak), PLAIN(tracking),
    PLAIN(tracking_enabled), CREATOR(live), PLAIN(live_free), PLAIN(set_watcher), PLAIN(watch),
    PLAIN(release_unused), PLAIN(fail_allocations), PLAIN(failure_points), PLAIN(option),
    PLAIN(option_warning), PLAIN(shutdown), PLAIN(status_text),
    PLAIN(option_set), PLAIN(option_check), PLAIN(policy_option),
    /* Ways of the slots above that are worth a try of their own: */
    {"block_realloc of a shared block", SIZE_MAX, MEMORY, try_realloc_of_shared},
    {"block_realloc by a byte", SIZE_MAX, MEMORY, try_realloc_in_place},
    {"policy_new with limits", SIZE_MAX, MEMORY, try_policy_with_limits},
};
/* clang-format on */
#define SLOTS (sizeof(slots) / sizeof(slots[0]))

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

static void *patterned_block(memrt_policy_t *policy, unsigned seed)
{
    void *data = api->block_alloc(policy, 100);
    ck_assert_ptr_nonnull(data);
    pattern_write(data, 100, seed);
    return data;
}

static ground_t prepare(void)
{
    ground_t ground = {0};
    ck_assert_int_eq(api->policy_new(NULL, &ground.policy), MEMRT_OK);
    memrt_new_options_t options = {.struct_size = sizeof(options), .policy = ground.policy};
    ck_assert_int_eq(api->resizable_new(100, &options, &ground.resizable), MEMRT_OK);
    pattern_write(api->get_data(ground.resizable), 100, 1);
    ck_assert_int_eq(api->meminfo_new(100, &options, &ground.mi), MEMRT_OK);
    ground.block = patterned_block(ground.policy, 2);
    ground.shared_block = patterned_block(ground.policy, 3);
    ck_assert_int_eq(api->block_meminfo(ground.shared_block, &ground.sharer), MEMRT_OK);
    ck_assert_int_eq(api->set_name(ground.sharer, "shared"), MEMRT_OK); /* so that find knows it */
    return ground;
}

static void clear(ground_t *ground)
{
    memrt_meminfo_t *references[] = {ground->mi, ground->sharer, ground->made};
    for (size_t i = 0; i < 3; i++) {
        if (references[i] != NULL) {
            api->release(references[i]);
        }
    }
    api->resizable_free(ground->resizable, ground->left);
    api->release(ground->resizable);
    api->block_free(NULL, ground->block, 0);
    api->block_free(NULL, ground->shared_block, 0);
    api->block_free(NULL, ground->made_block, 0);
    api->live_free(ground->made_list);
    if (ground->made_guard.destroy != NULL) {
        ground->made_guard.destroy(ground->made_guard.ctx);
    }
    if (ground->made_policy != NULL) {
        api->policy_release(ground->made_policy);
    }
    api->policy_release(ground->policy);
}

typedef struct trial {
    outcome_t outcome;
    uint64_t points; ///< requests that the attempt made
} trial_t;

static trial_t attempt_with_nth_failing(const slot_t *slot, ground_t *ground, uint64_t nth)
{
    memrt_failure_plan_t plan = {.struct_size = sizeof(plan), .nth = nth};
    ck_assert_int_eq(api->fail_allocations(&plan), MEMRT_OK);
    trial_t trial = {.outcome = slot->attempt(ground)};
    trial.points = api->failure_points();
    ck_assert_int_eq(api->fail_allocations(NULL), MEMRT_OK);
    return trial;
}

/// Returns whether there was an nth request to fail; counts the refusals.
static bool fail_nth(const slot_t *slot, uint64_t nth, size_t *refusals)
{
    books_t start = books_now();
    ground_t ground = prepare();
    books_t before = books_now();
    trial_t trial = attempt_with_nth_failing(slot, &ground, nth);
    if (trial.outcome == REFUSED) {
        ++*refusals;
        ck_assert_uint_ge(trial.points, nth);
        books_expect_unchanged(&before);
        ck_assert_msg(slot->attempt(&ground) == MADE, "%s does not work again", slot->name);
    }
    clear(&ground);
    books_expect_no_leak(&start);
    return trial.points >= nth;
}

static void fail_each(const slot_t *slot, int tracking)
{
    size_t refusals = 0;
    uint64_t nth = 1;
    int was = api->tracking(tracking);
    while (fail_nth(slot, nth, &refusals)) {
        nth++;
    }
    api->tracking(was);
    if (slot->need == MEMORY) {
        ck_assert_msg(refusals > 0, "%s was never refused", slot->name);
    } else {
        ck_assert_msg(nth == 1, "%s asked for memory", slot->name);
    }
}

TEST_EACH(every_creator_fails_at_each_request_and_leaves_no_trace, SLOTS)
{
    /* Twice: the first time tables grow that the second time have room, so other requests fail. */
    for (int round = 0; round < 2 && slots[index].need != NOTHING; round++) {
        fail_each(&slots[index], 0);
        fail_each(&slots[index], 1);
    }
}
