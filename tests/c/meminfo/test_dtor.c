#include "support/suite.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "runtime/base/atomics.h"
#include "runtime/base/size.h"
#include "runtime/config/options.h"
#include "runtime/meminfo/references.h"
#include "support/books.h"
#include "support/child.h"

/// More links than any stack could nest. With sanitizers or checking each link takes long; a tenth
/// of the links also exceeds the stack.
#define LINKS                                                                                      \
    (SUITE_ADDRESS_SANITIZER || SUITE_THREAD_SANITIZER || memrt__options.check ? 100000 : 1000000)

/// Return the smallest stack that the C library accepts for a thread, but at least 32 KiB, or 1 MiB
/// under sanitizers. The minimum of the C library is 128 KiB on AArch64.
static size_t get_small_stack_size(void)
{
    bool sanitized = SUITE_ADDRESS_SANITIZER || SUITE_THREAD_SANITIZER;
    long least = sysconf(_SC_THREAD_STACK_MIN);
    return memrt__size_max((size_t)(sanitized ? 1024 : 32) << 10, least < 0 ? 0 : (size_t)least);
}

static void *run_work(void *context)
{
    void (*work)(void) = *(void (**)(void))context;
    work();
    return NULL;
}

static void run_on_small_stack(void (*work)(void))
{
    pthread_t thread;
    pthread_attr_t attributes;
    ck_assert_int_eq(pthread_attr_init(&attributes), 0);
    ck_assert_int_eq(pthread_attr_setstacksize(&attributes, get_small_stack_size()), 0);
    ck_assert_int_eq(pthread_create(&thread, &attributes, run_work, &work), 0);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    pthread_attr_destroy(&attributes);
}

static size_t ended; /* destructors that ran */

static void release_next(void *data, size_t size, void *next)
{
    (void)data;
    (void)size;
    ended++;
    if (next != NULL) {
        api->release(next);
    }
}

static memrt_meminfo_t *create_link(memrt_meminfo_t *next, memrt_external_allocator_t *external)
{
    memrt_new_options_t options = {.struct_size = sizeof(options),
                                   .dtor = release_next,
                                   .dtor_info = next,
                                   .external = external};
    memrt_meminfo_t *mi;
    REQUIRE(api->meminfo_new(16, &options, &mi) == MEMRT_OK);
    return mi;
}

static memrt_meminfo_t *create_chain(size_t links)
{
    memrt_meminfo_t *chain = NULL;
    for (size_t i = 0; i < links; i++) {
        chain = create_link(chain, NULL);
    }
    return chain;
}

static void release_a_long_chain(void)
{
    memrt_meminfo_t *chain = create_chain(LINKS);
    ended = 0;
    api->release(chain);
    REQUIRE(ended == LINKS);
}

TEST(long_destructor_chain_ends_on_small_stack)
{
    run_on_small_stack(release_a_long_chain);
}

static void count_down_by_hand(void *data, size_t size, void *next)
{
    (void)data;
    (void)size;
    ended++;
    if (next != NULL && memrt__fetch_sub1_release(&((memrt_meminfo_t *)next)->refct) == 1) {
        api->call_dtor(next);
    }
}

static memrt_meminfo_t *given;

static void release_argument(void)
{
    api->release(given);
}

TEST(long_destructor_chain_ends_on_thread_new_to_memrt)
{
    given = create_chain(LINKS);
    ended = 0;
    run_on_small_stack(release_argument);
    ck_assert_uint_eq(ended, LINKS);
}

static void release_as_compiled_code_does(void)
{
    memrt_meminfo_t *chain = create_chain(LINKS);
    for (memrt_meminfo_t *mi = chain; mi != NULL; mi = api->dtor_info(mi)) {
        mi->dtor = count_down_by_hand;
    }
    ended = 0;
    api->release(chain);
    REQUIRE(ended == LINKS);
}

TEST(long_destructor_chain_via_call_dtor_ends_on_small_stack)
{
    run_on_small_stack(release_as_compiled_code_does);
}

/// Destructor of many MemInfos. Some of the MemInfos head a long chain.
static void release_all(void *data, size_t size, void *info)
{
    (void)info;
    memrt_meminfo_t **children = data;
    ended++;
    for (size_t i = 0; i < size / sizeof(*children); i++) {
        api->release(children[i]);
    }
}

enum { CHILDREN = 100 };

