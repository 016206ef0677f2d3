/// Tests of reclaim: callbacks that free memory before an allocation is refused.

#include "support/suite.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/atomics.h"
#include "support/child.h"
#include "support/crew.h"

#define MIB ((size_t)1 << 20)

/// Policy with a limit of 1 MiB. Blocks fill the limit.
static memrt_policy_t *limited;

enum { PARTS = 4 };
static void *parts[PARTS]; ///< blocks that fill the limit; NULL: freed

static uint64_t read_failed(void)
{
    memrt_stats_t stats = {.struct_size = sizeof(stats)};
    REQUIRE(api->stats_read(limited, &stats) == MEMRT_OK);
    return stats.failed;
}

static void fill_limit(void)
{
    memrt_policy_options_t options = {.struct_size = sizeof(options), .name = "limited"};
    ck_assert_int_eq(api->policy_new(&options, &limited), MEMRT_OK);
    ck_assert_int_eq(api->limit_set(limited, NULL, MIB), MEMRT_OK);
    for (size_t i = 0; i < PARTS; i++) {
        parts[i] = api->block_alloc(limited, MIB / PARTS);
        ck_assert_ptr_nonnull(parts[i]);
    }
}

static void free_part(size_t i)
{
    api->block_free(limited, parts[i], 0);
    parts[i] = NULL;
}

static void empty_limit(void)
{
    for (size_t i = 0; i < PARTS; i++) {
        free_part(i);
    }
    api->policy_release(limited);
}

/// Names of the callbacks that ran, in order.
static char ran[200];
static size_t ran_count, last_wanted;

static void note_run(char name, size_t wanted)
{
    ran[ran_count++] = name;
    ran[ran_count] = '\0';
    last_wanted = wanted;
}

static size_t stage; ///< stage of the test: each thread waits for a stage

static void forget_runs(void)
{
    ran_count = 0;
    ran[0] = '\0';
}

/// With sanitizers, all tests run in one process.
void suite_prepare(void)
{
    forget_runs();
    stage = 0;
}

/// Callback with a name and an action.
typedef struct named {
    char name;
    void (*act)(struct named *self);
    size_t part; ///< for free_own_part()
} named_t;

static size_t run_named(void *context, size_t wanted)
{
    named_t *self = context;
    note_run(self->name, wanted);
    if (self->act != NULL) {
        self->act(self);
    }
    return 0; /* only a hint: the allocation is repeated nevertheless */
}

static void add(named_t *named, int priority)
{
    ck_assert_int_eq(api->reclaim_add(run_named, named, priority), MEMRT_OK);
}

static void drop(named_t *named)
{
    ck_assert_int_eq(api->reclaim_remove(run_named, named), MEMRT_OK);
}

static void free_own_part(named_t *self)
{
    free_part(self->part);
}

TEST(callbacks_run_by_priority_until_block_fits)
{
    named_t a = {'a', NULL, 0}, b = {'b', free_own_part, 0}, c = {'c', free_own_part, 1},
            d = {'d', NULL, 0}, e = {'e', free_own_part, 2};
    fill_limit();
    add(&e, 3);
    add(&c, 2);
    add(&a, INT_MIN);
    add(&b, 1);
    add(&d, 1);
    void *block = api->block_alloc(limited, MIB / 2); /* two parts */
    ck_assert_ptr_nonnull(block);
    ck_assert_str_eq(ran, "abdc");
    ck_assert_uint_eq(last_wanted, MIB / 2);
    ck_assert_uint_eq(read_failed(), 0);
    api->block_free(limited, block, 0);
    drop(&a);
    drop(&b);
    drop(&c);
    drop(&d);
    drop(&e);
    forget_runs();
    ck_assert_ptr_null(api->block_alloc(limited, MIB));
    ck_assert_str_eq(ran, "");
    empty_limit();
}

TEST(refusal_runs_each_callback_once_and_counts_once)
{
    named_t a = {'a', NULL, 0}, b = {'b', NULL, 0};
    fill_limit();
    add(&a, 5);
    add(&b, -5);
    for (uint64_t failed = 1; failed < 4; failed++) {
        forget_runs();
        ck_assert_ptr_null(api->block_alloc(limited, 1));
        ck_assert_str_eq(ran, "ba");
        ck_assert_uint_eq(read_failed(), failed);
    }
    drop(&a);
    drop(&b);
    empty_limit();
}

