/// Tests of weak handles: upgrades before, during and after the last release. Tests of the proof
/// that a reference is unique.

#include "support/suite.h"

#include <sched.h>
#include <string.h>

#include "runtime/base/atomics.h"
#include "runtime/policy/policy.h"
#include "support/books.h"
#include "support/child.h"
#include "support/crew.h"

static memrt_weak_t create_handle(memrt_meminfo_t *mi)
{
    memrt_weak_t weak;
    ck_assert_int_eq(api->weak_new(mi, &weak), MEMRT_OK);
    return weak;
}

/// Expect an upgrade to `mi` with `count` references, including the new reference.
static void expect_upgrade(const memrt_weak_t *weak, memrt_meminfo_t *mi, size_t count)
{
    ck_assert_ptr_eq(api->weak_acquire(weak), mi);
    ck_assert_uint_eq(api->refcount(mi), count);
    api->release(mi);
}

TEST_EACH(handle_upgrades_until_the_last_release, 2)
{
    int was = api->tracking(index);
    books_t before = books_now();
    memrt_meminfo_t *mi = api->allocate(100);
    memrt_weak_t weak = create_handle(mi), other = create_handle(mi);
    ck_assert_mem_eq(&weak, &other, sizeof(weak));
    expect_upgrade(&weak, mi, 2);
    memrt_meminfo_t *held = api->weak_acquire(&weak);
    api->release(mi);
    expect_upgrade(&weak, held, 2);
    api->release(held);
    ck_assert_ptr_null(api->weak_acquire(&weak));
    books_expect_no_leak(&before);
    api->tracking(was);
}

TEST(handle_never_refers_to_a_later_buffer_at_its_address)
{
    memrt_meminfo_t *mi = api->allocate(100), *reused = NULL;
    memrt_weak_t weak = create_handle(mi);
    uintptr_t address = (uintptr_t)mi;
    api->release(mi);
    for (size_t round = 0; round < 5; round++) {
        reused = api->allocate(100);
        memrt_weak_t later = create_handle(reused);
        ck_assert_uint_ne(later.id, weak.id);
        expect_upgrade(&later, reused, 2);
        ck_assert_ptr_null(api->weak_acquire(&weak));
        api->release(reused);
    }
    ck_assert((uintptr_t)reused == address || !memrt__policy_default()->fast);
    ck_assert_ptr_null(api->weak_acquire(&(memrt_weak_t){0}));
}

static void ignore_data(void *data, size_t size, void *info)
{
    (void)data, (void)size;
    *(size_t *)info += 1;
}

TEST(handles_refer_to_all_kinds_of_meminfos)
{
    static char foreign[10];
    size_t ends = 0;
    memrt_new_options_t options = {
        .struct_size = sizeof(options), .dtor = ignore_data, .dtor_info = &ends};
    memrt_meminfo_t *made[4];
    void *tiny = api->block_alloc(NULL, 10);
    ck_assert_int_eq(api->meminfo_new(100, &options, &made[0]), MEMRT_OK);
    ck_assert_int_eq(api->meminfo_adopt(foreign, 10, &options, &made[1]), MEMRT_OK);
    ck_assert_int_eq(api->resizable_new(100, &options, &made[2]), MEMRT_OK);
    ck_assert_int_eq(api->block_meminfo(tiny, &made[3]), MEMRT_OK);
    for (size_t i = 0; i < 4; i++) {
        memrt_weak_t weak = create_handle(made[i]);
        expect_upgrade(&weak, made[i], i == 3 ? 3 : 2);
        if (i == 2) {
            ck_assert_ptr_nonnull(api->resizable_realloc(made[2], 3000000));
            expect_upgrade(&weak, made[2], 2);
        }
        api->release(made[i]);
        if (i == 3) {
            expect_upgrade(&weak, made[3], 2);
            api->block_free(NULL, tiny, 10);
        }
        ck_assert_ptr_null(api->weak_acquire(&weak));
    }
    ck_assert_uint_eq(ends, 3);
}

static memrt_weak_t seen_handle;
static memrt_meminfo_t *seen_in_dtor;

static void upgrade_in_dtor(void *data, size_t size, void *info)
{
    (void)data, (void)size, (void)info;
    seen_in_dtor = api->weak_acquire(&seen_handle);
}

TEST(upgrade_in_the_destructor_returns_null)
{
    memrt_new_options_t options = {.struct_size = sizeof(options), .dtor = upgrade_in_dtor};
    memrt_meminfo_t *mi;
    ck_assert_int_eq(api->meminfo_new(100, &options, &mi), MEMRT_OK);
    seen_handle = create_handle(mi);
    seen_in_dtor = mi;
    api->release(mi);
    ck_assert_ptr_null(seen_in_dtor);
}

