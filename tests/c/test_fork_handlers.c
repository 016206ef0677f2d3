/// Tests with fork handlers of other libraries. The handlers allocate, free, and wait for a thread
/// that allocates. A handler registered before memrt's own handlers runs while a fork holds memrt's
/// locks.

#include "support/suite.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/alloc/heap/span.h"
#include "runtime/base/atomics.h"
#include "runtime/config/options.h"
#include "runtime/os/os.h"
#include "support/books.h"
#include "support/chance.h"
#include "support/child.h"
#include "support/crew.h"

enum { PREPARE, PARENT, CHILD, PHASES };
enum { EARLIER, LATER, ORDERS };
enum { BLOCKS = 200, KEPT = 60 };

/// Work to do, with the handler and phase for the work.
static struct plan {
    int order, phase;
    void (*work)(void);
    size_t worked;
} plan;

static void work_in_phase(int order, int phase)
{
    if (plan.work != NULL && plan.order == order && plan.phase == phase) {
        plan.worked++;
        plan.work();
    }
}

static void earlier_prepare(void)
{
    work_in_phase(EARLIER, PREPARE);
}
static void earlier_parent(void)
{
    work_in_phase(EARLIER, PARENT);
}
static void earlier_child(void)
{
    work_in_phase(EARLIER, CHILD);
}
static void later_prepare(void)
{
    work_in_phase(LATER, PREPARE);
}
static void later_parent(void)
{
    work_in_phase(LATER, PARENT);
}
static void later_child(void)
{
    work_in_phase(LATER, CHILD);
}

/// Register before main, so before memrt.
__attribute__((constructor)) static void register_earlier(void)
{
    REQUIRE(pthread_atfork(earlier_prepare, earlier_parent, earlier_child) == 0);
}

/// Register after memrt. Registers once, also when all tests run in one process.
static void register_later(void)
{
    static bool registered;
    if (!registered) {
        registered = true;
        REQUIRE(pthread_atfork(later_prepare, later_parent, later_child) == 0);
    }
}

static memrt_stats_t read_stats(void)
{
    memrt_stats_t stats = {.struct_size = sizeof(stats)};
    REQUIRE(api->stats_read(NULL, &stats) == MEMRT_OK);
    return stats;
}

/* --- Work of the handlers. --- */

/// Return a tiny, small, medium or large size.
static size_t choose_size(size_t i)
{
    static const size_t sizes[] = {10, 48, 100, 700, 3000, 20000, 90000, 400000};
    return i % 50 == 49 ? ((size_t)1 << 20) + i * 1000 : sizes[i % 8];
}

static void *make_block(size_t i)
{
    void *data = i % 3 == 0 ? api->block_calloc(NULL, 1, choose_size(i))
                            : api->block_alloc(NULL, choose_size(i));
    REQUIRE(data != NULL && (i % 3 != 0 || *(char *)data == 0));
    memset(data, (int)(i & 0xff), choose_size(i));
    return data;
}

static void free_made_block(size_t i, void *data)
{
    const unsigned char *bytes = data;
    REQUIRE(bytes[0] == (i & 0xff) && bytes[choose_size(i) - 1] == (i & 0xff));
    api->block_free(NULL, data, 0);
}

static void *kept[KEPT];  /* allocated before the fork, freed in the handler */
static void *given[KEPT]; /* allocated in the handler, freed after the fork */

static void make_and_free_blocks(void)
{
    static _Thread_local void *blocks[BLOCKS];
    for (size_t i = 0; i < BLOCKS; i++) {
        blocks[i] = make_block(i);
    }
    for (size_t i = 0; i < BLOCKS; i++) {
        free_made_block(i, blocks[i]);
    }
    void *grown = api->block_alloc(NULL, 10);
    for (size_t size = 20; size < 3000000; size *= 3) {
        grown = api->block_realloc(NULL, grown, size);
        REQUIRE(grown != NULL);
    }
    api->block_free(NULL, grown, 0);
}