/// Free a part of the limit, but claim that nothing was freed.
static size_t free_secretly(void *context, size_t wanted)
{
    note_run('s', wanted);
    free_part(*(size_t *)context);
    return MEMRT_RECLAIM_NOTHING;
}

TEST(allocation_is_not_repeated_after_callback_that_freed_nothing)
{
    size_t part = 0;
    named_t next = {'n', NULL, 0};
    fill_limit();
    ck_assert_int_eq(api->reclaim_add(free_secretly, &part, 0), MEMRT_OK);
    ck_assert_ptr_null(api->block_alloc(limited, MIB / PARTS));
    ck_assert_str_eq(ran, "s");
    parts[part] = api->block_alloc(limited, MIB / PARTS);
    ck_assert_ptr_nonnull(parts[part]);
    forget_runs();
    add(&next, 1);
    void *block = api->block_alloc(limited, MIB / PARTS); /* repeated after the next callback */
    ck_assert_ptr_nonnull(block);
    ck_assert_str_eq(ran, "sn");
    api->block_free(limited, block, 0);
    drop(&next);
    ck_assert_int_eq(api->reclaim_remove(free_secretly, &part), MEMRT_OK);
    empty_limit();
}

/* Every function that allocates: */

static bool use_alloc(void **block)
{
    return (*block = api->block_alloc(limited, MIB / PARTS)) != NULL;
}

static bool use_calloc(void **block)
{
    return (*block = api->block_calloc(limited, MIB / PARTS, 1)) != NULL;
}

static bool use_tiny(void **block)
{
    return (*block = api->block_alloc(limited, 20)) != NULL;
}

static memrt_meminfo_t *made;

static bool use_meminfo_new(void **block)
{
    memrt_new_options_t options = {.struct_size = sizeof(options), .policy = limited};
    (void)block;
    return api->meminfo_new(MIB / PARTS, &options, &made) == MEMRT_OK;
}

static bool use_resizable_new(void **block)
{
    memrt_new_options_t options = {.struct_size = sizeof(options), .policy = limited};
    (void)block;
    return api->resizable_new(MIB / PARTS, &options, &made) == MEMRT_OK;
}

static bool use_allocate_from(void **block)
{
    (void)block;
    return (made = api->allocate_from(MIB / PARTS, limited)) != NULL;
}

static bool (*const uses[])(void **) = {use_alloc,       use_calloc,        use_tiny,
                                        use_meminfo_new, use_resizable_new, use_allocate_from};

TEST_EACH(every_creator_succeeds_after_callback, sizeof(uses) / sizeof(uses[0]))
{
    named_t a = {'a', free_own_part, 2};
    void *block = NULL;
    made = NULL;
    fill_limit();
    add(&a, 0);
    ck_assert(uses[index](&block));
    ck_assert_str_eq(ran, "a");
    api->block_free(limited, block, 0);
    if (made != NULL) {
        api->release(made);
    }
    drop(&a);
    empty_limit();
}

/* Resizes: tiny in place, tiny by a move, by the thread cache, by the allocator. */
static const size_t resizes[][2] = {{20, 24}, {20, 60}, {20, 5000}, {500, 900}, {5000, 100000}};

static char *alloc_filled(size_t size)
{
    free_part(0);
    char *block = api->block_alloc(limited, size);
    ck_assert_ptr_nonnull(block);
    memset(block, 7, size);
    parts[0] = api->block_alloc(limited, MIB / PARTS - size);
    ck_assert_ptr_nonnull(parts[0]);
    return block;
}