static void use_handle_in_child(void *context)
{
    memrt_meminfo_t *mi = context;
    expect_upgrade(&seen_handle, mi, 2);
    api->release(mi);
    REQUIRE(api->weak_acquire(&seen_handle) == NULL);
}

TEST(handle_is_valid_in_a_forked_child)
{
    memrt_meminfo_t *mi = api->allocate(100);
    seen_handle = create_handle(mi);
    child_expect_success(use_handle_in_child, mi);
    expect_upgrade(&seen_handle, mi, 2);
    api->release(mi);
}

enum { ROUNDS = 2000, DEAD = -1, UPGRADERS = 3 };

/// Handles of one thread, which allocates and releases buffers, for threads with upgrades.
typedef struct race {
    memrt_weak_t handles[ROUNDS];
    size_t published; ///< number of handles; release, partner: the acquire load of upgraders
    size_t upgraded;  ///< `published` at the last upgrade that got a reference; relaxed
    size_t done;      ///< not 0: all buffers were released; relaxed
    size_t ended;     ///< number of destructor calls; relaxed
} race_t;

/// Overwrite the data. A thread with a wrong upgrade reads the data at the same time.
static void end_data(void *data, size_t size, void *info)
{
    memset(data, DEAD, size);
    memrt__fetch_add_relaxed(&((race_t *)info)->ended, 1);
}

static void publish_and_release(race_t *race)
{
    memrt_new_options_t options = {
        .struct_size = sizeof(options), .dtor = end_data, .dtor_info = race};
    for (size_t round = 0; round < ROUNDS; round++) {
        memrt_meminfo_t *mi;
        REQUIRE(api->meminfo_new(sizeof(size_t), &options, &mi) == MEMRT_OK);
        *(size_t *)api->get_data(mi) = round;
        REQUIRE(api->weak_new(mi, &race->handles[round]) == MEMRT_OK);
        memrt__store_release(&race->published, round + 1);
        while (memrt__load_relaxed(&race->upgraded) != round + 1) {
            sched_yield(); /* so that other threads upgrade at the time of the release */
        }
        api->release(mi);
    }
    memrt__store_relaxed(&race->done, 1);
}

/// Upgrade the newest handle. The buffer of the handle has the number of the handle, unless the
/// upgrade got a freed buffer or a later one.
static void upgrade_newest(race_t *race)
{
    while (memrt__load_relaxed(&race->done) == 0) {
        size_t published = memrt__load_acquire(&race->published);
        memrt_meminfo_t *mi =
            published == 0 ? NULL : api->weak_acquire(&race->handles[published - 1]);
        if (mi != NULL) {
            REQUIRE(*(size_t *)api->get_data(mi) == published - 1);
            memrt__store_relaxed(&race->upgraded, published);
            api->release(mi);
        }
    }
}

static void run_race(size_t index, void *context)
{
    if (index == 0) {
        publish_and_release(context);
    } else {
        upgrade_newest(context);
    }
}

TEST(upgrade_beside_the_last_release_gets_the_buffer_or_null)
{
    static race_t race;
    books_t before = books_now();
    crew_run(1 + UPGRADERS, run_race, &race);
    ck_assert_uint_eq(race.ended, ROUNDS);
    for (size_t round = 0; round < ROUNDS; round++) {
        ck_assert_ptr_null(api->weak_acquire(&race.handles[round]));
    }
    books_expect_no_leak(&before);
}

static void list_block(size_t index, void *context)
{
    memrt_weak_t *handles = context;
    memrt_meminfo_t *mi = (memrt_meminfo_t *)handles[0].meminfo;
    REQUIRE(api->weak_new(mi, &handles[1 + index]) == MEMRT_OK);
}

TEST(concurrent_handles_of_a_buffer_have_one_number)
{
    for (size_t round = 0; round < 100; round++) {
        books_t before = books_now();
        memrt_meminfo_t *mi = api->allocate(10);
        memrt_weak_t handles[4] = {{(uintptr_t)mi, 0}};
        crew_run(3, list_block, handles);
        ck_assert_uint_eq(handles[1].id, handles[2].id);
        ck_assert_uint_eq(handles[1].id, handles[3].id);
        api->release(mi);
        books_expect_no_leak(&before);
    }
}

