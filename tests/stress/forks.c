/// Forks and exits of a process while sixteen threads use all parts of the API. Each child uses and
/// frees the buffers that it inherited. The parent must not see any effect of a child.
///
/// The environment variables STRESS_FORKS and STRESS_SEED set the number of forks and the seed.

#include "support/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/atomics.h"
#include "support/chance.h"
#include "support/child.h"
#include "support/crew.h"
#include "support/words.h"

#define WORKERS 16
#define FORKS 20
#define INHERITED 24
#define WORDS 700
#define WORDS_LARGE 300000

static struct scene {
    memrt_meminfo_t *mis[INHERITED]; ///< of three kinds
    size_t *blocks[INHERITED];
    size_t working; ///< relaxed adds; workers inside their loop
    size_t stop;    ///< release store when all is done
    unsigned seed;
} scene;

/// Return the statistics. For threads and children, where Check may hold a lock of its own.
static memrt_stats_t stats_now(void)
{
    memrt_stats_t stats = {.struct_size = sizeof(stats)};
    REQUIRE(api->stats_read(NULL, &stats) == MEMRT_OK);
    return stats;
}

/* --- Work of the threads at the time of a fork. --- */

static void use_blocks(chance_t *chance)
{
    size_t *block = api->block_alloc(NULL, 1 + chance_below(chance, 500));
    block = api->block_realloc(NULL, block, sizeof(size_t) * (3 + chance_below(chance, WORDS)));
    REQUIRE(block != NULL);
    api->block_free(NULL, block, 0);
}

static void use_large(chance_t *chance)
{
    void *block = api->block_calloc(NULL, 1, ((size_t)1 << 20) + chance_below(chance, 1 << 20));
    REQUIRE(block != NULL);
    api->block_free(NULL, block, 0);
}

static void use_names(chance_t *chance)
{
    memrt_meminfo_t *mi = api->allocate(chance_below(chance, 2000)), *found;
    REQUIRE(mi != NULL && api->set_name(mi, "busy") == MEMRT_OK);
    REQUIRE(api->find(api->get_data(mi), &found) == MEMRT_OK && found == mi);
    api->release(found);
    api->release(mi);
}

static void use_resizable(chance_t *chance)
{
    memrt_meminfo_t *mi;
    REQUIRE(api->resizable_new(chance_below(chance, 100), NULL, &mi) == MEMRT_OK);
    REQUIRE(api->resizable_realloc(mi, chance_below(chance, 90000)) != NULL);
    api->release(mi);
}

static void use_policies(chance_t *chance)
{
    memrt_policy_options_t options = {.struct_size = sizeof(options),
                                      .decay = chance_below(chance, 2) == 0 ? "0" : NULL};
    memrt_policy_t *policy;
    REQUIRE(api->policy_new(&options, &policy) == MEMRT_OK);
    api->block_free(policy, api->block_alloc(policy, chance_below(chance, 3000000)), 0);
    api->policy_release(policy);
}

static void use_process(chance_t *chance)
{
    (void)chance;
    memrt_live_t *list;
    size_t count;
    REQUIRE(stats_now().alloc > 0);
    REQUIRE(api->live(&list, &count) == MEMRT_OK);
    api->live_free(list);
    REQUIRE(api->option_set("cache_limit", "none", NULL, 0) == MEMRT_OK);
    api->release_unused();
}

static void use_something(chance_t *chance)
{
    static void (*const uses[])(chance_t *) = {use_blocks,   use_blocks, use_blocks,
                                               use_large,    use_names,  use_resizable,
                                               use_policies, use_process};
    uses[chance_below(chance, sizeof(uses) / sizeof(uses[0]))](chance);
}

static void work(size_t index)
{
    chance_t chance = chance_from(((uint64_t)scene.seed << 8) + index);
    memrt__fetch_add_relaxed(&scene.working, 1);
    while (memrt__load_acquire(&scene.stop) == 0) {
        use_something(&chance);
    }
}

static void wait_for_workers(void)
{
    while (memrt__load_relaxed(&scene.working) < WORKERS) {
    }
}

/* --- Buffers that a child inherits. --- */

static memrt_meminfo_t *make_meminfo(size_t index)
{
    memrt_meminfo_t *mi;
    size_t words = index % 8 == 0 ? WORDS_LARGE : WORDS, size = words * sizeof(size_t);
    memrt_new_options_t options = {.struct_size = sizeof(options),
                                   .name = index % 3 == 0 ? "inherited" : NULL};
    if (index % 2 == 0) {
        REQUIRE(api->meminfo_new(size, &options, &mi) == MEMRT_OK);
    } else {
        REQUIRE(api->resizable_new(size, &options, &mi) == MEMRT_OK);
    }
    words_fill(api->get_data(mi), words, index);
    return mi;
}

static void make_inheritance(void)
{
    memset(&scene, 0, sizeof(scene));
    scene.seed = suite_number("STRESS_SEED", 1);
    for (size_t i = 0; i < INHERITED; i++) {
        scene.mis[i] = make_meminfo(i);
        scene.blocks[i] = api->block_alloc(NULL, (WORDS_MIN + i * 20) * sizeof(size_t));
        REQUIRE(scene.blocks[i] != NULL);
        words_fill(scene.blocks[i], WORDS_MIN + i * 20, i);
    }
}

