#include "support/suite.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/atomics.h"
#include "support/child.h"
#include "support/crew.h"
#include "support/kernel.h"

/* For children, where Check's assertions do not work. */

static memrt_stats_t figures(const memrt_policy_t *policy)
{
    memrt_stats_t stats = {.struct_size = sizeof(stats)};
    REQUIRE(api->stats_read(policy, &stats) == MEMRT_OK);
    return stats;
}

static memrt_stats_t figures_in(const memrt_scope_t *scope)
{
    memrt_stats_t stats = {.struct_size = sizeof(stats)};
    REQUIRE(api->scope_stats(scope, &stats) == MEMRT_OK);
    return stats;
}

static uint64_t blocks(memrt_stats_t stats)
{
    return stats.alloc - stats.free;
}

static uint64_t own(memrt_stats_t stats)
{
    return stats.live - stats.inherited;
}

TEST(where_nothing_was_live_at_the_fork_nothing_is_inherited)
{
    memrt_stats_t stats = figures(NULL);
    ck_assert_uint_eq(stats.inherited + stats.inherited_blocks + stats.inherited_error, 0);
}

/// Buffers of each kind, in and outside of a scope, of the default policy and another.
#define KINDS 5
#define PLACES 4

typedef struct estate {
    memrt_policy_t *policy;
    memrt_scope_t *scope;
    memrt_meminfo_t *mis[PLACES][KINDS];
    void *blocks[PLACES][2];
} estate_t;

static void fill_place(estate_t *estate, size_t place)
{
    static char foreign[100];
    memrt_policy_t *policy = place % 2 == 0 ? NULL : estate->policy;
    memrt_new_options_t options = {.struct_size = sizeof(options), .policy = policy};
    memrt_meminfo_t **mis = estate->mis[place];
    REQUIRE(api->scope_enter(place < 2 ? NULL : estate->scope, NULL) == MEMRT_OK);
    REQUIRE(api->meminfo_new(1000, &options, &mis[0]) == MEMRT_OK);
    REQUIRE(api->meminfo_new(3000000, &options, &mis[1]) == MEMRT_OK);
    REQUIRE(api->meminfo_adopt(foreign, sizeof(foreign), &options, &mis[2]) == MEMRT_OK);
    REQUIRE(api->resizable_new(500, &options, &mis[3]) == MEMRT_OK);
    REQUIRE(api->resizable_new(50000, &options, &mis[4]) == MEMRT_OK);
    estate->blocks[place][0] = api->block_alloc(policy, 7);
    estate->blocks[place][1] = api->block_calloc(policy, 10, 200);
    REQUIRE(estate->blocks[place][0] != NULL && estate->blocks[place][1] != NULL);
    REQUIRE(api->scope_enter(NULL, NULL) == MEMRT_OK);
}

static void fill(estate_t *estate)
{
    memset(estate, 0, sizeof(*estate));
    REQUIRE(api->policy_new(NULL, &estate->policy) == MEMRT_OK);
    REQUIRE(api->scope_open(NULL, "estate", &estate->scope) == MEMRT_OK);
    for (size_t place = 0; place < PLACES; place++) {
        fill_place(estate, place);
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

static void give_up(estate_t *estate)
{
    free_buffers(estate);
    api->policy_release(estate->policy);
    api->scope_release(estate->scope);
}

/// The figures of the process, of both policies and of the scope.
#define LEVELS 4

static void read_levels(const estate_t *estate, memrt_stats_t *out)
{
    out[0] = figures(NULL);
    out[1] = figures(api->policy_default());
    out[2] = figures(estate->policy);
    out[3] = figures_in(estate->scope);
}

/// Run `act` in a child forked here and now.
static void in_child(void (*act)(void *), void *context)
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
        REQUIRE(now[i].inherited_blocks == blocks(now[i]));
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
        fill_place(&mine, place);
    }
    read_levels(estate, both);
    free_buffers(estate);
    read_levels(estate, after);
    for (size_t i = 0; i < LEVELS; i++) {
        REQUIRE(both[i].inherited == before[i].live && both[i].live == 2 * before[i].live);
        REQUIRE(both[i].inherited_blocks == blocks(before[i]));
        REQUIRE(after[i].inherited == 0 && after[i].inherited_blocks == 0);
        REQUIRE(after[i].live == before[i].live && blocks(after[i]) == blocks(before[i]));
        REQUIRE(after[i].alloc == both[i].alloc && after[i].total == 2 * before[i].total);
        REQUIRE(after[i].reserved - after[i].cached == before[i].reserved - before[i].cached);
    }
    free_buffers(&mine);
    REQUIRE(figures(NULL).live == 0 && figures_in(estate->scope).live == 0);
}

