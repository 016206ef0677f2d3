/// Tests of the fork accounts.

#include "support/suite.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/atomics.h"
#include "support/child.h"
#include "support/crew.h"
#include "support/kernel.h"

/* Code for children uses REQUIRE, because Check's assertions do not work there. */

static memrt_stats_t read_stats(const memrt_policy_t *policy)
{
    memrt_stats_t stats = {.struct_size = sizeof(stats)};
    REQUIRE(api->stats_read(policy, &stats) == MEMRT_OK);
    return stats;
}

static memrt_stats_t read_scope_stats(const memrt_scope_t *scope)
{
    memrt_stats_t stats = {.struct_size = sizeof(stats)};
    REQUIRE(api->scope_stats(scope, &stats) == MEMRT_OK);
    return stats;
}

static uint64_t count_blocks(memrt_stats_t stats)
{
    return stats.alloc - stats.free;
}

static uint64_t compute_own_bytes(memrt_stats_t stats)
{
    return stats.live - stats.inherited;
}

TEST(process_without_live_buffers_at_fork_inherits_nothing)
{
    memrt_stats_t stats = read_stats(NULL);
    ck_assert_uint_eq(stats.inherited + stats.inherited_blocks + stats.inherited_error, 0);
}

/// Buffers of each kind, inside and outside of a scope, of the default policy and of another
/// policy.
#define KINDS 5
#define PLACES 4

typedef struct estate {
    memrt_policy_t *policy;
    memrt_scope_t *scope;
    memrt_meminfo_t *mis[PLACES][KINDS];
    void *blocks[PLACES][2];
} estate_t;

static void fill_slot(estate_t *estate, size_t place)
{
    static char foreign[100];
    memrt_policy_t *policy = place % 2 == 0 ? NULL : estate->policy;
    memrt_new_options_t options = {.struct_size = sizeof(options), .policy = policy};
    memrt_meminfo_t **mis = estate->mis[place];
    REQUIRE(api->scope_enter(place < 2 ? NULL : estate->scope, NULL) == MEMRT_OK);
    REQUIRE((mis[0] = api->allocate_from(1000, policy)) != NULL);
    REQUIRE(api->meminfo_new(3000000, &options, &mis[1]) == MEMRT_OK);
    REQUIRE(api->meminfo_adopt(foreign, sizeof(foreign), &options, &mis[2]) == MEMRT_OK);
    REQUIRE(api->resizable_new(500, &options, &mis[3]) == MEMRT_OK);
    REQUIRE(api->resizable_new(50000, &options, &mis[4]) == MEMRT_OK);
    estate->blocks[place][0] = api->block_alloc(policy, 7);
    estate->blocks[place][1] = api->block_calloc(policy, 10, 200);
    REQUIRE(estate->blocks[place][0] != NULL && estate->blocks[place][1] != NULL);
    REQUIRE(api->scope_enter(NULL, NULL) == MEMRT_OK);
}

static void fill_estate(estate_t *estate)
{
    memset(estate, 0, sizeof(*estate));
    REQUIRE(api->policy_new(NULL, &estate->policy) == MEMRT_OK);
    REQUIRE(api->scope_open(NULL, "estate", &estate->scope) == MEMRT_OK);
    for (size_t place = 0; place < PLACES; place++) {
        fill_slot(estate, place);
    }
}

static void free_buffers(estate_t *estate)
{
    for (size_t place = 0; place < PLACES; place++) {
        for (size_t kind = 0; kind < KINDS; kind++) {
            api->release(estate->mis[place][kind]);
        }
        api->block_free(NULL, estate->blocks[place][0], 0);
        api->block_free(NULL, estate->blocks[place][1], 0);
    }
}

static void release_estate(estate_t *estate)
{
    free_buffers(estate);
    api->policy_release(estate->policy);
    api->scope_release(estate->scope);
}

/// Statistics of the process, of both policies and of the scope.
#define LEVELS 4

static void read_levels(const estate_t *estate, memrt_stats_t *out)
{
    out[0] = read_stats(NULL);
    out[1] = read_stats(api->policy_default());
    out[2] = read_stats(estate->policy);
    out[3] = read_scope_stats(estate->scope);
}