static void use_meminfos(void)
{
    memrt_meminfo_t *mi, *found;
    for (size_t i = 0; i < 20; i++) {
        memrt_new_options_t options = {.struct_size = sizeof(options), .name = "in a handler"};
        REQUIRE(api->meminfo_new(choose_size(i), &options, &mi) == MEMRT_OK);
        REQUIRE(api->find(api->get_data(mi), &found) == MEMRT_OK && found == mi);
        api->release(found);
        api->release(mi);
    }
}

static void run_work(void)
{
    make_and_free_blocks();
    use_meminfos();
    for (size_t i = 0; i < KEPT; i++) {
        given[i] = make_block(i);
        free_made_block(i, kept[i]);
    }
}

static void *work_on_thread(void *context)
{
    run_work();
    return context;
}

static void run_on_new_thread(void *(*act)(void *))
{
    pthread_t thread;
    REQUIRE(pthread_create(&thread, NULL, act, NULL) == 0);
    REQUIRE(pthread_join(thread, NULL) == 0);
}

static void wait_for_new_thread(void)
{
    run_on_new_thread(work_on_thread);
}

/* Thread with a record and cached blocks, because the thread has allocated before. */
static pthread_barrier_t turn;

static void *work_in_turn(void *context)
{
    make_and_free_blocks();
    pthread_barrier_wait(&turn); /* ready */
    pthread_barrier_wait(&turn); /* the fork's handler, or the end of the test */
    if (plan.worked != 0) {
        run_work();
        pthread_barrier_wait(&turn);
    }
    return context;
}

static void wait_for_old_thread(void)
{
    pthread_barrier_wait(&turn);
    pthread_barrier_wait(&turn);
}

/* --- Forks. --- */

static void check_child(memrt_stats_t before)
{
    bool worked = plan.worked != 0;
    for (size_t i = 0; i < KEPT; i++) {
        free_made_block(i, worked ? given[i] : kept[i]);
    }
    REQUIRE(read_stats().live + before.inherited == before.live);
    make_and_free_blocks();
    use_meminfos();
    REQUIRE(read_stats().live + before.inherited == before.live);
    _exit(0);
}

static void fork_once(void)
{
    memrt_stats_t before = read_stats(); /* excludes the blocks in `kept` */
    for (size_t i = 0; i < KEPT; i++) {
        kept[i] = make_block(i);
    }
    pid_t child = fork();
    if (child == 0) {
        child_start_watchdog();
        check_child(before);
    }
    bool worked = plan.worked != 0;
    ck_assert_int_eq(child_wait(child), 0);
    for (size_t i = 0; i < KEPT; i++) {
        free_made_block(i, worked ? given[i] : kept[i]);
    }
    make_and_free_blocks();
    ck_assert_uint_eq(worked, plan.phase != CHILD);
    ck_assert_uint_eq(read_stats().live, before.live);
    ck_assert_uint_eq(read_stats().alloc - read_stats().free, before.alloc - before.free);
}

/// Fork three times, so that a fork meets the state left by earlier handlers.
static void fork_with(int index, void (*handler)(void))
{
    if (index % ORDERS == LATER) {
        register_later();
    }
    if (SUITE_THREAD_SANITIZER) { /* does not follow a purger that a handler starts */
        suite_set_decay(MEMRT__DECAY_NEVER);
    }
    make_and_free_blocks();
    for (int i = 0; i < 3; i++) {
        plan = (struct plan){
            .order = index % ORDERS, .phase = index / ORDERS % PHASES, .work = handler};
        fork_once();
    }
    plan.work = NULL;
}

#define COMBINATIONS (ORDERS * PHASES)

/* ThreadSanitizer does not follow threads of children. AddressSanitizer leaves locks held in
 * children. */
#define WITH_THREADS (SUITE_THREAD_SANITIZER || SUITE_ADDRESS_SANITIZER ? 0 : COMBINATIONS)

TEST_EACH(fork_handler_of_other_library_may_allocate_and_free, COMBINATIONS)
{
    fork_with(index, run_work);
}

TEST_EACH(fork_handler_may_allocate_while_tracking_is_on, COMBINATIONS)
{
    int was = api->tracking(1);
    fork_with(index, run_work);
    api->tracking(was);
}