static memrt_meminfo_t *create_tree(unsigned height)
{
    memrt_new_options_t options = {.struct_size = sizeof(options), .dtor = release_all};
    memrt_meminfo_t *mi;
    REQUIRE(api->meminfo_new(CHILDREN * sizeof(mi), &options, &mi) == MEMRT_OK);
    for (size_t i = 0; i < CHILDREN; i++) {
        ((memrt_meminfo_t **)api->get_data(mi))[i] =
            height == 0 || i % 10 != 0 ? create_chain(50) : create_tree(height - 1);
    }
    return mi;
}

static void release_a_tree(void)
{
    books_t before = books_now();
    memrt_meminfo_t *root = create_tree(2);
    size_t made = stats_of(NULL).mi_alloc - before.stats.mi_alloc;
    ended = 0;
    api->release(root);
    REQUIRE(ended == made);
    REQUIRE(stats_of(NULL).live == before.stats.live);
}

TEST(destructor_tree_ends_on_small_stack)
{
    run_on_small_stack(release_a_tree);
}

/* destructors that had run when a destructor began, and when its release returned */
static size_t seen[2];

static void record_order(void *data, size_t size, void *next)
{
    (void)data;
    (void)size;
    seen[0] = ended++;
    api->release(next);
    seen[1] = ended;
}

TEST(short_destructor_chain_ends_before_release_returns)
{
    ended = 0;
    memrt_new_options_t options = {
        .struct_size = sizeof(options), .dtor = record_order, .dtor_info = create_chain(5)};
    memrt_meminfo_t *mi;
    ck_assert_int_eq(api->meminfo_new(10, &options, &mi), MEMRT_OK);
    api->release(mi);
    ck_assert_uint_eq(seen[0], 0);
    ck_assert_uint_eq(seen[1], 6);
}

static void *plain_malloc(size_t size, void *opaque)
{
    (void)opaque;
    return malloc(size);
}

static void plain_free(void *data, void *opaque)
{
    (void)opaque;
    free(data);
}

static void release_external_chain(void)
{
    static memrt_external_allocator_t external = {plain_malloc, NULL, plain_free, NULL};
    memrt_meminfo_t *chain = NULL;
    for (size_t i = 0; i < LINKS; i++) {
        chain = create_link(chain, &external);
    }
    ended = 0;
    api->release(chain);
    REQUIRE(ended == LINKS);
}

TEST(long_chain_of_external_memory_ends_on_small_stack)
{
    run_on_small_stack(release_external_chain);
}

enum { DEEP = 100 };

static char foreign[DEEP];

/// Release the next MemInfo. The data must be the data of this MemInfo: one of the bytes of
/// `foreign`, or the bytes after the header.
static void check_data(void *data, size_t size, void *next)
{
    memrt_meminfo_t *mi = (memrt_meminfo_t *)((char *)data - MEMRT_HEADER_SIZE);
    if (size == 1) {
        REQUIRE(data == &foreign[DEEP - 1 - ended]);
    } else {
        REQUIRE(size == 16 && mi->data == data && mi->dtor_info == next);
    }
    release_next(data, size, next);
}

static memrt_meminfo_t *adopt_byte(size_t at, memrt_meminfo_t *next)
{
    memrt_new_options_t options = {
        .struct_size = sizeof(options), .dtor = check_data, .dtor_info = next};
    memrt_meminfo_t *mi;
    REQUIRE(api->meminfo_adopt(&foreign[at], 1, &options, &mi) == MEMRT_OK);
    return mi;
}

TEST_EACH(deferred_destructor_gets_data_of_its_meminfo, 3)
{
    static memrt_external_allocator_t external = {plain_malloc, NULL, plain_free, NULL};
    memrt_meminfo_t *chain = NULL;
    for (size_t i = 0; i < DEEP; i++) {
        chain =
            index == 2 ? adopt_byte(i, chain) : create_link(chain, index == 0 ? NULL : &external);
        chain->dtor = check_data;
    }
    ended = 0;
    api->release(chain);
    ck_assert_uint_eq(ended, DEEP);
}

TEST(chain_mixing_external_and_own_memory_is_fully_destroyed)
{
    static memrt_external_allocator_t external = {plain_malloc, NULL, plain_free, NULL};
    memrt_meminfo_t *chain = NULL;
    for (size_t i = 0; i < DEEP; i++) {
        chain = create_link(create_link(chain, &external), NULL);
    }
    ended = 0;
    api->release(chain);
    ck_assert_uint_eq(ended, 2 * DEEP);
}

static void exit_thread_in_dtor(void *data, size_t size, void *info)
{
    (void)data;
    (void)size;
    (void)info;
    pthread_exit(NULL);
}

/// MemInfos whose destructors do not return. The test frees them by hand.
static memrt_meminfo_t *unfinished[40];