/// Fork, and run `act` in the child.
static void run_in_child(void (*act)(void *), void *context)
{
    fflush(stdout);
    pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        child_start_watchdog();
        act(context);
        _exit(0);
    }
    REQUIRE(child_wait(child) == 0);
}

static void expect_all_inherited(const estate_t *estate)
{
    memrt_stats_t now[LEVELS];
    read_levels(estate, now);
    for (size_t i = 0; i < LEVELS; i++) {
        REQUIRE(now[i].live > 0 && now[i].inherited == now[i].live);
        REQUIRE(now[i].inherited_blocks == count_blocks(now[i]));
        REQUIRE(now[i].inherited_error == 0);
    }
}

static void use_and_free_all(void *context)
{
    estate_t *estate = context, mine;
    memrt_stats_t before[LEVELS], both[LEVELS], after[LEVELS];
    expect_all_inherited(estate);
    read_levels(estate, before);
    mine = *estate;
    for (size_t place = 0; place < PLACES; place++) {
        fill_slot(&mine, place);
    }
    read_levels(estate, both);
    free_buffers(estate);
    read_levels(estate, after);
    for (size_t i = 0; i < LEVELS; i++) {
        REQUIRE(both[i].inherited == before[i].live && both[i].live == 2 * before[i].live);
        REQUIRE(both[i].inherited_blocks == count_blocks(before[i]));
        REQUIRE(after[i].inherited == 0 && after[i].inherited_blocks == 0);
        REQUIRE(after[i].live == before[i].live &&
                count_blocks(after[i]) == count_blocks(before[i]));
        REQUIRE(after[i].alloc == both[i].alloc && after[i].total == 2 * before[i].total);
        REQUIRE(after[i].reserved - after[i].cached == before[i].reserved - before[i].cached);
    }
    free_buffers(&mine);
    REQUIRE(read_stats(NULL).live == 0 && read_scope_stats(estate->scope).live == 0);
}

TEST(fork_child_counts_inherited_and_own_bytes_separately)
{
    estate_t estate;
    fill_estate(&estate);
    run_in_child(use_and_free_all, &estate);
    ck_assert_uint_eq(read_stats(NULL).inherited, 0);
    release_estate(&estate);
}

/// Return true when tracking lists the buffer of a MemInfo as inherited.
static bool is_inherited(const memrt_meminfo_t *mi)
{
    memrt_buffer_t row;
    REQUIRE(api->buffer_read(mi, sizeof(row), &row) == MEMRT_OK);
    REQUIRE(row.live.meminfo == (uintptr_t)mi);
    return row.inherited != 0;
}

static void list_both_estates(void *context)
{
    estate_t *estate = context, mine;
    memset(&mine, 0, sizeof(mine));
    fill_estate(&mine);
    for (size_t place = 0; place < PLACES; place++) {
        for (size_t kind = 0; kind < KINDS; kind++) {
            memrt_meminfo_t *theirs = estate->mis[place][kind], *own = mine.mis[place][kind];
            /* set_name lists a MemInfo that was not listed before the fork. */
            REQUIRE(api->set_name(theirs, "theirs") == MEMRT_OK && is_inherited(theirs));
            REQUIRE(api->set_name(own, "own") == MEMRT_OK && !is_inherited(own));
        }
        REQUIRE(api->resizable_realloc(estate->mis[place][3], 70000) != NULL);
        REQUIRE(is_inherited(estate->mis[place][3]));
    }
    release_estate(&mine);
}

TEST(fork_child_lists_inherited_buffers_as_inherited)
{
    estate_t tracked, untracked;
    int was = api->tracking(1);
    fill_estate(&tracked);
    ck_assert(!is_inherited(tracked.mis[0][0]));
    run_in_child(list_both_estates, &tracked);
    api->tracking(0);
    fill_estate(&untracked);
    run_in_child(list_both_estates, &untracked);
    api->tracking(was);
    release_estate(&tracked);
    release_estate(&untracked);
}

