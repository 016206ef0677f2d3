#include "support/suite.h"

#include <pthread.h>
#include <string.h>

#include "conformance/pattern.h"
#include "runtime/meminfo/tiny.h"
#include "support/books.h"
#include "support/crew.h"

/// Allocate a tiny block. Tiny blocks need a thread record, so a first block creates the record.
static void *allocate_tiny_block(size_t size)
{
    api->block_free(NULL, api->block_alloc(NULL, 1000), 0);
    void *data = api->block_alloc(NULL, size);
    ck_assert_ptr_nonnull(data);
    ck_assert(memrt__is_tiny(data));
    return data;
}

static bool has_tiny_blocks(void)
{
    return memrt__policy_default()->tiny && !memrt__is_slow(MEMRT__SLOW_TRACKING);
}

#define SKIP_WITHOUT_TINY()                                                                        \
    if (!has_tiny_blocks()) {                                                                      \
        return; /* MEMRT_CACHE is off, or MEMRT_TRACK on */                                        \
    }

TEST(tiny_data_is_at_16_mod_32_and_larger_data_64_aligned)
{
    SKIP_WITHOUT_TINY();
    for (size_t size = 1; size <= 3 * (size_t)MEMRT_TINY_MAX; size++) {
        void *data =
            size <= MEMRT_TINY_MAX ? allocate_tiny_block(size) : api->block_alloc(NULL, size);
        ck_assert_uint_eq((uintptr_t)data % (size <= MEMRT_TINY_MAX ? 32 : 64),
                          size <= MEMRT_TINY_MAX ? 16 : 0);
        memset(data, 0xAB, size);
        api->block_free(NULL, data, size);
    }
}

TEST(policy_alignment_also_holds_for_tiny_sizes)
{
    memrt_policy_options_t options = {.struct_size = sizeof(options), .alignment = 64};
    memrt_policy_t *policy;
    ck_assert_int_eq(api->policy_new(&options, &policy), MEMRT_OK);
    for (int round = 0; round < 10; round++) {
        void *data = api->block_alloc(policy, 8);
        ck_assert_uint_eq((uintptr_t)data % 64, 0);
        api->block_free(policy, data, 8);
    }
    api->policy_release(policy);
}

TEST(tiny_blocks_count_in_the_statistics)
{
    SKIP_WITHOUT_TINY();
    api->block_free(NULL, allocate_tiny_block(8), 0);
    memrt_stats_t before = stats_of(NULL);
    void *data = api->block_alloc(NULL, 40);
    memrt_stats_t now = stats_of(NULL);
    ck_assert_uint_eq(now.alloc, before.alloc + 1);
    ck_assert_uint_eq(now.mi_alloc, before.mi_alloc);
    ck_assert_uint_eq(now.live, before.live + 40);
    ck_assert_uint_eq(now.reserved - now.cached, before.reserved - before.cached + 40 + 16);
    api->block_free(NULL, data, 40);
    now = stats_of(NULL);
    ck_assert_uint_eq(now.free, before.free + 1);
    ck_assert_uint_eq(now.live, before.live);
    ck_assert_uint_eq(now.reserved - now.cached, before.reserved - before.cached);
}

TEST(zeroed_tiny_blocks_are_zero)
{
    SKIP_WITHOUT_TINY();
    for (size_t size = 1; size <= MEMRT_TINY_MAX; size++) {
        void *data = allocate_tiny_block(size);
        memset(data, 0xFF, size);
        api->block_free(NULL, data, size);
        data = api->block_calloc(NULL, size, 1);
        ck_assert(pattern_is_zero(data, size));
        api->block_free(NULL, data, size);
    }
}

TEST(tiny_block_stays_alive_while_its_meminfo_is_held)
{
    SKIP_WITHOUT_TINY();
    books_t before = books_now();
    char *data = allocate_tiny_block(10);
    strcpy(data, "contents");
    memrt_meminfo_t *mi, *again;
    ck_assert_int_eq(api->block_meminfo(data, &mi), MEMRT_OK);
    ck_assert_int_eq(api->block_meminfo(data, &again), MEMRT_OK);
    ck_assert_ptr_eq(mi, again);
    ck_assert_uint_eq(api->refcount(mi), 3);
    ck_assert_uint_eq(api->size(mi), 10);
    ck_assert_ptr_eq(api->get_data(mi), data);
    ck_assert_uint_eq(stats_of(NULL).mi_alloc, before.stats.mi_alloc + 1);
    api->block_free(NULL, data, 10);
    api->release(again);
    ck_assert_str_eq(data, "contents");
    api->release(mi);
    books_expect_no_leak(&before);
}

TEST(tiny_block_can_be_freed_after_release_of_its_meminfo)
{
    SKIP_WITHOUT_TINY();
    books_t before = books_now();
    void *data = allocate_tiny_block(10);
    memrt_meminfo_t *mi;
    ck_assert_int_eq(api->block_meminfo(data, &mi), MEMRT_OK);
    api->release(mi);
    ck_assert_uint_eq(api->refcount(mi), 1);
    api->block_free(NULL, data, 10);
    books_expect_no_leak(&before);
}