TEST(reference_is_unique_without_another_reference_or_handle)
{
    static char foreign[10];
    size_t ends = 0;
    memrt_new_options_t options = {
        .struct_size = sizeof(options), .dtor = ignore_data, .dtor_info = &ends};
    memrt_meminfo_t *made[3];
    ck_assert_int_eq(api->meminfo_new(100, &options, &made[0]), MEMRT_OK);
    ck_assert_int_eq(api->meminfo_adopt(foreign, 10, &options, &made[1]), MEMRT_OK);
    ck_assert_int_eq(api->resizable_new(100, &options, &made[2]), MEMRT_OK);
    for (size_t i = 0; i < 3; i++) {
        ck_assert(api->try_unique(made[i]));
        api->acquire(made[i]);
        ck_assert(!api->try_unique(made[i]));
        api->release(made[i]);
        ck_assert_int_eq(api->set_name(made[i], "listed"), MEMRT_OK);
        ck_assert(api->try_unique(made[i]));
        memrt_weak_t weak = create_handle(made[i]);
        ck_assert(!api->try_unique(made[i]));
        api->release(made[i]);
        ck_assert_ptr_null(api->weak_acquire(&weak));
    }
    ck_assert_uint_eq(ends, 3);
}

TEST_EACH(resizable_is_unique_if_its_data_block_is, 2)
{
    memrt_new_options_t options = {.struct_size = sizeof(options)};
    memrt_meminfo_t *mi, *block;
    ck_assert_int_eq(api->resizable_new(100, &options, &mi), MEMRT_OK);
    ck_assert_int_eq(api->block_meminfo(api->get_data(mi), &block), MEMRT_OK);
    ck_assert(!api->try_unique(mi) && !api->try_unique(block));
    if (index == 1) {
        (void)create_handle(block);
    }
    api->release(block);
    ck_assert_int_eq(api->try_unique(mi), index == 0);
    api->resizable_free(mi, api->get_data(mi));
    ck_assert(api->try_unique(mi));
    api->release(mi);
}

TEST(tiny_block_and_its_meminfo_are_not_unique)
{
    memrt_meminfo_t *mi;
    api->block_free(NULL, api->block_alloc(NULL, 1000), 0); /* tiny blocks need a thread record */
    void *tiny = api->block_alloc(NULL, 10);
    ck_assert_int_eq(api->block_meminfo(tiny, &mi), MEMRT_OK);
    ck_assert(!api->try_unique(mi));
    api->block_free(NULL, tiny, 10);
    ck_assert(api->try_unique(mi));
    api->release(mi);
}

enum { SHARERS = 3, SHARED_ROUNDS = 300 };

/// Buffers that several threads share. The thread with the proof overwrites the data.
typedef struct sharing {
    memrt_meminfo_t *buffers[SHARED_ROUNDS]; ///< one reference for each thread
    size_t proofs;                           ///< relaxed
} sharing_t;

/// Write a slot of each buffer and release the buffer. A thread that holds the only reference reads
/// and overwrites the slots of all threads with plain accesses.
static void share_buffers(size_t index, void *context)
{
    sharing_t *sharing = context;
    for (size_t round = 0; round < SHARED_ROUNDS; round++) {
        memrt_meminfo_t *mi = sharing->buffers[round];
        size_t *slots = api->get_data(mi);
        slots[index] = index + 1;
        if (api->try_unique(mi)) {
            size_t sum = 0;
            for (size_t i = 0; i < SHARERS; i++) {
                sum += slots[i];
                slots[i] = 0;
            }
            REQUIRE(sum == SHARERS * (SHARERS + 1) / 2);
            memrt__fetch_add_relaxed(&sharing->proofs, 1);
        }
        api->release(mi);
    }
}

TEST(proof_follows_all_accesses_of_former_holders)
{
    static sharing_t sharing;
    books_t before = books_now();
    for (size_t round = 0; round < SHARED_ROUNDS; round++) {
        sharing.buffers[round] = api->allocate(SHARERS * sizeof(size_t));
        for (size_t i = 1; i < SHARERS; i++) {
            api->acquire(sharing.buffers[round]);
        }
    }
    crew_run(SHARERS, share_buffers, &sharing);
    ck_assert_uint_le(sharing.proofs, SHARED_ROUNDS);
    books_expect_no_leak(&before);
}

/// Expect no proof while another thread upgrades a handle.
static void prove_or_upgrade(size_t index, void *context)
{
    memrt_weak_t *weak = context;
    for (size_t round = 0; round < ROUNDS; round++) {
        memrt_meminfo_t *mi = index == 0 ? NULL : api->weak_acquire(weak);
        if (index == 0) {
            REQUIRE(!api->try_unique((memrt_meminfo_t *)weak->meminfo));
        } else if (mi != NULL) {
            api->release(mi);
        }
    }
}

TEST(buffer_with_a_handle_is_never_unique)
{
    memrt_meminfo_t *mi = api->allocate(100);
    memrt_weak_t weak = create_handle(mi);
    crew_run(2, prove_or_upgrade, &weak);
    api->release(mi);
    ck_assert_ptr_null(api->weak_acquire(&weak));
}