TEST_EACH(resize_succeeds_after_callback, sizeof(resizes) / sizeof(resizes[0]))
{
    size_t from = resizes[index][0], to = resizes[index][1];
    named_t a = {'a', NULL, 0}, b = {'b', free_own_part, 1};
    fill_limit();
    char *block = alloc_filled(from);
    add(&a, 0);
    ck_assert_ptr_null(api->block_realloc(limited, block, to));
    ck_assert_str_eq(ran, "a");
    ck_assert_uint_eq(read_failed(), 1);
    ck_assert_int_eq(block[from - 1], 7);
    add(&b, 1);
    block = api->block_realloc(limited, block, to);
    ck_assert_ptr_nonnull(block);
    ck_assert_str_eq(ran, "aab");
    ck_assert_uint_eq(read_failed(), 1);
    ck_assert_int_eq(block[0], 7);
    ck_assert_int_eq(block[from - 1], 7);
    api->block_free(limited, block, 0);
    drop(&a);
    drop(&b);
    empty_limit();
}

static void *resized_block;
static memrt_meminfo_t *sharer;

static void share_resized_block(named_t *self)
{
    ck_assert_int_eq(api->block_meminfo(resized_block, &sharer), MEMRT_OK);
    free_part(self->part);
}

TEST_EACH(block_shared_by_callback_is_copied, sizeof(resizes) / sizeof(resizes[0]))
{
    size_t from = resizes[index][0], to = resizes[index][1];
    named_t a = {'a', share_resized_block, 1};
    fill_limit();
    resized_block = alloc_filled(from);
    add(&a, 0);
    char *copy = api->block_realloc(limited, resized_block, to);
    ck_assert_ptr_nonnull(copy);
    ck_assert_ptr_ne(copy, resized_block);
    ck_assert_int_eq(copy[from - 1], 7);
    ck_assert_uint_eq(api->refcount(sharer), 1);
    ck_assert_int_eq(((char *)api->get_data(sharer))[from - 1], 7);
    api->release(sharer);
    api->block_free(limited, copy, 0);
    drop(&a);
    empty_limit();
}

TEST(shared_block_is_copied_after_callback)
{
    named_t a = {'a', free_own_part, 1};
    fill_limit();
    resized_block = alloc_filled(500);
    ck_assert_int_eq(api->block_meminfo(resized_block, &sharer), MEMRT_OK);
    add(&a, 0);
    char *copy = api->block_realloc(limited, resized_block, 5000);
    ck_assert_ptr_nonnull(copy);
    ck_assert_str_eq(ran, "a");
    api->release(sharer);
    api->block_free(limited, copy, 0);
    drop(&a);
    empty_limit();
}

/* What callbacks may do: */

static void *inner;

static void allocate_within_and_beyond(named_t *self)
{
    ck_assert_ptr_null(api->block_alloc(limited, 2 * MIB)); /* no second round */
    free_part(self->part);
    inner = api->block_alloc(limited, 100);
    ck_assert_ptr_nonnull(inner);
}

TEST(refusal_inside_callback_starts_no_round)
{
    named_t a = {'a', allocate_within_and_beyond, 0}, b = {'b', NULL, 0};
    fill_limit();
    add(&a, 0);
    add(&b, 1);
    ck_assert_ptr_null(api->block_alloc(limited, MIB / PARTS));
    ck_assert_str_eq(ran, "ab");
    ck_assert_uint_eq(read_failed(), 2);
    void *block = api->block_alloc(limited, MIB / PARTS - 100);
    ck_assert_ptr_nonnull(block);
    api->block_free(limited, block, 0);
    api->block_free(limited, inner, 0);
    drop(&a);
    drop(&b);
    empty_limit();
}

static void raise_limit(named_t *self)
{
    (void)self;
    ck_assert_int_eq(api->limit_set(limited, NULL, 4 * MIB), MEMRT_OK);
}

TEST(callback_may_raise_the_limit)
{
    named_t a = {'a', raise_limit, 0};
    fill_limit();
    add(&a, 0);
    void *block = api->block_alloc(limited, 2 * MIB);
    ck_assert_ptr_nonnull(block);
    api->block_free(limited, block, 0);
    drop(&a);
    empty_limit();
}

static named_t added = {'z', NULL, 0};

static void remove_itself_and_add(named_t *self)
{
    drop(self);
    add(&added, 100); /* not in the entry of the running callback */
    ck_assert_int_eq(api->reclaim_remove(run_named, self), MEMRT_ENOENT);
}