static void verify(const size_t *words, size_t serial)
{
    REQUIRE(words[1] == serial && words_hold(words, words[0]));
}

static void verify_inheritance(void)
{
    for (size_t i = 0; i < INHERITED; i++) {
        verify(api->get_data(scene.mis[i]), i);
        verify(scene.blocks[i], i);
    }
}

static void free_inheritance(void)
{
    for (size_t i = 0; i < INHERITED; i++) {
        api->release(scene.mis[i]);
        api->block_free(NULL, scene.blocks[i], 0);
    }
}

/// Resize the resizable buffers and every second block. The calls use structures that the parent's
/// threads may have been changing.
static void resize_inheritance(void)
{
    for (size_t i = 1; i < INHERITED; i += 2) {
        REQUIRE(api->resizable_realloc(scene.mis[i], 2 * WORDS * sizeof(size_t)) != NULL);
        verify(api->get_data(scene.mis[i]), i);
        scene.blocks[i] = api->block_realloc(NULL, scene.blocks[i], 100000);
        REQUIRE(scene.blocks[i] != NULL);
        verify(scene.blocks[i], i);
    }
}

/* --- Children. --- */

/// Check the child's statistics: all live bytes are inherited, with an error of 0. The figures are
/// exact at any point where the fork interrupted the parent's threads.
static void expect_no_more_than_inherited(void)
{
    memrt_stats_t now = stats_now();
    REQUIRE(now.live == now.inherited && now.inherited_error == 0);
}

static void run_child(unsigned number, bool has_a_child)
{
    chance_t chance = chance_from(number);
    uint64_t live = stats_now().live;
    child_start_watchdog(); /* ends a child that waits for a held lock */
    expect_no_more_than_inherited();
    verify_inheritance();
    for (int i = 0; i < 50; i++) {
        use_something(&chance);
    }
    REQUIRE(stats_now().live == live);
    expect_no_more_than_inherited();
    if (has_a_child) {
        pid_t grandchild = fork();
        if (grandchild == 0) {
            run_child(number + 1, false);
            _exit(3);
        }
        REQUIRE(child_wait(grandchild) == 3);
    }
    resize_inheritance();
    free_inheritance();
    expect_no_more_than_inherited();
}

static void fork_repeatedly(void)
{
    unsigned forks = suite_number("STRESS_FORKS", FORKS);
    wait_for_workers();
    for (unsigned i = 0; i < forks; i++) {
        int code = (int)(i % 100);
        pid_t child = fork();
        if (child == 0) {
            run_child(i, i % 8 == 0);
            _exit(code);
        }
        REQUIRE(child_wait(child) == code);
    }
    memrt__store_release(&scene.stop, 1);
}

static void fork_or_work(size_t index, void *context)
{
    (void)context;
    if (index == WORKERS) {
        fork_repeatedly();
    } else {
        work(index);
    }
}

/* AddressSanitizer's allocator leaves its own locks held in a child that was forked while other
 * threads were inside the allocator. */
#define WAYS (SUITE_ADDRESS_SANITIZER ? 0 : 2)

TEST_EACH(forked_children_use_and_free_inherited_buffers, WAYS)
{
    int was = api->tracking(index);
    make_inheritance();
    memrt_stats_t before = stats_now();
    printf("STRESS_SEED=%u STRESS_FORKS=%u repeats this\n", scene.seed,
           suite_number("STRESS_FORKS", FORKS));
    fflush(stdout);
    crew_run(WORKERS + 1, fork_or_work, NULL);
    ck_assert_uint_eq(stats_now().live, before.live);
    verify_inheritance();
    free_inheritance();
    api->tracking(was);
}

/* --- Processes that end. --- */

typedef struct ending {
    void (*end)(int code);
    int code;
} ending_t;

static void end_or_work(size_t index, void *context)
{
    const ending_t *ending = context;
    if (index == WORKERS) {
        wait_for_workers();
        ending->end(ending->code);
    } else {
        work(index);
    }
}

static void allocate_late(void)
{
    chance_t chance = chance_from(1);
    use_something(&chance);
    verify_inheritance();
}

static int code_of(ending_t ending)
{
    pid_t child = fork();
    if (child == 0) {
        child_start_watchdog();
        freopen("/dev/null", "w", stdout); /* the parent prints the buffered text */
        REQUIRE(atexit(allocate_late) == 0);
        crew_run(WORKERS + 1, end_or_work, &ending);
    }
    return child_wait(child);
}

/* LeakSanitizer would stop the threads at work and inspect their incomplete changes. */
#define ENDINGS (SUITE_ADDRESS_SANITIZER ? 1 : 2)

TEST_EACH(process_exits_with_its_code_while_16_threads_work, ENDINGS)
{
    make_inheritance();
    if (!SUITE_THREAD_SANITIZER) { /* does not follow threads into a child */
        ending_t ending = {index == 0 ? _exit : exit, 7 + index};
        ck_assert_int_eq(code_of(ending), ending.code);
    }
    free_inheritance();
}