TEST(a_child_tells_what_it_inherited_from_its_own_on_every_account)
{
    estate_t estate;
    fill(&estate);
    in_child(use_and_free_all, &estate);
    ck_assert_uint_eq(figures(NULL).inherited, 0);
    give_up(&estate);
}

/// Whether the buffer that tracking knows of a MemInfo counts as inherited.
static bool is_inherited(const memrt_meminfo_t *mi)
{
    memrt_buffer_t row;
    REQUIRE(api->buffer_read(mi, sizeof(row), &row) == MEMRT_OK);
    REQUIRE(row.live.meminfo == (uintptr_t)mi);
    return row.inherited != 0;
}

static void list_both(void *context)
{
    estate_t *estate = context, mine;
    memset(&mine, 0, sizeof(mine));
    fill(&mine);
    for (size_t place = 0; place < PLACES; place++) {
        for (size_t kind = 0; kind < KINDS; kind++) {
            memrt_meminfo_t *theirs = estate->mis[place][kind], *own = mine.mis[place][kind];
            /* Those that were not listed before the fork are from here on, by their names. */
            REQUIRE(api->set_name(theirs, "theirs") == MEMRT_OK && is_inherited(theirs));
            REQUIRE(api->set_name(own, "own") == MEMRT_OK && !is_inherited(own));
        }
        REQUIRE(api->resizable_realloc(estate->mis[place][3], 70000) != NULL);
        REQUIRE(is_inherited(estate->mis[place][3]));
    }
    give_up(&mine);
}

TEST(a_child_that_lists_buffers_tells_those_that_it_inherited)
{
    estate_t tracked, untracked;
    int was = api->tracking(1);
    fill(&tracked);
    ck_assert(!is_inherited(tracked.mis[0][0]));
    in_child(list_both, &tracked);
    api->tracking(0);
    fill(&untracked);
    in_child(list_both, &untracked);
    api->tracking(was);
    give_up(&tracked);
    give_up(&untracked);
}

static void know_policies(void *context)
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

TEST(policies_and_scopes_of_inherited_buffers_are_known_by_what_they_were_known)
{
    estate_t estate;
    fill(&estate);
    in_child(know_policies, &estate);
    give_up(&estate);
}

static void keep_an_index(void *context)
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

TEST(an_index_is_its_policys_also_when_nothing_inherited_is_left)
{
    estate_t estate;
    fill(&estate);
    in_child(keep_an_index, &estate);
    give_up(&estate);
}

static void resize_all(void *context)
{
    estate_t *estate = context;
    uint64_t live = figures(NULL).live;
    for (size_t place = 0; place < PLACES; place++) {
        REQUIRE(api->scope_enter(place % 2 == 0 ? estate->scope : NULL, NULL) == MEMRT_OK);
        void **data = estate->blocks[place];
        data[0] = api->block_realloc(NULL, data[0], 20);
        data[0] = api->block_realloc(NULL, data[0], 1007);
        data[1] = api->block_realloc(NULL, data[1], 2000000);
        REQUIRE(data[0] != NULL && data[1] != NULL);
        REQUIRE(api->resizable_realloc(estate->mis[place][3], 1500) != NULL);
        live += 1000 + 1998000 + 1000;
        memrt_stats_t now = figures(NULL);
        REQUIRE(now.live == live && now.inherited == live);
    }
    expect_all_inherited(estate);
    REQUIRE(api->scope_enter(NULL, NULL) == MEMRT_OK);
    give_up(estate);
    REQUIRE(figures(NULL).live == 0 && figures(NULL).inherited_blocks == 0);
}

TEST(an_inherited_buffer_that_is_resized_stays_inherited)
{
    estate_t estate;
    fill(&estate);
    in_child(resize_all, &estate);
    give_up(&estate);
}

/// Blocks of all kinds that the thread takes the shortest way to.
typedef struct trio {
    memrt_meminfo_t *mi;
    void *block, *tiny;
} trio_t;

#define TRIO (2 * 640 + 8)

static trio_t make_trio(void)
{
    trio_t made = {api->allocate(640), api->block_alloc(NULL, 640), api->block_alloc(NULL, 8)};
    REQUIRE(made.mi != NULL && made.block != NULL && made.tiny != NULL);
    return made;
}

static void give_trio(trio_t trio)
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

static memrt_stats_t figures_of(const way_t *way)
{
    return way->scope == NULL ? figures(NULL) : figures_in(way->scope);
}

/// What goes first leaves room below the peak, where nobody needs to be told of what comes.
static void make_own(void *context)
{
    way_t *way = context;
    trio_t made[TRIOS];
    give_trio(way->inherited);
    for (size_t i = 0; i < TRIOS; i++) {
        made[i] = make_trio();
        memrt_stats_t now = figures_of(way);
        REQUIRE(now.inherited == 0 && now.live == (i + 1) * TRIO);
    }
    for (size_t i = 0; i < TRIOS; i++) {
        give_trio(made[i]);
    }
    REQUIRE(figures_of(way).live == 0 && figures_of(way).inherited == 0);
}