TEST(callback_added_in_round_runs_in_the_next)
{
    named_t a = {'a', remove_itself_and_add, 0}, b = {'b', NULL, 0};
    fill_limit();
    add(&a, 0);
    add(&b, 0);
    ck_assert_ptr_null(api->block_alloc(limited, 1));
    ck_assert_str_eq(ran, "ab");
    forget_runs();
    ck_assert_ptr_null(api->block_alloc(limited, 1));
    ck_assert_str_eq(ran, "bz");
    drop(&b);
    drop(&added);
    empty_limit();
}

static named_t removed = {'r', NULL, 0};

static void remove_other(named_t *self)
{
    (void)self;
    drop(&removed);
}

TEST(callback_removed_in_round_does_not_run)
{
    named_t a = {'a', remove_other, 0};
    fill_limit();
    add(&a, 0);
    add(&removed, 1);
    ck_assert_ptr_null(api->block_alloc(limited, 1));
    ck_assert_str_eq(ran, "a");
    drop(&a);
    empty_limit();
}

static void change_errno(named_t *self)
{
    int state;
    (void)self;
    errno = EBADF;
    ck_assert_int_eq(pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state), 0);
    ck_assert_int_eq(state, PTHREAD_CANCEL_DISABLE);
}

TEST(callback_runs_without_cancellation_and_keeps_errno)
{
    named_t a = {'a', change_errno, 0};
    int state;
    fill_limit();
    add(&a, 0);
    errno = 77;
    ck_assert_ptr_null(api->block_alloc(limited, 1));
    ck_assert_int_eq(errno, 77);
    ck_assert_int_eq(pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &state), 0);
    ck_assert_int_eq(state, PTHREAD_CANCEL_ENABLE);
    drop(&a);
    empty_limit();
}

TEST(request_beyond_address_space_starts_no_round)
{
    named_t a = {'a', NULL, 0};
    add(&a, 0);
    ck_assert_ptr_null(api->block_alloc(NULL, (size_t)1 << 56));
    ck_assert_ptr_null(api->block_alloc(NULL, SIZE_MAX));
    ck_assert_ptr_null(api->block_calloc(NULL, SIZE_MAX / 2, 4));
    ck_assert_str_eq(ran, "");
    ck_assert_ptr_null(api->block_alloc(NULL, (size_t)1 << 55));
    ck_assert_str_eq(ran, "a");
    drop(&a);
}

/* Registration: */

static size_t run_nothing(void *context, size_t wanted)
{
    (void)context;
    return wanted;
}

TEST(number_of_callbacks_is_limited)
{
    static char contexts[MEMRT_RECLAIM_MAX + 1];
    for (size_t i = 0; i < MEMRT_RECLAIM_MAX; i++) {
        ck_assert_int_eq(api->reclaim_add(run_nothing, &contexts[i], 0), MEMRT_OK);
    }
    ck_assert_int_eq(api->reclaim_add(run_nothing, &contexts[MEMRT_RECLAIM_MAX], 0), MEMRT_ELIMIT);
    ck_assert_int_eq(api->reclaim_add(run_nothing, &contexts[3], 1), MEMRT_EINVAL);
    ck_assert_int_eq(api->reclaim_remove(run_nothing, &contexts[9]), MEMRT_OK);
    ck_assert_int_eq(api->reclaim_remove(run_nothing, &contexts[9]), MEMRT_ENOENT);
    ck_assert_int_eq(api->reclaim_remove(run_named, &contexts[3]), MEMRT_ENOENT);
    ck_assert_int_eq(api->reclaim_add(run_nothing, &contexts[9], 0), MEMRT_OK);
    for (size_t i = 0; i < MEMRT_RECLAIM_MAX; i++) {
        ck_assert_int_eq(api->reclaim_remove(run_nothing, &contexts[i]), MEMRT_OK);
    }
    ck_assert_int_eq(api->reclaim_add(NULL, contexts, 0), MEMRT_EINVAL);
    ck_assert_int_eq(api->reclaim_remove(NULL, NULL), MEMRT_ENOENT);
}

/* Failures of the allocator: */

/* An allocator over 2 MiB that keeps a freed block until release_unused. */
static size_t pool_left;
static void *pool_kept;
static size_t pool_kept_size;

