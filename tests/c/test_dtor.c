#include "support/suite.h"

#include <pthread.h>
#include <stdlib.h>

#include "runtime/base/atomics.h"
#include "runtime/base/options.h"
#include "runtime/meminfo/dtor.h"
#include "support/books.h"

/// More than any stack has room for, one inside the other. Where each link is verified, which takes
/// long, a tenth is more than that, too.
#define LINKS                                                                                      \
    (SUITE_ADDRESS_SANITIZER || SUITE_THREAD_SANITIZER || memrt__options.check ? 100000 : 1000000)

/// Least stack that the C library gives a thread, and what a sanitizer puts on it.
#define SMALL_STACK ((size_t)(SUITE_ADDRESS_SANITIZER || SUITE_THREAD_SANITIZER ? 1024 : 32) << 10)

static void *run(void *context)
{
    void (*work)(void) = *(void (**)(void))context;
    work();
    return NULL;
}

static void on_a_small_stack(void (*work)(void))
{
    pthread_t thread;
    pthread_attr_t attributes;
    ck_assert_int_eq(pthread_attr_init(&attributes), 0);
    ck_assert_int_eq(pthread_attr_setstacksize(&attributes, SMALL_STACK), 0);
    ck_assert_int_eq(pthread_create(&thread, &attributes, run, &work), 0);
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

static memrt_meminfo_t *link_to(memrt_meminfo_t *next, memrt_external_allocator_t *external)
{
    memrt_new_options_t options = {.struct_size = sizeof(options),
                                   .dtor = release_next,
                                   .dtor_info = next,
                                   .external = external};
    memrt_meminfo_t *mi;
    REQUIRE(api->meminfo_new(16, &options, &mi) == MEMRT_OK);
    return mi;
}

static memrt_meminfo_t *chain_of(size_t links)
{
    memrt_meminfo_t *chain = NULL;
    for (size_t i = 0; i < links; i++) {
        chain = link_to(chain, NULL);
    }
    return chain;
}

static void release_a_long_chain(void)
{
    memrt_meminfo_t *chain = chain_of(LINKS);
    ended = 0;
    api->release(chain);
    REQUIRE(ended == LINKS);
}

TEST(a_chain_of_a_million_destructors_ends_on_a_small_stack)
{
    on_a_small_stack(release_a_long_chain);
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

static void release_what_is_given(void)
{
    api->release(given);
}

TEST(so_does_one_that_a_thread_is_given_which_never_called_memrt)
{
    given = chain_of(LINKS);
    ended = 0;
    on_a_small_stack(release_what_is_given);
    ck_assert_uint_eq(ended, LINKS);
}

static void release_as_compiled_code_does(void)
{
    memrt_meminfo_t *chain = chain_of(LINKS);
    for (memrt_meminfo_t *mi = chain; mi != NULL; mi = api->dtor_info(mi)) {
        mi->dtor = count_down_by_hand;
    }
    ended = 0;
    api->release(chain);
    REQUIRE(ended == LINKS);
}

TEST(so_does_one_that_compiled_code_counts_down)
{
    on_a_small_stack(release_as_compiled_code_does);
}

/// A destructor with many to release, some of which head a long chain.
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

static memrt_meminfo_t *tree(unsigned height)
{
    memrt_new_options_t options = {.struct_size = sizeof(options), .dtor = release_all};
    memrt_meminfo_t *mi;
    REQUIRE(api->meminfo_new(CHILDREN * sizeof(mi), &options, &mi) == MEMRT_OK);
    for (size_t i = 0; i < CHILDREN; i++) {
        ((memrt_meminfo_t **)api->get_data(mi))[i] =
            height == 0 || i % 10 != 0 ? chain_of(50) : tree(height - 1);
    }
    return mi;
}

static void release_a_tree(void)
{
    books_t before = books_now();
    memrt_meminfo_t *root = tree(2);
    size_t made = stats_of(NULL).mi_alloc - before.stats.mi_alloc;
    ended = 0;
    api->release(root);
    REQUIRE(ended == made);
    REQUIRE(stats_of(NULL).live == before.stats.live);
}

TEST(so_does_a_tree_of_them)
{
    on_a_small_stack(release_a_tree);
}

static size_t seen[2]; /* what had ended when a destructor began, and when its release returned */

static void note_order(void *data, size_t size, void *next)
{
    (void)data;
    (void)size;
    seen[0] = ended++;
    api->release(next);
    seen[1] = ended;
}

TEST(a_destructor_that_is_not_deep_runs_before_the_release_returns)
{
    ended = 0;
    memrt_new_options_t options = {
        .struct_size = sizeof(options), .dtor = note_order, .dtor_info = chain_of(5)};
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

/// None of them is put off: the word that would link them says whose memory it is.
TEST(a_chain_of_an_external_allocators_memory_ends_at_once)
{
    enum { DEEP = 100 };
    static memrt_external_allocator_t external = {plain_malloc, NULL, plain_free, NULL};
    memrt_meminfo_t *chain = NULL;
    for (size_t i = 0; i < DEEP; i++) {
        chain = link_to(chain, &external);
    }
    ended = 0;
    api->release(chain);
    ck_assert_uint_eq(ended, DEEP);
}

TEST(memory_of_an_external_allocator_goes_back_to_it_from_any_depth)
{
    static memrt_external_allocator_t external = {plain_malloc, NULL, plain_free, NULL};
    enum { DEEP = 100 };
    memrt_meminfo_t *chain = NULL;
    for (size_t i = 0; i < DEEP; i++) {
        chain = link_to(link_to(chain, &external), NULL);
    }
    ended = 0;
    api->release(chain);
    ck_assert_uint_eq(ended, 2 * DEEP);
}

static void leave_the_thread(void *data, size_t size, void *info)
{
    (void)data;
    (void)size;
    (void)info;
    pthread_exit(NULL);
}

/// The MemInfos whose destructors do not return are lost: they go back by hand.
static memrt_meminfo_t *unfinished[40];

static void *end_in_destructors(void *context)
{
    memrt_meminfo_t *chain = NULL;
    for (size_t i = 0; i < 40; i++) {
        chain = link_to(chain, NULL);
        unfinished[i] = chain;
    }
    unfinished[8]->dtor = leave_the_thread; /* as deep as destructors go */
    api->release(chain);
    return context;
}

static void *release_one(void *context)
{
    (void)context;
    memrt_meminfo_t *mi = link_to(NULL, NULL);
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

TEST(a_thread_that_ended_in_a_destructor_leaves_nothing_to_the_next)
{
    run_thread(end_in_destructors);
    run_thread(release_one); /* has the record of the first */
    for (size_t i = 8; i < 40; i++) {
        unfinished[i]->dtor = NULL;
        memrt__dtor_call(unfinished[i]);
    }
    for (size_t i = 0; i < 8; i++) {
        unfinished[i]->dtor = NULL;
        api->release(unfinished[i]);
    }
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

/// Everything that takes one of memrt's locks, and a little more.
static void use_all(memrt_meminfo_t *named)
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

TEST(a_destructor_that_blocks_holds_up_nobody_else)
{
    pthread_t thread;
    memrt_meminfo_t *named = api->allocate(10), *mi = link_to(NULL, NULL);
    mi->dtor = wait_twice;
    ck_assert_int_eq(pthread_barrier_init(&meeting, NULL, 2), 0);
    ck_assert_int_eq(pthread_create(&thread, NULL, release_to_wait, mi), 0);
    pthread_barrier_wait(&meeting); /* it is in its destructor */
    use_all(named);
    release_a_long_chain();
    pthread_barrier_wait(&meeting);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    pthread_barrier_destroy(&meeting);
    api->release(named);
}

static memrt_meminfo_t *dying;

/// What would bring it back to life is refused.
static void try_to_rise(void *data, size_t size, void *info)
{
    (void)size;
    memrt_meminfo_t *found = NULL;
    REQUIRE(!api->try_acquire(dying));
    REQUIRE(api->find(data, &found) == MEMRT_ENOENT && found == NULL);
    REQUIRE(api->refcount(dying) == 0);
    *(bool *)info = true;
}

TEST(a_meminfo_cannot_be_held_again_in_its_destructor)
{
    bool ran = false;
    memrt_new_options_t options = {
        .struct_size = sizeof(options), .dtor = try_to_rise, .dtor_info = &ran, .name = "dying"};
    ck_assert_int_eq(api->meminfo_new(100, &options, &dying), MEMRT_OK);
    api->release(dying);
    ck_assert(ran);
}

/// Memory that was adopted may be handed out again by its destructor, under a new MemInfo.
static void adopt_again(void *data, size_t size, void *info)
{
    memrt_new_options_t options = {.struct_size = sizeof(options)};
    REQUIRE(api->meminfo_adopt(data, size, &options, info) == MEMRT_OK);
}

TEST(a_destructor_may_put_its_memory_under_a_new_meminfo)
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