TEST(meminfo_of_a_tiny_block_can_be_named_and_found)
{
    SKIP_WITHOUT_TINY();
    void *data = allocate_tiny_block(10);
    memrt_meminfo_t *mi, *found;
    ck_assert_int_eq(api->block_meminfo(data, &mi), MEMRT_OK);
    ck_assert_int_eq(api->set_name(mi, "few bytes"), MEMRT_OK);
    ck_assert_int_eq(api->find(data, &found), MEMRT_OK);
    ck_assert_ptr_eq(found, mi);
    api->release(found);
    api->release(mi);
    api->block_free(NULL, data, 10);
    ck_assert_int_eq(api->find(data, &found), MEMRT_ENOENT);
}

TEST(tiny_resize_keeps_contents_and_counts_only_a_resize)
{
    SKIP_WITHOUT_TINY();
    static const size_t sizes[] = {1, 16, 17, 48, 49, 64, 65, 1000};
    enum { SIZES = sizeof(sizes) / sizeof(sizes[0]) };
    for (size_t from = 0; from < SIZES - 2; from++) {
        for (size_t to = 0; to < SIZES; to++) {
            books_t before = books_now();
            void *data = allocate_tiny_block(sizes[from]);
            memrt_stats_t made = stats_of(NULL);
            pattern_write(data, sizes[from], 7);
            data = api->block_realloc(NULL, data, sizes[to]);
            ck_assert_ptr_nonnull(data);
            ck_assert(pattern_holds(data, memrt__size_min(sizes[from], sizes[to]), 7));
            memrt_stats_t now = stats_of(NULL);
            ck_assert_uint_eq(now.alloc, made.alloc);
            ck_assert_uint_eq(now.free, made.free);
            ck_assert_uint_eq(now.realloc, made.realloc + 1);
            ck_assert_uint_eq(now.live, made.live + sizes[to] - sizes[from]);
            size_t growth = sizes[to] > sizes[from] ? sizes[to] - sizes[from] : 0;
            ck_assert_uint_eq(now.total, made.total + growth);
            api->block_free(NULL, data, 0);
            books_expect_no_leak(&before);
        }
    }
}

TEST(failed_resize_keeps_the_tiny_block)
{
    SKIP_WITHOUT_TINY();
    char *data = allocate_tiny_block(10);
    strcpy(data, "contents");
    memrt_stats_t before = stats_of(NULL);
    suite_fail_all_requests();
    ck_assert_ptr_null(api->block_realloc(NULL, data, 1000));
    memrt_meminfo_t *mi;
    ck_assert_int_eq(api->block_meminfo(data, &mi), MEMRT_ENOMEM);
    suite_allow_requests();
    ck_assert_str_eq(data, "contents");
    memrt_stats_t now = stats_of(NULL);
    ck_assert_uint_eq(now.live, before.live);
    ck_assert_uint_eq(now.failed, before.failed + 2);
    ck_assert_uint_eq(now.realloc, before.realloc);
    api->block_free(NULL, data, 10);
}

TEST(resize_copies_a_shared_tiny_block)
{
    SKIP_WITHOUT_TINY();
    char *data = allocate_tiny_block(10);
    strcpy(data, "contents");
    memrt_meminfo_t *mi;
    ck_assert_int_eq(api->block_meminfo(data, &mi), MEMRT_OK);
    char *own = api->block_realloc(NULL, data, 20);
    ck_assert_ptr_ne(own, data);
    strcpy(own, "mine");
    ck_assert_str_eq(api->get_data(mi), "contents");
    ck_assert_uint_eq(api->refcount(mi), 1);
    api->release(mi);
    api->block_free(NULL, own, 20);
}

typedef struct race {
    void *data;
    memrt_meminfo_t *got[4];
    pthread_barrier_t together;
} race_t;

static void get_meminfo_at_once(size_t index, void *context)
{
    race_t *race = context;
    for (int round = 0; round < 2000; round++) {
        if (index == 0) {
            race->data = api->block_alloc(NULL, 24);
            REQUIRE(race->data != NULL);
        }
        pthread_barrier_wait(&race->together);
        REQUIRE(api->block_meminfo(race->data, &race->got[index]) == MEMRT_OK);
        pthread_barrier_wait(&race->together);
        REQUIRE(race->got[index] == race->got[0]);
        pthread_barrier_wait(&race->together);
        api->release(race->got[index]);
        if (index == 0) {
            api->block_free(NULL, race->data, 24);
        }
    }
}

TEST(concurrent_block_meminfo_calls_return_the_same_meminfo)
{
    SKIP_WITHOUT_TINY();
    books_t before = books_now();
    race_t race;
    pthread_barrier_init(&race.together, NULL, 4);
    crew_run(4, get_meminfo_at_once, &race);
    pthread_barrier_destroy(&race.together);
    books_expect_no_leak(&before);
}