static void *pool_alloc(void *ctx, size_t size, size_t align)
{
    (void)ctx;
    void *data = size <= pool_left ? aligned_alloc(align, (size + align - 1) & ~(align - 1)) : NULL;
    pool_left -= data == NULL ? 0 : size;
    return data;
}

static size_t pool_release(void *ctx)
{
    (void)ctx;
    size_t bytes = pool_kept_size;
    free(pool_kept);
    pool_kept = NULL;
    pool_kept_size = 0;
    pool_left += bytes;
    return bytes;
}

static void pool_free(void *ctx, void *ptr, size_t size, size_t align)
{
    (void)pool_release(ctx);
    (void)align;
    pool_kept = ptr;
    pool_kept_size = size;
}

TEST(cached_memory_is_released_before_callbacks)
{
    named_t a = {'a', NULL, 0};
    memrt_allocator_t pool = {.struct_size = sizeof(pool),
                              .version = MEMRT_ALLOCATOR_VERSION,
                              .name = "pool",
                              .alloc = pool_alloc,
                              .free = pool_free,
                              .release_unused = pool_release};
    memrt_policy_options_t options = {.struct_size = sizeof(options), .allocator = &pool};
    memrt_policy_t *policy;
    ck_assert_int_eq(api->policy_new(&options, &policy), MEMRT_OK);
    add(&a, 0);
    pool_left = 2 * MIB;
    api->block_free(policy, api->block_alloc(policy, MIB), 0);
    ck_assert_uint_lt(pool_left, MIB);
    void *block = api->block_alloc(policy, 3 * MIB / 2); /* fits without the kept block only */
    ck_assert_ptr_nonnull(block);
    ck_assert_str_eq(ran, "");
    api->block_free(policy, block, 0);
    ck_assert_ptr_null(api->block_alloc(policy, 3 * MIB));
    ck_assert_str_eq(ran, "a");
    (void)api->release_unused();
    drop(&a);
    api->policy_release(policy);
}

static void end_failures(named_t *self)
{
    (void)self;
    suite_allow_requests();
}

/// All requests fail until callback `index` ends fault injection. The last index: until the end.
TEST_EACH(each_repetition_may_fail_again, 4)
{
    static const char *const expected[] = {"a", "ab", "abc", "abc"};
    named_t named[] = {{'a', NULL, 0}, {'b', NULL, 0}, {'c', NULL, 0}, {'d', NULL, 0}};
    named[index].act = end_failures;
    for (int i = 0; i < 3; i++) {
        add(&named[i], i);
    }
    suite_fail_all_requests();
    memrt_meminfo_t *mi = api->allocate(100000);
    suite_allow_requests();
    ck_assert((mi != NULL) == (index < 3));
    ck_assert_str_eq(ran, expected[index]);
    if (mi != NULL) {
        api->release(mi);
    }
    for (int i = 0; i < 3; i++) {
        drop(&named[i]);
    }
}

TEST(failed_header_starts_no_round)
{
    named_t a = {'a', end_failures, 0};
    memrt_new_options_t options = {.struct_size = sizeof(options)};
    char data[8];
    add(&a, 0);
    suite_fail_all_requests();
    ck_assert_int_eq(api->meminfo_adopt(data, sizeof(data), &options, &made), MEMRT_ENOMEM);
    suite_allow_requests();
    ck_assert_str_eq(ran, "");
    drop(&a);
}

/* Threads: */

static void await_stage(size_t wanted)
{
    while (memrt__load_acquire(&stage) < wanted) {
        usleep(100);
    }
}

static void enter_stage(size_t reached)
{
    memrt__store_release(&stage, reached);
}

/// Wait inside of the callback until the other thread has used functions that take locks.
static void wait_inside(void)
{
    enter_stage(1);
    await_stage(2);
    memrt_meminfo_t *mi = api->allocate(3 * MIB);
    REQUIRE(mi != NULL);
    api->release(mi);
}