static void check_policies(void *context)
{
    const estate_t *estate = context;
    for (size_t place = 0; place < PLACES; place++) {
        memrt_policy_t *policy = place % 2 == 0 ? api->policy_default() : estate->policy;
        const memrt_meminfo_t *mi = estate->mis[place][0];
        REQUIRE(api->policy_of(mi) == policy);
        REQUIRE(api->scope_of(mi) == (place < 2 ? NULL : estate->scope));
    }
    REQUIRE(api->policy_index(api->policy_default()) == 0);
    for (uint32_t index = 0; index < api->policy_limit(); index++) {
        memrt_policy_t *policy = api->policy_at(index);
        REQUIRE(policy == NULL || api->policy_index(policy) == index);
        REQUIRE(index > 0 || policy == api->policy_default());
        if (policy != NULL) {
            api->policy_release(policy);
        }
    }
    api->release_unused();
    memrt_policy_t *found = api->policy_at(api->policy_index(estate->policy));
    REQUIRE(found == estate->policy);
    api->policy_release(found);
}

TEST(inherited_buffers_keep_policy_and_scope_after_fork)
{
    estate_t estate;
    fill_estate(&estate);
    run_in_child(check_policies, &estate);
    release_estate(&estate);
}

static void keep_policy_index(void *context)
{
    estate_t *estate = context;
    uint32_t index = api->policy_index(estate->policy);
    free_buffers(estate);
    for (int i = 0; i < 3; i++) {
        memrt_policy_t *other;
        REQUIRE(api->policy_new(NULL, &other) == MEMRT_OK);
        REQUIRE(api->policy_index(other) != index && api->policy_index(other) != 0);
        api->policy_release(other);
    }
    memrt_policy_t *found = api->policy_at(index);
    REQUIRE(found == estate->policy);
    api->policy_release(found);
    api->policy_release(estate->policy);
    api->scope_release(estate->scope);
    REQUIRE(api->policy_at(index) == NULL);
    memrt_policy_t *next;
    REQUIRE(api->policy_new(NULL, &next) == MEMRT_OK);
    api->policy_release(next);
}

TEST(policy_keeps_index_after_inherited_buffers_are_freed)
{
    estate_t estate;
    fill_estate(&estate);
    run_in_child(keep_policy_index, &estate);
    release_estate(&estate);
}

#define DEAD 40

/// The first blocks keep their accounts, so each sweep meets an account that waits.
static void take_indices_in_turn(void *context)
{
    void **blocks = context;
    for (size_t i = DEAD / 2; i < DEAD; i++) {
        api->block_free(NULL, blocks[i], 100);
    }
    uint32_t limit = api->policy_limit();
    memrt_policy_t *policies[DEAD];
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < DEAD; i++) {
            REQUIRE(api->policy_new(NULL, &policies[i]) == MEMRT_OK);
        }
        for (size_t i = 0; i < DEAD; i++) {
            api->policy_release(policies[i]);
        }
    }
    for (size_t i = 0; i < DEAD; i++) {
        REQUIRE(api->policy_new(NULL, &policies[i]) == MEMRT_OK);
        REQUIRE(api->policy_index(policies[i]) < limit);
    }
    for (size_t i = 0; i < DEAD; i++) {
        api->policy_release(policies[i]);
    }
}

TEST(child_takes_the_indices_of_dead_inherited_accounts)
{
    void *blocks[DEAD];
    for (size_t i = 0; i < DEAD; i++) {
        memrt_policy_t *policy;
        ck_assert_int_eq(api->policy_new(NULL, &policy), MEMRT_OK);
        blocks[i] = api->block_alloc(policy, 100);
        api->policy_release(policy);
    }
    run_in_child(take_indices_in_turn, blocks);
    for (size_t i = 0; i < DEAD; i++) {
        api->block_free(NULL, blocks[i], 100);
    }
}