TEST_EACH(what_a_thread_makes_after_a_fork_on_its_shortest_ways_is_the_childs_own, 2)
{
    way_t way;
    memrt_scope_t *scope;
    ck_assert_int_eq(api->scope_open(NULL, "forked in", &scope), MEMRT_OK);
    ck_assert_int_eq(api->scope_enter(scope, NULL), MEMRT_OK);
    if (index == 1) { /* once a scope was entered, the ways outside are those of scopes, too */
        ck_assert_int_eq(api->scope_enter(NULL, NULL), MEMRT_OK);
    }
    way.scope = index == 0 ? scope : NULL;
    way.inherited = make_trio();
    for (size_t i = 0; i < TRIOS; i++) {
        give_trio(make_trio());
    }
    in_child(make_own, &way);
    give_trio(way.inherited);
    ck_assert_int_eq(api->scope_enter(NULL, NULL), MEMRT_OK);
    api->scope_release(scope);
}

static void be_grandchild(void *context)
{
    expect_all_inherited(context);
    memrt_stats_t before = figures(NULL);
    give_up(context);
    memrt_stats_t after = figures(NULL);
    REQUIRE(after.live < before.live && after.inherited == after.live);
}

static void have_a_child(void *context)
{
    estate_t more = *(estate_t *)context;
    for (size_t place = 0; place < PLACES; place++) {
        fill_place(&more, place);
    }
    uint64_t live = figures(NULL).live;
    in_child(be_grandchild, context);
    REQUIRE(figures(NULL).live == live && figures(NULL).inherited == live / 2);
    free_buffers(&more);
    REQUIRE(own(figures(NULL)) == 0);
}

TEST(a_grandchild_inherits_what_its_parent_made_and_inherited)
{
    estate_t estate;
    fill(&estate);
    in_child(have_a_child, &estate);
    give_up(&estate);
}

#define GENERATIONS 12

typedef struct line {
    int generation;
    void *blocks[GENERATIONS];
} line_t;

static void be_generation(void *context)
{
    line_t *line = context;
    uint64_t made = 100 * (uint64_t)line->generation;
    REQUIRE(figures(NULL).inherited == made && own(figures(NULL)) == 0);
    if (line->generation == GENERATIONS) {
        while (line->generation-- > 0) {
            api->block_free(NULL, line->blocks[line->generation], 0);
        }
        memrt_policy_t *policy;
        REQUIRE(figures(NULL).inherited == 0);
        REQUIRE(api->policy_new(NULL, &policy) == MEMRT_OK);
        REQUIRE(api->policy_index(policy) <= 2); /* stand-ins without blocks are gone */
        api->policy_release(policy);
        return;
    }
    line->blocks[line->generation++] = api->block_alloc(NULL, 100);
    in_child(be_generation, line);
}

TEST(a_long_line_of_children_inherits_from_all_before)
{
    line_t line = {0};
    be_generation(&line);
    api->block_free(NULL, line.blocks[0], 0);
}

static void be_mixed(void *context)
{
    estate_t *estate = context;
    memrt_stats_t now = figures(NULL);
    REQUIRE(now.inherited == 0 && now.inherited_error == now.live && now.live > 0);
    kernel_obey();
    REQUIRE(api->fail_allocations(NULL) == MEMRT_OK);
    void *more = api->block_alloc(NULL, 12345);
    REQUIRE(figures(NULL).live == now.live + 12345);
    REQUIRE(figures(NULL).inherited_error == now.live + 12345);
    in_child(be_grandchild, estate); /* has memory to tell */
    api->block_free(NULL, more, 0);
    give_up(estate);
    REQUIRE(figures(NULL).inherited_error == 0 && figures(NULL).live == 0);
}

TEST_EACH(a_child_without_memory_to_tell_what_it_inherited_says_so, 2)
{
    estate_t estate;
    fill(&estate);
    memrt_failure_plan_t plan = {.struct_size = sizeof(plan), .nth = 1, .every = 1};
    if (index == 0) {
        kernel_refuse(KERNEL_MAP, 0, SIZE_MAX);
    } else {
        ck_assert_int_eq(api->fail_allocations(&plan), MEMRT_OK);
    }
    in_child(be_mixed, &estate);
    kernel_obey();
    ck_assert_int_eq(api->fail_allocations(NULL), MEMRT_OK);
    give_up(&estate);
}