static void use_locks(void)
{
    memrt_policy_t *policy;
    memrt_scope_t *scope;
    void *blocks[] = {api->block_alloc(NULL, 20), api->block_alloc(NULL, 5000),
                      api->block_alloc(NULL, 3 * MIB)};
    for (size_t i = 0; i < 3; i++) {
        REQUIRE(blocks[i] != NULL);
        api->block_free(NULL, blocks[i], 0);
    }
    REQUIRE(api->policy_new(NULL, &policy) == MEMRT_OK);
    api->policy_release(policy);
    REQUIRE(api->scope_open(NULL, "beside", &scope) == MEMRT_OK);
    api->scope_release(scope);
    (void)api->release_unused();
    REQUIRE(api->limit_set(NULL, NULL, MEMRT_NO_LIMIT) == MEMRT_OK);
    REQUIRE(api->block_alloc(limited, 2 * MIB) == NULL);
}

static size_t wait_once(void *context, size_t wanted)
{
    (void)wanted;
    if (memrt__cas_relaxed((size_t *)context, 0, 1)) {
        wait_inside();
    }
    return 0;
}

static void use_locks_beside_callback(size_t index, void *context)
{
    (void)context;
    if (index == 0) {
        REQUIRE(api->block_alloc(limited, 1) == NULL);
    } else {
        await_stage(1);
        use_locks();
        enter_stage(2);
    }
}

TEST(no_lock_is_held_while_callback_runs)
{
    size_t waited = 0;
    fill_limit();
    ck_assert_int_eq(api->reclaim_add(wait_once, &waited, 0), MEMRT_OK);
    crew_run(2, use_locks_beside_callback, NULL);
    ck_assert_uint_eq(waited, 1);
    ck_assert_int_eq(api->reclaim_remove(wait_once, &waited), MEMRT_OK);
    empty_limit();
}

/// Context of a callback, with the order of the end of the run and the removal.
typedef struct watched {
    size_t left, removed; ///< set before the callback returns, and after the removal
} watched_t;

static size_t stay_inside(void *context, size_t wanted)
{
    watched_t *watched = context;
    (void)wanted;
    enter_stage(1);
    await_stage(2);
    usleep(50000); /* the removal waits meanwhile */
    REQUIRE(memrt__load_acquire(&watched->removed) == 0);
    memrt__store_release(&watched->left, 1);
    return 0;
}

static void remove_beside_run(size_t index, void *context)
{
    watched_t *watched = context;
    if (index == 0) {
        REQUIRE(api->block_alloc(limited, 1) == NULL);
        return;
    }
    await_stage(1);
    enter_stage(2);
    REQUIRE(api->reclaim_remove(stay_inside, watched) == MEMRT_OK);
    memrt__store_release(&watched->removed, 1);
    REQUIRE(memrt__load_acquire(&watched->left) == 1);
}

TEST(removal_waits_for_run_in_another_thread)
{
    watched_t watched = {0, 0};
    fill_limit();
    ck_assert_int_eq(api->reclaim_add(stay_inside, &watched, 0), MEMRT_OK);
    crew_run(2, remove_beside_run, &watched);
    ck_assert_uint_eq(watched.removed, 1);
    ck_assert_ptr_null(api->block_alloc(limited, 1)); /* the callback does not run again */
    empty_limit();
}

static memrt_status_t status_inside;

/// Remove a callback inside of the callback, while another thread runs the callback.
static size_t remove_inside(void *context, size_t wanted)
{
    static size_t first;
    (void)wanted;
    if (memrt__cas_relaxed(&first, 0, 1)) {
        enter_stage(1);
        await_stage(2);
    } else {
        status_inside = api->reclaim_remove(remove_inside, context);
        enter_stage(2);
    }
    return 0;
}

static void refuse_in_turn(size_t index, void *context)
{
    (void)context;
    await_stage(index);
    REQUIRE(api->block_alloc(limited, 1) == NULL);
}

TEST(removal_inside_callback_does_not_wait)
{
    int context;
    fill_limit();
    ck_assert_int_eq(api->reclaim_add(remove_inside, &context, 0), MEMRT_OK);
    crew_run(2, refuse_in_turn, NULL);
    ck_assert_int_eq(status_inside, MEMRT_EBUSY);
    ck_assert_int_eq(api->reclaim_remove(remove_inside, &context), MEMRT_OK);
    empty_limit();
}