TEST(failed_copy_keeps_the_shared_tiny_block)
{
    SKIP_WITHOUT_TINY();
    void *data = allocate_tiny_block(10);
    pattern_write(data, 10, 6);
    memrt_meminfo_t *mi;
    ck_assert_int_eq(api->block_meminfo(data, &mi), MEMRT_OK);
    suite_fail_all_requests();
    ck_assert_ptr_null(api->block_realloc(NULL, data, 1000));
    suite_allow_requests();
    ck_assert_uint_eq(api->refcount(mi), 2);
    ck_assert(pattern_holds(data, 10, 6));
    api->release(mi);
    api->block_free(NULL, data, 10);
}

/// Blocks of a policy. Only the first thread has a shard for the policy.
typedef struct distant {
    memrt_policy_t *policies[MEMRT__CHUNK + 1], *policy;
    void *tiny, *other;
} distant_t;

static void begin_distant(distant_t *distant)
{
    for (size_t i = 0; i <= MEMRT__CHUNK; i++) {
        ck_assert_int_eq(api->policy_new(NULL, &distant->policies[i]), MEMRT_OK);
    }
    distant->policy = distant->policies[MEMRT__CHUNK];
    api->block_free(NULL, api->block_alloc(distant->policy, 1000), 0); /* makes the shard */
    distant->tiny = api->block_alloc(distant->policy, 5);
    distant->other = api->block_alloc(distant->policy, 1000);
    pattern_write(distant->tiny, 5, 1);
    pattern_write(distant->other, 1000, 2);
}

static void end_distant(distant_t *distant)
{
    ck_assert_uint_eq(stats_of(distant->policy).live, 0);
    ck_assert_uint_eq(stats_of(distant->policy).alloc, stats_of(distant->policy).free);
    for (size_t i = 0; i <= MEMRT__CHUNK; i++) {
        api->policy_release(distant->policies[i]);
    }
}

static void free_both(size_t index, void *context)
{
    (void)index;
    const distant_t *distant = context;
    api->block_free(NULL, distant->tiny, 5);
    api->block_free(NULL, distant->other, 1000);
}

static void resize_without_a_shard(size_t index, void *context)
{
    (void)index;
    distant_t *distant = context;
    api->block_free(NULL, api->block_alloc(NULL, 1000), 0); /* makes the record */
    suite_fail_request(1);
    void *tiny = api->block_realloc(NULL, distant->tiny, 3000); /* counted in the shared shard */
    suite_fail_request(0);
    distant->tiny = tiny == NULL ? distant->tiny : tiny;
    distant->other = api->block_realloc(NULL, distant->other, 2000);
    REQUIRE(pattern_holds(distant->tiny, 5, 1) && pattern_holds(distant->other, 1000, 2));
}

TEST(thread_without_a_record_frees_blocks_of_other_threads)
{
    distant_t distant;
    begin_distant(&distant);
    crew_run(1, free_both, &distant);
    end_distant(&distant);
}

TEST(thread_without_a_shard_resizes_blocks_of_other_threads)
{
    distant_t distant;
    begin_distant(&distant);
    crew_run(1, resize_without_a_shard, &distant);
    free_both(0, &distant);
    end_distant(&distant);
}

/// Return the number of allocations that a scope counted by size.
static uint64_t count_sized_allocations(const memrt_scope_t *scope)
{
    uint64_t sizes[MEMRT_SIZE_BINS], sum = 0;
    api->scope_sizes(scope, sizes);
    for (size_t i = 0; i < MEMRT_SIZE_BINS; i++) {
        sum += sizes[i];
    }
    return sum;
}

TEST(resize_is_no_allocation_in_histogram_of_sizes)
{
    SKIP_WITHOUT_TINY();
    static const size_t sizes[] = {20, 64, 65, 3000000};
    memrt_scope_t *scope, *before;
    ck_assert_int_eq(api->scope_open(NULL, "sized", &scope), MEMRT_OK);
    ck_assert_int_eq(api->scope_enter(scope, &before), MEMRT_OK);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        uint64_t counted = count_sized_allocations(scope);
        void *data = allocate_tiny_block(10);
        data = api->block_realloc(NULL, data, sizes[i]);
        ck_assert_uint_eq(count_sized_allocations(scope) - counted,
                          2); /* allocate_tiny_block() allocates two blocks */
        api->block_free(NULL, data, sizes[i]);
    }
    ck_assert_int_eq(api->scope_enter(before, NULL), MEMRT_OK);
    api->scope_release(scope);
}

TEST(resize_of_unlisted_block_does_not_list_it)
{
    SKIP_WITHOUT_TINY();
    memrt_meminfo_t *found;
    for (size_t round = 0; round < 2; round++) {
        void *data = round == 0 ? allocate_tiny_block(10) : api->block_alloc(NULL, 100);
        int was_on = api->tracking(1);
        data = api->block_realloc(NULL, data, 5000);
        ck_assert_int_eq(api->find(data, &found), MEMRT_ENOENT);
        api->tracking(was_on);
        api->block_free(NULL, data, 5000);
    }
}