static void *end_in_destructors(void *context)
{
    memrt_meminfo_t *chain = NULL;
    for (size_t i = 0; i < 40; i++) {
        chain = create_link(chain, NULL);
        unfinished[i] = chain;
    }
    unfinished[8]->dtor = exit_thread_in_dtor; /* the deepest nesting of destructors */
    api->release(chain);
    return context;
}

static void *release_one(void *context)
{
    (void)context;
    memrt_meminfo_t *mi = create_link(NULL, NULL);
    ended = 0;
    api->release(mi);
    REQUIRE(ended == 1);
    return NULL;
}

static void run_thread(void *(*work)(void *))
{
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, work, NULL), 0);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
}

TEST(thread_exit_in_destructor_does_not_affect_next_thread)
{
    run_thread(end_in_destructors);
    run_thread(release_one); /* reuses the record of the first thread */
    for (size_t i = 8; i < 40; i++) {
        unfinished[i]->dtor = NULL;
        memrt__dtor_call(unfinished[i]);
    }
    for (size_t i = 0; i < 8; i++) {
        unfinished[i]->dtor = NULL;
        api->release(unfinished[i]);
    }
}

/* --- Deferred destructors of a thread that has ended. --- */

enum { DEPTH = 32, WAITING = 5 }; /* DEPTH is the deepest nesting of destructors */

static memrt_meminfo_t *deep[DEPTH];       ///< their destructors do not return
static size_t waited, elsewhere;           ///< finished deferred destructors; on a wrong thread
static pthread_t expected;                 ///< thread that must run the destructors
static bool leave_again;                   ///< the first deferred destructor also ends its thread
static void (*at_the_bottom)(void) = NULL; ///< action of the deepest destructor

static void count_deferred(void *data, size_t size, void *info)
{
    (void)data;
    (void)size;
    (void)info;
    waited++;
    elsewhere += !pthread_equal(pthread_self(), expected);
    if (leave_again && waited == 1) {
        pthread_exit(NULL);
    }
}

static memrt_meminfo_t *lost_again; /* MemInfo whose deferred destructor did not return */

static void release_many_and(void *data, size_t size, void *info)
{
    (void)data;
    (void)size;
    (void)info;
    for (size_t i = 0; i < WAITING; i++) {
        memrt_meminfo_t *mi = create_link(NULL, NULL);
        mi->dtor = count_deferred;
        lost_again = mi; /* the destructor deferred last runs first */
        api->release(mi);
    }
    REQUIRE(waited == 0);
    at_the_bottom();
}

static void *descend_in_chain(void *context)
{
    memrt_meminfo_t *chain = NULL;
    for (size_t i = 0; i < DEPTH; i++) {
        chain = create_link(chain, NULL);
        deep[i] = chain;
    }
    deep[0]->dtor = release_many_and;
    expected = pthread_self();
    waited = elsewhere = 0;
    api->release(chain);
    return context;
}

static void free_by_hand(memrt_meminfo_t *mi)
{
    mi->dtor = NULL;
    memrt__dtor_call(mi);
}

static void free_deep(void)
{
    for (size_t i = 0; i < DEPTH; i++) {
        free_by_hand(deep[i]);
    }
}

static void exit_thread(void)
{
    pthread_exit(NULL);
}

TEST_EACH(deferred_destructors_run_on_their_exiting_thread, 2)
{
    at_the_bottom = exit_thread;
    leave_again = index != 0;
    run_thread(descend_in_chain);
    ck_assert_uint_eq(waited, WAITING);
    ck_assert_uint_eq(elsewhere, 0);
    free_deep();
    if (leave_again) {
        free_by_hand(lost_again);
    }
    leave_again = false;
    run_thread(release_one); /* reuses the record of the first thread */
    ck_assert_uint_eq(waited, WAITING);
}

static pthread_barrier_t bottom;

static void wait_at_bottom_twice(void)
{
    pthread_barrier_wait(&bottom);
    pthread_barrier_wait(&bottom);
}

static void *release_nothing(void *context)
{
    api->block_free(NULL, api->block_alloc(NULL, 10), 0);
    return context;
}

/// Check the parent's deferred destructors: they run with the next destructor, on the child's only
/// thread.
static void run_dtors_of_parent(void *context)
{
    pthread_t thread;
    (void)context;
    expected = pthread_self();
    REQUIRE(waited == 0);
    if (!SUITE_THREAD_SANITIZER) { /* does not follow threads of children */
        REQUIRE(pthread_create(&thread, NULL, release_nothing, NULL) == 0);
        pthread_join(thread, NULL);
    }
    REQUIRE(waited == 0);
    api->release(create_link(NULL, NULL));
    REQUIRE(waited == WAITING && elsewhere == 0);
    api->release(create_link(NULL, NULL));
    REQUIRE(waited == WAITING);
}