static void resize_all(void *context)
{
    estate_t *estate = context;
    uint64_t live = read_stats(NULL).live;
    for (size_t place = 0; place < PLACES; place++) {
        REQUIRE(api->scope_enter(place % 2 == 0 ? estate->scope : NULL, NULL) == MEMRT_OK);
        void **data = estate->blocks[place];
        data[0] = api->block_realloc(NULL, data[0], 20);
        data[0] = api->block_realloc(NULL, data[0], 1007);
        data[1] = api->block_realloc(NULL, data[1], 2000000);
        REQUIRE(data[0] != NULL && data[1] != NULL);
        REQUIRE(api->resizable_realloc(estate->mis[place][3], 1500) != NULL);
        live += 1000 + 1998000 + 1000;
        memrt_stats_t now = read_stats(NULL);
        REQUIRE(now.live == live && now.inherited == live);
    }
    expect_all_inherited(estate);
    REQUIRE(api->scope_enter(NULL, NULL) == MEMRT_OK);
    release_estate(estate);
    REQUIRE(read_stats(NULL).live == 0 && read_stats(NULL).inherited_blocks == 0);
}

TEST(resized_inherited_buffer_stays_inherited)
{
    estate_t estate;
    fill_estate(&estate);
    run_in_child(resize_all, &estate);
    release_estate(&estate);
}

/// Blocks of all kinds that use the fast path.
typedef struct trio {
    memrt_meminfo_t *mi;
    void *block, *tiny;
} trio_t;

#define TRIO (2 * 640 + 8)

static trio_t allocate_trio(void)
{
    trio_t made = {api->allocate(640), api->block_alloc(NULL, 640), api->block_alloc(NULL, 8)};
    REQUIRE(made.mi != NULL && made.block != NULL && made.tiny != NULL);
    return made;
}

static void free_trio(trio_t trio)
{
    api->release(trio.mi);
    api->block_free(NULL, trio.block, 640);
    api->block_free(NULL, trio.tiny, 8);
}

#define TRIOS 10

typedef struct way {
    memrt_scope_t *scope; ///< NULL: none
    trio_t inherited;
} way_t;

static memrt_stats_t read_way_stats(const way_t *way)
{
    return way->scope == NULL ? read_stats(NULL) : read_scope_stats(way->scope);
}

/// Freeing the inherited blocks first leaves room below the peak. The fast path then allocates
/// without a report.
static void allocate_own(void *context)
{
    way_t *way = context;
    trio_t made[TRIOS];
    free_trio(way->inherited);
    for (size_t i = 0; i < TRIOS; i++) {
        made[i] = allocate_trio();
        memrt_stats_t now = read_way_stats(way);
        REQUIRE(now.inherited == 0 && now.live == (i + 1) * TRIO);
    }
    for (size_t i = 0; i < TRIOS; i++) {
        free_trio(made[i]);
    }
    REQUIRE(read_way_stats(way).live == 0 && read_way_stats(way).inherited == 0);
}

TEST_EACH(fast_path_allocations_after_fork_belong_to_child, 2)
{
    way_t way;
    memrt_scope_t *scope;
    ck_assert_int_eq(api->scope_open(NULL, "forked in", &scope), MEMRT_OK);
    ck_assert_int_eq(api->scope_enter(scope, NULL), MEMRT_OK);
    /* once a scope was entered, allocations outside of scopes also use the scope code */
    if (index == 1) {
        ck_assert_int_eq(api->scope_enter(NULL, NULL), MEMRT_OK);
    }
    way.scope = index == 0 ? scope : NULL;
    way.inherited = allocate_trio();
    for (size_t i = 0; i < TRIOS; i++) {
        free_trio(allocate_trio());
    }
    run_in_child(allocate_own, &way);
    free_trio(way.inherited);
    ck_assert_int_eq(api->scope_enter(NULL, NULL), MEMRT_OK);
    api->scope_release(scope);
}

static void run_grandchild(void *context)
{
    expect_all_inherited(context);
    memrt_stats_t before = read_stats(NULL);
    release_estate(context);
    memrt_stats_t after = read_stats(NULL);
    REQUIRE(after.live < before.live && after.inherited == after.live);
}