TEST_EACH(fork_handler_may_wait_for_new_thread_that_allocates, WITH_THREADS)
{
    fork_with(index, wait_for_new_thread);
}

/// A thread whose large block has its own pages, and whose small blocks come from few spans.
static void *use_pages_on_thread(void *context)
{
    enum { FEW = 100 };
    size_t large = (size_t)3 << 20, page = memrt__os_page_size(), spans = 1;
    void *block = api->block_alloc(NULL, large), *small[FEW];
    REQUIRE(block != NULL);
    void *inner = (void *)(((uintptr_t)block + page) / page * page);
    unsigned char resident;
    REQUIRE(mincore(inner, page, &resident) == 0);
    for (size_t i = 0; i < FEW; i++) {
        small[i] = api->block_alloc(NULL, 40);
        REQUIRE(small[i] != NULL);
        spans +=
            i != 0 && (uintptr_t)small[i] / MEMRT__UNIT != (uintptr_t)small[i - 1] / MEMRT__UNIT;
    }
    for (size_t i = 0; i < FEW; i++) {
        api->block_free(NULL, small[i], 40);
    }
    api->block_free(NULL, block, large);
    REQUIRE(mincore(inner, page, &resident) == -1 && errno == ENOMEM);
    REQUIRE(spans < FEW / 10 || !memrt__options.cache); /* without the cache, malloc serves */
    return context;
}

static void wait_for_pages(void)
{
    run_on_new_thread(use_pages_on_thread);
}

/* The guards keep freed blocks, or give each block its own pages. */
TEST_EACH(thread_uses_few_spans_and_unmaps_large_blocks_in_a_fork, WITH_THREADS == 0 ? 0 : 1)
{
    if (memrt__options.check || memrt__options.guard_sample != 0) {
        return;
    }
    plan = (struct plan){.order = EARLIER, .phase = PREPARE, .work = wait_for_pages};
    pid_t child = fork();
    if (child == 0) {
        _exit(0);
    }
    plan.work = NULL;
    ck_assert_int_eq(child_wait(child), 0);
    ck_assert_uint_eq(plan.worked, 1);
}

static pthread_t started;

static void *make_policy(void *context)
{
    memrt_policy_options_t options = {.struct_size = sizeof(options), .name = "made"};
    memrt_policy_t *policy;
    REQUIRE(api->policy_new(&options, &policy) == MEMRT_OK);
    api->policy_release(policy);
    return context;
}

static void start_thread(void)
{
    REQUIRE(pthread_create(&started, NULL, make_policy, NULL) == 0);
    usleep(20000); /* the thread waits for a lock, which the child gives back later */
}

TEST_EACH(thread_of_a_handler_gets_the_locks_after_the_fork, WITH_THREADS == 0 ? 0 : 1)
{
    plan = (struct plan){.order = EARLIER, .phase = CHILD, .work = start_thread};
    pid_t child = fork();
    if (child == 0) {
        child_start_watchdog();
        REQUIRE(plan.worked == 1 && pthread_join(started, NULL) == 0);
        _exit(0);
    }
    plan.work = NULL;
    ck_assert_int_eq(child_wait(child), 0);
}

TEST_EACH(fork_handler_may_wait_for_new_thread_while_tracking_is_on, WITH_THREADS)
{
    int was = api->tracking(1);
    fork_with(index, wait_for_new_thread);
    api->tracking(was);
}

TEST_EACH(fork_handler_may_wait_for_thread_with_cached_blocks, WITH_THREADS)
{
    if (index / ORDERS % PHASES == CHILD) {
        return; /* the child does not have that thread */
    }
    pthread_t thread;
    pthread_barrier_init(&turn, NULL, 2);
    if (index % ORDERS == LATER) {
        register_later();
    }
    plan = (struct plan){
        .order = index % ORDERS, .phase = index / ORDERS % PHASES, .work = wait_for_old_thread};
    ck_assert_int_eq(pthread_create(&thread, NULL, work_in_turn, NULL), 0);
    pthread_barrier_wait(&turn);
    fork_once();
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    plan.work = NULL;
    pthread_barrier_destroy(&turn);
}