/// Three threads are refused while thread 0 adds and removes a callback.
static size_t count_runs(void *context, size_t wanted)
{
    size_t *runs = context;
    (void)wanted;
    memrt__fetch_add_relaxed(runs, 1);
    return 0;
}

static void refuse_or_register(size_t index, void *context)
{
    for (int i = 0; i < 40; i++) {
        if (index == 0) {
            size_t runs = 0;
            REQUIRE(api->reclaim_add(count_runs, &runs, i % 3) == MEMRT_OK);
            usleep(1000);
            REQUIRE(api->reclaim_remove(count_runs, &runs) == MEMRT_OK);
            memrt__fetch_add_relaxed((size_t *)context, runs);
        } else {
            REQUIRE(api->block_alloc(limited, 1) == NULL);
        }
    }
}

TEST(callbacks_on_the_stack_of_a_thread_end_with_removal)
{
    size_t runs = 0;
    fill_limit();
    crew_run(4, refuse_or_register, &runs);
    ck_assert_uint_ne(runs, 0);
    empty_limit();
}

/* Forks: */

static void use_child(void)
{
    REQUIRE(api->block_alloc(limited, 2 * MIB) == NULL);
    free_part(3);
    void *block = api->block_alloc(limited, 100);
    REQUIRE(block != NULL);
    api->block_free(limited, block, 0);
}

static pid_t forked;

static void fork_inside(named_t *self)
{
    forked = fork();
    REQUIRE(forked >= 0);
    if (forked == 0) {
        REQUIRE(api->reclaim_remove(run_named, self) == MEMRT_OK);
        free_part(0);
    }
}

TEST(callback_may_fork)
{
    named_t a = {'a', fork_inside, 0};
    pid_t parent = getpid();
    if (SUITE_THREAD_SANITIZER) {
        return; /* ThreadSanitizer keeps the state of the parent's locks in a child */
    }
    fill_limit();
    add(&a, 0);
    void *block = api->block_alloc(limited, 100);
    if (getpid() != parent) { /* the allocation of the child succeeds, and later rounds work */
        REQUIRE(block != NULL);
        use_child();
        _exit(17);
    }
    ck_assert_ptr_null(block);
    ck_assert_int_eq(child_wait(forked), 17);
    drop(&a);
    empty_limit();
}

static size_t stay_until_stage_2(void *context, size_t wanted)
{
    (void)context;
    (void)wanted;
    enter_stage(1);
    await_stage(2);
    return 0;
}

static void fork_beside_run(size_t index, void *context)
{
    if (index == 0) {
        REQUIRE(api->block_alloc(limited, 1) == NULL);
        return;
    }
    await_stage(1);
    pid_t child = fork();
    if (child == 0) {
        child_start_watchdog();
        REQUIRE(api->reclaim_remove(stay_until_stage_2, context) == MEMRT_OK); /* does not wait */
        use_child();
        _exit(17);
    }
    REQUIRE(child_wait(child) == 17);
    enter_stage(2);
}

TEST(child_forgets_runs_of_threads_of_the_parent)
{
    int context;
    fill_limit();
    ck_assert_int_eq(api->reclaim_add(stay_until_stage_2, &context, 0), MEMRT_OK);
    crew_run(2, fork_beside_run, &context);
    ck_assert_int_eq(api->reclaim_remove(stay_until_stage_2, &context), MEMRT_OK);
    empty_limit();
}

static bool refuse_in_prepare;

static void refuse_if_asked(void)
{
    if (refuse_in_prepare) {
        REQUIRE(api->block_alloc(limited, 1) == NULL);
    }
}

/// Register before memrt, so that the handler runs while the forking thread holds memrt's locks.
__attribute__((constructor)) static void register_handler(void)
{
    REQUIRE(pthread_atfork(refuse_if_asked, NULL, NULL) == 0);
}

TEST(thread_with_locks_of_a_fork_runs_no_callback)
{
    named_t a = {'a', NULL, 0};
    fill_limit();
    add(&a, 0);
    refuse_in_prepare = true;
    pid_t child = fork();
    if (child == 0) {
        _exit(17);
    }
    refuse_in_prepare = false;
    ck_assert_int_eq(child_wait(child), 17);
    ck_assert_str_eq(ran, "");
    drop(&a);
    empty_limit();
}