static void fork_child(void *context)
{
    estate_t more = *(estate_t *)context;
    for (size_t place = 0; place < PLACES; place++) {
        fill_slot(&more, place);
    }
    uint64_t live = read_stats(NULL).live;
    run_in_child(run_grandchild, context);
    REQUIRE(read_stats(NULL).live == live && read_stats(NULL).inherited == live / 2);
    free_buffers(&more);
    REQUIRE(compute_own_bytes(read_stats(NULL)) == 0);
}

TEST(grandchild_inherits_own_and_inherited_bytes_of_parent)
{
    estate_t estate;
    fill_estate(&estate);
    run_in_child(fork_child, &estate);
    release_estate(&estate);
}

#define GENERATIONS 12

typedef struct line {
    int generation;
    void *blocks[GENERATIONS];
} line_t;

static void run_generation(void *context)
{
    line_t *line = context;
    uint64_t made = 100 * (uint64_t)line->generation;
    REQUIRE(read_stats(NULL).inherited == made && compute_own_bytes(read_stats(NULL)) == 0);
    if (line->generation == GENERATIONS) {
        while (line->generation-- > 0) {
            api->block_free(NULL, line->blocks[line->generation], 0);
        }
        memrt_policy_t *policy;
        REQUIRE(read_stats(NULL).inherited == 0);
        REQUIRE(api->policy_new(NULL, &policy) == MEMRT_OK);
        /* the destroyed fork accounts left no policies behind */
        REQUIRE(api->policy_index(policy) <= 2);
        api->policy_release(policy);
        return;
    }
    line->blocks[line->generation++] = api->block_alloc(NULL, 100);
    run_in_child(run_generation, line);
}

TEST(nested_forks_inherit_bytes_of_all_earlier_generations)
{
    line_t line = {0};
    run_generation(&line);
    api->block_free(NULL, line.blocks[0], 0);
}

static void check_unknown_account(void *context)
{
    estate_t *estate = context;
    memrt_stats_t now = read_stats(NULL);
    REQUIRE(now.inherited == 0 && now.inherited_error == now.live && now.live > 0);
    kernel_obey();
    suite_allow_requests();
    void *more = api->block_alloc(NULL, 12345);
    REQUIRE(read_stats(NULL).live == now.live + 12345);
    REQUIRE(read_stats(NULL).inherited_error == now.live + 12345);
    run_in_child(run_grandchild, estate); /* has memory for the fork accounts */
    api->block_free(NULL, more, 0);
    release_estate(estate);
    REQUIRE(read_stats(NULL).inherited_error == 0 && read_stats(NULL).live == 0);
}

TEST_EACH(fork_child_without_memory_reports_inherited_error, 2)
{
    estate_t estate;
    fill_estate(&estate);
    if (index == 0) {
        kernel_refuse(KERNEL_MAP, 0, SIZE_MAX);
    } else {
        suite_fail_all_requests();
    }
    run_in_child(check_unknown_account, &estate);
    kernel_obey();
    suite_allow_requests();
    release_estate(&estate);
}

static void list_without_account(void *context)
{
    estate_t *estate = context;
    suite_allow_requests();
    REQUIRE(read_stats(NULL).inherited_error != 0);
    REQUIRE(is_inherited(estate->mis[0][0]));
    memrt_meminfo_t *own = api->allocate(100);
    REQUIRE(!is_inherited(own));
    api->release(own);
}

TEST(tracked_buffer_is_inherited_even_without_fork_account)
{
    estate_t estate;
    int was = api->tracking(1);
    fill_estate(&estate);
    suite_fail_all_requests();
    run_in_child(list_without_account, &estate);
    suite_allow_requests();
    api->tracking(was);
    release_estate(&estate);
}

static void check_partial_account(void *context)
{
    memrt_stats_t now = read_stats(NULL);
    (void)context;
    REQUIRE(now.inherited > 0 && now.inherited_error > 0);
    REQUIRE(now.inherited + now.inherited_error == now.live);
    api->block_free(NULL, api->block_alloc(NULL, 100), 0);
    REQUIRE(read_stats(NULL).live == now.live);
}