/* --- Threads that go on while forks take long. --- */

enum { WORKERS = 6, SLOTS = 64, FORKS = 12, PROGRESS = 3000 };

static struct traffic {
    size_t slots[SLOTS]; ///< any thread, exchanged; blocks in transit, 0: none
    size_t progress;     ///< relaxed adds
    size_t stop;
} traffic;

static void *swap_slot(size_t *slot, void *data)
{
    size_t seen = memrt__load_acquire(slot);
    while (!memrt__cas_release(slot, seen, (size_t)data)) {
        seen = memrt__load_acquire(slot);
    }
    return (void *)seen;
}

static void *make_random_block(chance_t *chance)
{
    size_t size = 1 + chance_below(chance, chance_below(chance, 20) == 0 ? 2000000 : 5000);
    unsigned char *data = api->block_alloc(NULL, size);
    REQUIRE(data != NULL);
    data[0] = data[size - 1] = 0x5a;
    return data;
}

static void free_random_block(unsigned char *data)
{
    if (data != NULL) {
        REQUIRE(data[0] == 0x5a);
        api->block_free(NULL, data, 0);
    }
}

/// Exchange a block with a slot. Another thread frees the block.
static void exchange_block(chance_t *chance)
{
    size_t slot = chance_below(chance, SLOTS);
    if (chance_below(chance, 10) == 0) {
        memrt_meminfo_t *mi;
        memrt_new_options_t options = {.struct_size = sizeof(options), .name = "on its way"};
        REQUIRE(api->meminfo_new(chance_below(chance, 3000), &options, &mi) == MEMRT_OK);
        api->release(mi);
    } else {
        free_random_block(swap_slot(&traffic.slots[slot], make_random_block(chance)));
    }
    memrt__fetch_add_relaxed(&traffic.progress, 1);
}

static void wait_for_progress(void)
{
    size_t target = memrt__load_relaxed(&traffic.progress) + PROGRESS;
    chance_t chance = chance_from(target);
    while (memrt__load_relaxed(&traffic.progress) < target) {
        exchange_block(&chance);
        sched_yield();
    }
}

static void empty_slots(void)
{
    for (size_t i = 0; i < SLOTS; i++) {
        free_random_block(swap_slot(&traffic.slots[i], NULL));
    }
}

static void use_in_child(void)
{
    chance_t chance = chance_from(1);
    child_start_watchdog();
    for (int i = 0; i < 500; i++) {
        exchange_block(&chance);
    }
    make_and_free_blocks();
    use_meminfos();
    empty_slots();
    memrt_stats_t now = read_stats();
    REQUIRE(now.live == now.inherited && now.inherited_error == 0);
    api->release_unused();
    _exit(0);
}

static void fork_or_pass_on(size_t index, void *context)
{
    (void)context;
    chance_t chance = chance_from(index);
    while (index < WORKERS && memrt__load_acquire(&traffic.stop) == 0) {
        exchange_block(&chance);
    }
    for (int i = 0; index == WORKERS && i < FORKS; i++) {
        plan.phase = i % 2 == 0 ? PREPARE : PARENT;
        pid_t child = fork();
        if (child == 0) {
            use_in_child();
        }
        REQUIRE(child_wait(child) == 0);
    }
    memrt__store_release(&traffic.stop, 1);
}

TEST_EACH(threads_keep_allocating_while_fork_handlers_wait, WITH_THREADS == 0 ? 0 : 2)
{
    int was = api->tracking(index);
    memset(&traffic, 0, sizeof(traffic));
    memrt_stats_t before = read_stats();
    plan = (struct plan){.order = EARLIER, .work = wait_for_progress};
    crew_run(WORKERS + 1, fork_or_pass_on, NULL);
    plan.work = NULL;
    empty_slots();
    ck_assert_uint_eq(read_stats().live, before.live);
    ck_assert_uint_eq(read_stats().alloc - read_stats().free, before.alloc - before.free);
    api->tracking(was);
}