TEST(deferred_destructors_at_fork_run_once_in_child_and_parent)
{
    pthread_t thread;
    at_the_bottom = wait_at_bottom_twice;
    ck_assert_int_eq(pthread_barrier_init(&bottom, NULL, 2), 0);
    ck_assert_int_eq(pthread_create(&thread, NULL, descend_in_chain, NULL), 0);
    pthread_barrier_wait(&bottom);
    child_expect_success(run_dtors_of_parent, NULL);
    ck_assert_uint_eq(waited, 0);
    pthread_barrier_wait(&bottom);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert_uint_eq(waited, WAITING);
    ck_assert_uint_eq(elsewhere, 0);
    pthread_barrier_destroy(&bottom);
}

static pthread_barrier_t meeting;

static void wait_twice(void *data, size_t size, void *info)
{
    (void)data;
    (void)size;
    (void)info;
    pthread_barrier_wait(&meeting);
    pthread_barrier_wait(&meeting);
}

static void *release_to_wait(void *mi)
{
    api->release(mi);
    return NULL;
}

/// Call every function that takes a lock of memrt, and a few more.
static void use_all_calls(memrt_meminfo_t *named)
{
    memrt_live_t *list;
    size_t count;
    memrt_meminfo_t *found;
    memrt_policy_t *policy;
    ck_assert_int_eq(api->policy_new(NULL, &policy), MEMRT_OK);
    void *large = api->block_alloc(policy, 3000000);
    ck_assert_ptr_nonnull(large);
    api->block_free(NULL, large, 0);
    api->policy_release(policy);
    ck_assert_int_eq(api->set_name(named, "others"), MEMRT_OK);
    ck_assert_int_eq(api->find(api->get_data(named), &found), MEMRT_OK);
    api->release(found);
    ck_assert_int_eq(api->live(&list, &count), MEMRT_OK);
    api->live_free(list);
    ck_assert_uint_gt(stats_of(NULL).alloc, 0);
    api->release_unused();
}

TEST(blocked_destructor_does_not_block_other_threads)
{
    pthread_t thread;
    memrt_meminfo_t *named = api->allocate(10), *mi = create_link(NULL, NULL);
    mi->dtor = wait_twice;
    ck_assert_int_eq(pthread_barrier_init(&meeting, NULL, 2), 0);
    ck_assert_int_eq(pthread_create(&thread, NULL, release_to_wait, mi), 0);
    pthread_barrier_wait(&meeting); /* the thread is in its destructor */
    use_all_calls(named);
    release_a_long_chain();
    pthread_barrier_wait(&meeting);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    pthread_barrier_destroy(&meeting);
    api->release(named);
}

static memrt_meminfo_t *dying;

/// Check the refusal of each way to acquire a dying MemInfo.
static void try_to_acquire_dying(void *data, size_t size, void *info)
{
    (void)size;
    memrt_meminfo_t *found = NULL;
    REQUIRE(!api->try_acquire(dying));
    REQUIRE(api->find(data, &found) == MEMRT_ENOENT && found == NULL);
    REQUIRE(api->refcount(dying) == 0);
    *(bool *)info = true;
}

TEST(meminfo_cannot_be_acquired_in_own_destructor)
{
    bool ran = false;
    memrt_new_options_t options = {.struct_size = sizeof(options),
                                   .dtor = try_to_acquire_dying,
                                   .dtor_info = &ran,
                                   .name = "dying"};
    ck_assert_int_eq(api->meminfo_new(100, &options, &dying), MEMRT_OK);
    api->release(dying);
    ck_assert(ran);
}

/// Adopt the memory again, under a new MemInfo, from the destructor of the old MemInfo.
static void adopt_again(void *data, size_t size, void *info)
{
    memrt_new_options_t options = {.struct_size = sizeof(options)};
    REQUIRE(api->meminfo_adopt(data, size, &options, info) == MEMRT_OK);
}

TEST(destructor_may_adopt_memory_into_new_meminfo)
{
    static char memory[64];
    memrt_meminfo_t *mi, *again = NULL;
    memrt_new_options_t options = {
        .struct_size = sizeof(options), .dtor = adopt_again, .dtor_info = &again};
    ck_assert_int_eq(api->meminfo_adopt(memory, sizeof(memory), &options, &mi), MEMRT_OK);
    api->release(mi);
    ck_assert_ptr_nonnull(again);
    ck_assert_ptr_eq(api->get_data(again), memory);
    api->release(again);
}