TEST(too_few_policy_indices_at_fork_give_partial_accounts)
{
    enum { LEFT = 2 };
    static memrt_policy_t *policies[5000];
    size_t count = 0;
    estate_t estate;
    fill_estate(&estate);
    while (api->policy_new(NULL, &policies[count]) == MEMRT_OK) {
        count++;
    }
    for (int i = 0; i < LEFT; i++) {
        api->policy_release(policies[--count]);
    }
    run_in_child(check_partial_account, NULL);
    while (count-- > 0) {
        api->policy_release(policies[count]);
    }
    release_estate(&estate);
}

/* --- Forks while other threads are counting. --- */

#define WORKERS 3
#define FORKS 25

typedef struct scene {
    estate_t estate;
    size_t working; ///< relaxed adds; workers inside their loop
    size_t stop;    ///< release store when all is done
} scene_t;

static void replace_blocks(scene_t *scene, size_t index)
{
    static const size_t sizes[] = {8, 300, 40000, 2000000};
    memrt_policy_t *policy = index == 0 ? NULL : scene->estate.policy;
    for (size_t i = 0; i < 4; i++) {
        api->block_free(policy, api->block_alloc(policy, sizes[i]), 0);
    }
}

static void expect_own_exact(void *context)
{
    scene_t *scene = context;
    memrt_stats_t now[LEVELS];
    read_levels(&scene->estate, now);
    for (size_t i = 0; i < LEVELS; i++) {
        REQUIRE(compute_own_bytes(now[i]) == 0);
    }
    estate_t mine = scene->estate;
    for (size_t place = 0; place < PLACES; place++) {
        fill_slot(&mine, place);
    }
    replace_blocks(scene, 0);
    read_levels(&mine, now);
    free_buffers(&scene->estate);
    REQUIRE(compute_own_bytes(now[0]) == PLACES * (1000 + 3000000 + 500 + 50000 + 7 + 2000));
    for (size_t i = 1; i < LEVELS; i++) {
        REQUIRE(compute_own_bytes(now[i]) == compute_own_bytes(now[0]) / 2);
    }
    REQUIRE(compute_own_bytes(read_stats(NULL)) == compute_own_bytes(now[0]));
    free_buffers(&mine);
    api->release_unused();
    REQUIRE(compute_own_bytes(read_stats(NULL)) == 0 &&
            compute_own_bytes(read_scope_stats(mine.scope)) == 0);
}

static void expect_peak_reset(void *context)
{
    (void)context;
    api->stats_reset_peak(NULL);
    memrt_stats_t now = read_stats(NULL);
    REQUIRE(now.peak == now.live && now.peak_error == 0);
    api->block_free(NULL, api->block_alloc(NULL, 3000000), 0);
    REQUIRE(read_stats(NULL).peak == now.live + 3000000 && read_stats(NULL).peak_error == 0);
}

static void fork_or_work(size_t index, void *context)
{
    scene_t *scene = context;
    if (index < WORKERS) {
        REQUIRE(api->scope_enter(index == 1 ? scene->estate.scope : NULL, NULL) == MEMRT_OK);
        memrt__fetch_add_relaxed(&scene->working, 1);
        while (memrt__load_acquire(&scene->stop) == 0) {
            replace_blocks(scene, index);
        }
        REQUIRE(api->scope_enter(NULL, NULL) == MEMRT_OK);
        return;
    }
    while (memrt__load_relaxed(&scene->working) < WORKERS) {
    }
    for (int i = 0; i < FORKS; i++) {
        run_in_child(expect_own_exact, scene);
        run_in_child(expect_peak_reset, scene);
    }
    memrt__store_release(&scene->stop, 1);
}

/* AddressSanitizer's allocator leaves its own locks held in a child that was forked while other
 * threads were inside the allocator. */
#define WAYS (SUITE_ADDRESS_SANITIZER ? 0 : 1)

TEST_EACH(child_statistics_are_exact_if_forked_while_threads_count, WAYS)
{
    scene_t scene = {0};
    fill_estate(&scene.estate);
    crew_run(WORKERS + 1, fork_or_work, &scene);
    release_estate(&scene.estate);
}