static void list_without_a_stand_in(void *context)
{
    estate_t *estate = context;
    REQUIRE(api->fail_allocations(NULL) == MEMRT_OK);
    REQUIRE(figures(NULL).inherited_error != 0);
    REQUIRE(is_inherited(estate->mis[0][0]));
    memrt_meminfo_t *own = api->allocate(100);
    REQUIRE(!is_inherited(own));
    api->release(own);
}

TEST(a_buffer_that_was_listed_is_known_as_inherited_also_where_its_account_is_not)
{
    estate_t estate;
    memrt_failure_plan_t plan = {.struct_size = sizeof(plan), .nth = 1, .every = 1};
    int was = api->tracking(1);
    fill(&estate);
    ck_assert_int_eq(api->fail_allocations(&plan), MEMRT_OK);
    in_child(list_without_a_stand_in, &estate);
    ck_assert_int_eq(api->fail_allocations(NULL), MEMRT_OK);
    api->tracking(was);
    give_up(&estate);
}

static void be_mixed_in_part(void *context)
{
    memrt_stats_t now = figures(NULL);
    (void)context;
    REQUIRE(now.inherited > 0 && now.inherited_error > 0);
    REQUIRE(now.inherited + now.inherited_error == now.live);
    api->block_free(NULL, api->block_alloc(NULL, 100), 0);
    REQUIRE(figures(NULL).live == now.live);
}

TEST(a_child_with_too_few_indices_tells_as_far_as_they_go)
{
    enum { LEFT = 2 };
    static memrt_policy_t *policies[5000];
    size_t count = 0;
    estate_t estate;
    fill(&estate);
    while (api->policy_new(NULL, &policies[count]) == MEMRT_OK) {
        count++;
    }
    for (int i = 0; i < LEFT; i++) {
        api->policy_release(policies[--count]);
    }
    in_child(be_mixed_in_part, NULL);
    while (count-- > 0) {
        api->policy_release(policies[count]);
    }
    give_up(&estate);
}

/* --- While other threads are in the middle of counting. --- */

#define WORKERS 3
#define FORKS 25

typedef struct scene {
    estate_t estate;
    size_t working; ///< relaxed adds; workers inside their loop
    size_t stop;    ///< release store when all is done
} scene_t;

static void come_and_go(scene_t *scene, size_t index)
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
        REQUIRE(own(now[i]) == 0);
    }
    estate_t mine = scene->estate;
    for (size_t place = 0; place < PLACES; place++) {
        fill_place(&mine, place);
    }
    come_and_go(scene, 0);
    read_levels(&mine, now);
    free_buffers(&scene->estate);
    REQUIRE(own(now[0]) == PLACES * (1000 + 3000000 + 500 + 50000 + 7 + 2000));
    for (size_t i = 1; i < LEVELS; i++) {
        REQUIRE(own(now[i]) == own(now[0]) / 2);
    }
    REQUIRE(own(figures(NULL)) == own(now[0]));
    free_buffers(&mine);
    api->release_unused();
    REQUIRE(own(figures(NULL)) == 0 && own(figures_in(mine.scope)) == 0);
}

static void expect_peak_told_anew(void *context)
{
    (void)context;
    api->stats_reset_peak(NULL);
    memrt_stats_t now = figures(NULL);
    REQUIRE(now.peak == now.live && now.peak_error == 0);
    api->block_free(NULL, api->block_alloc(NULL, 3000000), 0);
    REQUIRE(figures(NULL).peak == now.live + 3000000 && figures(NULL).peak_error == 0);
}

static void fork_or_work(size_t index, void *context)
{
    scene_t *scene = context;
    if (index < WORKERS) {
        REQUIRE(api->scope_enter(index == 1 ? scene->estate.scope : NULL, NULL) == MEMRT_OK);
        memrt__fetch_add_relaxed(&scene->working, 1);
        while (memrt__load_acquire(&scene->stop) == 0) {
            come_and_go(scene, index);
        }
        REQUIRE(api->scope_enter(NULL, NULL) == MEMRT_OK);
        return;
    }
    while (memrt__load_relaxed(&scene->working) < WORKERS) {
    }
    for (int i = 0; i < FORKS; i++) {
        in_child(expect_own_exact, scene);
        in_child(expect_peak_told_anew, scene);
    }
    memrt__store_release(&scene->stop, 1);
}

/* AddressSanitizer's allocator leaves its own locks held in a child that was forked while other
   threads were inside it. */
#define WAYS (SUITE_ADDRESS_SANITIZER ? 0 : 1)

TEST_EACH(own_figures_of_a_child_are_exact_whatever_threads_of_its_parent_were_counting, WAYS)
{
    scene_t scene = {0};
    fill(&scene.estate);
    crew_run(WORKERS + 1, fork_or_work, &scene);
    give_up(&scene.estate);
}
