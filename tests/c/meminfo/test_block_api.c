/// Tests of the block functions that NumPy's handler calls.

#include "support/suite.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/pattern.h"
#include "runtime/alloc/guard/guard.h"
#include "runtime/alloc/heap/heap.h"
#include "runtime/event/block_event.h"
#include "runtime/meminfo/tiny.h"
#include "support/books.h"
#include "support/child.h"
#include "support/crew.h"

TEST(calloc_accepts_any_factors_of_the_size)
{
    books_t before = books_now();
    unsigned char *data = api->block_calloc(NULL, 3, 7);
    ck_assert(pattern_is_zero(data, 21));
    ck_assert_uint_eq(stats_of(NULL).live, before.stats.live + 21);
    api->block_free(NULL, data, 21);
    data = api->block_calloc(NULL, 21, 1);
    ck_assert(pattern_is_zero(data, 21));
    api->block_free(NULL, data, 21);
    data = api->block_calloc(NULL, 0, SIZE_MAX);
    ck_assert_ptr_nonnull(data);
    api->block_free(NULL, data, 0);
}

TEST(calloc_overflow_returns_null_and_counts_as_failed)
{
    books_t before = books_now();
    ck_assert_ptr_null(api->block_calloc(NULL, SIZE_MAX / 2, 4));
    ck_assert_ptr_null(api->block_calloc(NULL, 4, SIZE_MAX / 2));
    ck_assert_ptr_null(api->block_calloc(NULL, SIZE_MAX, 1));
    ck_assert_ptr_null(api->block_calloc(NULL, SIZE_MAX, SIZE_MAX));  /* 1 after overflow */
    ck_assert_ptr_null(api->block_calloc(NULL, SIZE_MAX / 2 + 9, 2)); /* 16 */
    books_expect_unchanged(&before);
    ck_assert_uint_eq(stats_of(NULL).failed, before.stats.failed + 5);
}

TEST(free_ignores_a_wrong_size)
{
    static const size_t wrong[] = {0, 1, 99, 101, (size_t)1 << 40, SIZE_MAX};
    books_t before = books_now();
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        void *small = api->block_alloc(NULL, 100), *large = api->block_alloc(NULL, 3000000);
        api->block_free(NULL, small, wrong[i]);
        api->block_free(NULL, large, wrong[i]);
    }
    books_expect_no_leak(&before);
    ck_assert_uint_eq(stats_of(NULL).free, before.stats.free + 12);
}

TEST(free_of_null_does_nothing)
{
    books_t before = books_now();
    api->block_free(NULL, NULL, 0);
    api->block_free(NULL, NULL, 1000);
    books_expect_unchanged(&before);
}

TEST(realloc_of_null_allocates)
{
    void *data = api->block_realloc(NULL, NULL, 100);
    ck_assert_ptr_nonnull(data);
    memset(data, 1, 100);
    api->block_free(NULL, data, 100);
}

TEST(realloc_to_zero_returns_a_usable_block)
{
    void *data = api->block_realloc(NULL, api->block_alloc(NULL, 100), 0);
    ck_assert_ptr_nonnull(data);
    data = api->block_realloc(NULL, data, 10);
    ck_assert_ptr_nonnull(data);
    api->block_free(NULL, data, 0);
}

TEST(block_meminfo_returns_the_same_meminfo_counted_once)
{
    void *data = api->block_alloc(NULL, 100);
    memrt_stats_t before = stats_of(NULL);
    memrt_meminfo_t *one, *other;
    ck_assert_int_eq(api->block_meminfo(data, &one), MEMRT_OK);
    ck_assert_int_eq(api->block_meminfo(data, &other), MEMRT_OK);
    ck_assert_ptr_eq(one, other);
    ck_assert_uint_eq(api->refcount(one), 3);
    ck_assert_uint_eq(stats_of(NULL).mi_alloc, before.mi_alloc + 1);
    api->release(one);
    api->block_free(NULL, data, 0);
    ck_assert_uint_eq(stats_of(NULL).mi_free, before.mi_free);
    ck_assert_uint_eq(api->size(other), 100);
    api->release(other);
    ck_assert_uint_eq(stats_of(NULL).mi_free, before.mi_free + 1);
}

TEST(block_meminfo_finds_inline_meminfo_by_its_data)
{
    memrt_meminfo_t *mi = api->allocate(10), *same;
    ck_assert_int_eq(api->block_meminfo(api->get_data(mi), &same), MEMRT_OK);
    ck_assert_ptr_eq(same, mi);
    api->release(same);
    api->release(mi);
}

TEST_EACH(realloc_of_a_shared_block_copies_and_keeps_the_original, 2)
{
    int was = api->tracking(index);
    memrt_policy_t *policy;
    memrt_policy_options_t settings = {.struct_size = sizeof(settings), .alignment = 65536};
    ck_assert_int_eq(api->policy_new(&settings, &policy), MEMRT_OK);
    void *data = api->block_alloc(policy, 100);
    memrt_meminfo_t *held;
    pattern_write(data, 100, 7);
    ck_assert_int_eq(api->block_meminfo(data, &held), MEMRT_OK);
    void *own = api->block_realloc(policy, data, 200);
    ck_assert_ptr_ne(own, data);
    ck_assert_uint_eq((uintptr_t)own % 65536, 0);
    ck_assert_ptr_eq(api->get_data(held), data);
    ck_assert(pattern_holds(data, 100, 7));
    ck_assert(pattern_holds(own, 100, 7));
    memset(own, 0, 200);
    ck_assert(pattern_holds(data, 100, 7));
    ck_assert_uint_eq(api->refcount(held), 1);
    api->release(held);
    api->block_free(NULL, own, 0);
    api->policy_release(policy);
    api->tracking(was);
}

TEST(failed_realloc_of_a_shared_block_changes_nothing)
{
    void *data = api->block_alloc(NULL, 100);
    memrt_meminfo_t *held;
    pattern_write(data, 100, 7);
    ck_assert_int_eq(api->block_meminfo(data, &held), MEMRT_OK);
    books_t before = books_now();
    ck_assert_ptr_null(api->block_realloc(NULL, data, SIZE_MAX));
    books_expect_unchanged(&before);
    ck_assert_uint_eq(api->refcount(held), 2);
    ck_assert(pattern_holds(data, 100, 7));
    api->release(held);
    api->block_free(NULL, data, 0);
}

static void promote_block(size_t index, void *context)
{
    (void)index;
    memrt_meminfo_t *mi;
    REQUIRE(api->block_meminfo(context, &mi) == MEMRT_OK);
    api->release(mi);
}

TEST(concurrent_block_meminfo_calls_count_a_single_meminfo)
{
    for (int round = 0; round < 200; round++) {
        void *data = api->block_alloc(NULL, 10);
        uint64_t before = stats_of(NULL).mi_alloc;
        crew_run(4, promote_block, data);
        ck_assert_uint_eq(stats_of(NULL).mi_alloc, before + 1);
        api->block_free(NULL, data, 0);
    }
}

/* Second uses of a block in the thread cache, each in a child. */

/// Run a second use of a block in a child. Fails the test unless the child aborts with the message,
/// or the block had guard pages, whose report precedes the default action.
static void expect_refusal(child_fn act, void *context, const char *message)
{
    if (memrt__options.guard_sample == 1) {
        child_expect_signal(act, context, SIGSEGV, "before the start of a freed array of ");
    } else {
        child_expect_abort(act, context, message);
    }
}

typedef struct reuse {
    const char *call;
    void (*act)(void *data);
} reuse_t;

static void free_again(void *data)
{
    api->block_free(NULL, data, 0);
}

static void resize_again(void *data)
{
    api->block_realloc(NULL, data, 40);
}

static const reuse_t reuses[] = {{"block_free", free_again}, {"block_realloc", resize_again}};
static const size_t reused_sizes[] = {1, 16, 64, 65, 100, 1000, 100000, (size_t)1 << 20};

#define REUSES (sizeof(reuses) / sizeof(reuses[0]))
#define REUSED_SIZES (sizeof(reused_sizes) / sizeof(reused_sizes[0]))

typedef struct reuse_case {
    const reuse_t *reuse;
    size_t size;
    int freed_after; ///< number of equal blocks freed between both uses
} reuse_case_t;

static void use_after_free(void *context)
{
    const reuse_case_t *it = context;
    void *data = api->block_alloc(NULL, it->size), *others[3];
    for (int i = 0; i < it->freed_after; i++) {
        others[i] = api->block_alloc(NULL, it->size);
    }
    api->block_free(NULL, data, it->size);
    for (int i = 0; i < it->freed_after; i++) {
        api->block_free(NULL, others[i], it->size);
    }
    it->reuse->act(data);
}

/// Return true when blocks of that size are tiny. Options and tracking can exclude tiny blocks.
static bool is_tiny_size(size_t size)
{
    api->block_free(NULL, api->block_alloc(NULL, 1000), 0); /* creates the record of the thread */
    void *data = api->block_alloc(NULL, size);
    bool tiny = memrt__is_tiny(data);
    api->block_free(NULL, data, size);
    return tiny;
}

TEST_EACH(second_free_or_realloc_after_free_aborts_with_a_message, REUSED_SIZES *REUSES)
{
    if (!memrt__policy_default()->fast) {
        return; /* MEMRT_CACHE is off, so freed memory is malloc's, or MEMRT_CHECK is on */
    }
    const reuse_t *reuse = &reuses[(size_t)index % REUSES];
    size_t size = reused_sizes[(size_t)index / REUSES];
    char message[80];
    if (is_tiny_size(size)) {
        snprintf(message, sizeof(message), "%s of 0x", reuse->call);
    } else {
        snprintf(message, sizeof(message), "the count of references must be at least 1, got 0");
    }
    for (int others = 0; others <= 3; others += 3) {
        reuse_case_t it = {reuse, size, others};
        expect_refusal(use_after_free, &it, message);
    }
}

static memrt_policy_t *create_offset_policy(void)
{
    memrt_policy_options_t options = {.struct_size = sizeof(options), .alignment = 16};
    memrt_policy_t *policy;
    REQUIRE(api->policy_new(&options, &policy) == MEMRT_OK);
    return policy;
}

static const size_t offset_sizes[] = {0, 1, 64, 1000, 200000, (size_t)3 << 20};
#define OFFSET_SIZES (sizeof(offset_sizes) / sizeof(offset_sizes[0]))

TEST_EACH(block_at_16_modulo_64_has_a_meminfo_and_copies, OFFSET_SIZES)
{
    size_t size = offset_sizes[index];
    memrt_policy_t *policy = create_offset_policy();
    char *data = api->block_alloc(policy, size);
    memrt_meminfo_t *mi;
    ck_assert_uint_eq((uintptr_t)data % 64, 16);
    memset(data, 7, size);
    ck_assert_int_eq(api->block_meminfo(data, &mi), MEMRT_OK);
    ck_assert_ptr_eq(mi->data, data);
    ck_assert_uint_eq(mi->size, size);
    ck_assert_uint_eq(api->refcount(mi), 2);
    char *copy = api->block_realloc(policy, data, size + 100); /* shared, so the data is copied */
    ck_assert_ptr_ne(copy, data);
    ck_assert_uint_eq((uintptr_t)copy % 64, 16);
    ck_assert(size == 0 || (copy[0] == 7 && copy[size - 1] == 7));
    api->release(mi);
    api->block_free(policy, copy, 0);
    api->policy_release(policy);
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

static void free_offset_block_twice(void *context)
{
    const size_t *size = context;
    memrt_policy_t *policy = create_offset_policy();
    void *data = api->block_alloc(policy, *size);
    api->block_free(policy, data, 0);
    api->block_free(policy, data, 0);
}

TEST(second_free_of_a_block_at_16_modulo_64_aborts)
{
    size_t small = 1000;
    if (memrt__policy_default()->fast) { /* otherwise freed memory is malloc's or checked */
        expect_refusal(free_offset_block_twice, &small, "must be at least 1, got 0");
    }
}

static void free_foreign(void *context)
{
    (void)context;
    static _Alignas(64) char memory[256];
    memset(memory, 0x41, sizeof(memory));
    api->block_free(NULL, memory + 80, 10);
}

TEST(free_of_a_foreign_address_aborts_with_a_message)
{
    if (memrt__policy_default()->fast) {
        child_expect_abort(free_foreign, NULL, "is not from memrt");
    }
}

static void get_meminfo_after_free(void *context)
{
    memrt_meminfo_t *mi;
    void *data = api->block_alloc(NULL, 16);
    (void)context;
    api->block_free(NULL, data, 16);
    (void)!api->block_meminfo(data, &mi);
}

TEST(meminfo_of_a_freed_tiny_block_aborts_with_a_message)
{
    if (is_tiny_size(16)) {
        child_expect_abort(get_meminfo_after_free, NULL, "block_meminfo of 0x");
    }
}

static void free_twice_with_meminfo(void *context)
{
    memrt_meminfo_t *mi;
    void *data = api->block_alloc(NULL, 16);
    (void)context;
    REQUIRE(api->block_meminfo(data, &mi) == MEMRT_OK);
    api->release(mi);
    api->block_free(NULL, data, 16);
    api->block_free(NULL, data, 16);
}

TEST(second_free_of_a_tiny_block_that_had_a_meminfo_aborts)
{
    if (is_tiny_size(16)) {
        child_expect_abort(free_twice_with_meminfo, NULL, "block_free of 0x");
    }
}

/* Growth in place. */

static const size_t grown_sizes[] = {0, 1, 16, 40, 64, 100, 1000, 5000, 40000, 200000, 3000000};
#define GROWN_SIZES (sizeof(grown_sizes) / sizeof(grown_sizes[0]))

/// Return the only row of the live list with data at `data`.
static memrt_live_t find_row(const void *data)
{
    memrt_live_t *list, found = {0};
    size_t count, rows = 0;
    ck_assert_int_eq(api->live(&list, &count), MEMRT_OK);
    for (size_t i = 0; i < count; i++) {
        if (list[i].data == (uintptr_t)data) {
            found = list[i];
            rows++;
        }
    }
    api->live_free(list);
    ck_assert_uint_eq(rows, 1);
    return found;
}

TEST_EACH(block_grows_to_its_usable_size_at_its_address, 2 * GROWN_SIZES)
{
    size_t size = grown_sizes[(size_t)index / 2];
    int was = api->tracking(index % 2);
    api->block_free(NULL, api->block_alloc(NULL, 1000), 0); /* creates the record of the thread */
    books_t before = books_now();
    void *data = api->block_alloc(NULL, size);
    pattern_write(data, size, 1);
    size_t usable = api->block_usable_size(data);
    uint64_t resizes = stats_of(NULL).realloc;
    ck_assert_uint_ge(usable, size);
    ck_assert_int_eq(api->block_try_expand(data, usable), MEMRT_OK);
    ck_assert(pattern_holds(data, size, 1));
    pattern_write(data, usable, 2);
    ck_assert_uint_eq(api->block_usable_size(data), usable);
    memrt_stats_t grown = stats_of(NULL);
    ck_assert_uint_eq(grown.live, before.stats.live + usable);
    ck_assert_uint_eq(grown.total, before.stats.total + usable);
    ck_assert_uint_eq(grown.realloc, resizes + (usable > size));
    if (index % 2) {
        ck_assert_uint_eq(find_row(data).size, usable);
    }
    api->block_free(NULL, data, usable);
    books_expect_no_leak(&before);
    api->tracking(was);
}

TEST_EACH(block_of_good_size_has_no_room_left, 2 * GROWN_SIZES)
{
    size_t size = grown_sizes[(size_t)index / 2];
    memrt_policy_t *policy = create_offset_policy(), *named = index % 2 ? policy : NULL;
    api->block_free(NULL, api->block_alloc(NULL, 1000), 0); /* creates the record of the thread */
    size_t good = api->block_good_size(named, size);
    ck_assert_uint_ge(good, size);
    ck_assert_uint_eq(api->block_good_size(named, good), good);
    void *data = api->block_alloc(named, good);
    if (memrt__is_heap(memrt__default_allocator())) { /* malloc's rounding is not known before */
        ck_assert_uint_eq(api->block_usable_size(data), good);
    }
    api->block_free(named, data, good);
    ck_assert_uint_eq(api->block_good_size(named, SIZE_MAX), SIZE_MAX);
    ck_assert_uint_ge(api->block_good_size(named, PTRDIFF_MAX - 1), PTRDIFF_MAX - 1);
    api->policy_release(policy);
}

/// Expect a refused growth of a block that changes nothing.
static void expect_refused_growth(void *data, size_t old_size, size_t size, memrt_status_t status)
{
    books_t before = books_now();
    pattern_write(data, old_size, 3);
    ck_assert_int_eq(api->block_try_expand(data, size), status);
    ck_assert(pattern_holds(data, old_size, 3));
    books_expect_unchanged(&before);
    ck_assert_uint_eq(stats_of(NULL).failed, before.stats.failed);
}

TEST(growth_without_room_changes_and_counts_nothing)
{
    api->block_free(NULL, api->block_alloc(NULL, 1000), 0); /* creates the record of the thread */
    void *data = api->block_alloc(NULL, 100), *tiny = api->block_alloc(NULL, 10);
    books_t before = books_now();
    expect_refused_growth(data, 100, SIZE_MAX, MEMRT_ENOMEM);
    expect_refused_growth(data, 100, (size_t)PTRDIFF_MAX - 4096, MEMRT_ENOMEM);
    expect_refused_growth(data, 100, api->block_usable_size(data) + 1, MEMRT_ENOMEM);
    ck_assert_int_eq(api->block_try_expand(tiny, 5000), MEMRT_ENOMEM);
    ck_assert_int_eq(api->block_try_expand(data, 99), MEMRT_OK);
    ck_assert_int_eq(api->block_try_expand(tiny, 10), MEMRT_OK);
    books_expect_unchanged(&before);
    api->block_free(NULL, tiny, 0);
    api->block_free(NULL, data, 0);
}

TEST_EACH(growth_of_a_shared_block_is_busy, 2)
{
    size_t size = index == 0 ? 100 : 10;
    api->block_free(NULL, api->block_alloc(NULL, 1000), 0); /* creates the record of the thread */
    void *data = api->block_alloc(NULL, size);
    memrt_meminfo_t *mi;
    ck_assert_int_eq(api->block_meminfo(data, &mi), MEMRT_OK);
    books_t before = books_now();
    ck_assert_int_eq(api->block_try_expand(data, size + 1), MEMRT_EBUSY);
    ck_assert_uint_ge(api->block_usable_size(data), size);
    ck_assert_uint_eq(api->refcount(mi), 2);
    ck_assert_uint_eq(api->size(mi), size);
    books_expect_unchanged(&before);
    api->release(mi);
    api->block_free(NULL, data, 0);
}

TEST(growth_of_memory_from_an_external_allocator_is_not_supported)
{
    memrt_external_allocator_t external = {external_malloc, NULL, external_free, NULL};
    memrt_meminfo_t *mi = api->allocate_external(100, &external);
    ck_assert_ptr_nonnull(mi);
    expect_refused_growth(api->get_data(mi), 100, 101, MEMRT_ENOTSUP);
    ck_assert_uint_eq(api->block_usable_size(api->get_data(mi)), 100);
    api->release(mi);
}

TEST_EACH(growth_in_place_respects_the_limit_of_the_policy, 2)
{
    size_t size = index == 0 ? 100 : 17; /* with and without a header */
    memrt_policy_t *policy;
    ck_assert_int_eq(api->policy_new(NULL, &policy), MEMRT_OK);
    api->block_free(policy, api->block_alloc(policy, size), 0); /* creates the record */
    void *data = api->block_alloc(policy, size);
    size_t usable = api->block_usable_size(data);
    ck_assert_int_eq(api->limit_set(policy, NULL, size + 1), MEMRT_OK);
    if (usable > size + 1) { /* malloc of sanitizers leaves no room */
        expect_refused_growth(data, size, usable, MEMRT_ENOMEM);
        ck_assert_int_eq(api->block_try_expand(data, size + 1), MEMRT_OK);
    }
    api->block_free(policy, data, 0);
    data = api->block_alloc(policy, size + 1);
    ck_assert_ptr_nonnull(data); /* refused growth took nothing */
    api->block_free(policy, data, 0);
    api->policy_release(policy);
}

TEST(inline_meminfo_that_grows_keeps_names_and_serial_number)
{
    memrt_new_options_t options = {.struct_size = sizeof(options), .name = "grown"};
    memrt_meminfo_t *mi;
    memrt_holder_t row;
    ck_assert_int_eq(api->meminfo_new(100, &options, &mi), MEMRT_OK);
    void *data = api->get_data(mi);
    ck_assert_int_eq(api->acquire_as(mi, MEMRT_HOLDER_REFERENCE, "second"), MEMRT_OK);
    api->release(mi);
    memrt_live_t before = find_row(data);
    size_t grown = memrt__size_min(api->block_usable_size(data), 101); /* 100: without room */
    ck_assert_int_eq(api->block_try_expand(data, grown), MEMRT_OK);
    memrt_live_t after = find_row(data);
    ck_assert_uint_eq(after.size, grown);
    ck_assert_uint_eq(after.id, before.id);
    ck_assert_str_eq(after.name, "grown");
    ck_assert_uint_eq(api->holders(mi, &row, sizeof(row), 1), 1);
    api->release_as(mi, MEMRT_HOLDER_REFERENCE, "second");
}

TEST(realloc_of_a_tracked_block_with_room_keeps_the_address)
{
    int was = api->tracking(1);
    bool guarded = memrt__is_guard(&memrt__policy_default()->allocator);
    void *data = api->block_alloc(NULL, 100);
    uintptr_t address = (uintptr_t)data;
    pattern_write(data, 100, 4);
    memrt_live_t before = find_row(data);
    size_t usable = api->block_usable_size(data);
    data = api->block_realloc(NULL, data, usable);
    ck_assert(pattern_holds(data, 100, 4));
    ck_assert(usable == 100 || (address == (uintptr_t)data) != guarded);
    ck_assert_uint_eq(find_row(data).id, before.id);
    data = api->block_realloc(NULL, data, 5000);
    ck_assert(pattern_holds(data, 100, 4));
    ck_assert_uint_eq(find_row(data).size, 5000);
    api->block_free(NULL, data, 0);
    api->tracking(was);
}

enum { GROWTHS = 300 };

/// Block of which one thread changes the size, while another thread acquires and releases it.
typedef struct grown_block {
    char *data;
    size_t done; ///< atomic; not 0: the growth has ended
} grown_block_t;

static void grow_or_find(size_t index, void *context)
{
    grown_block_t *block = context;
    for (size_t size = 100; index == 0 && size < 100 + GROWTHS; size++) {
        memrt_status_t status = api->block_try_expand(block->data, size);
        REQUIRE(status == MEMRT_OK || status == MEMRT_EBUSY || status == MEMRT_ENOMEM);
        block->data[99] = 1;
    }
    if (index == 0) {
        memrt__store_release(&block->done, 1);
    }
    while (memrt__load_acquire(&block->done) == 0) {
        memrt_meminfo_t *mi = NULL;
        if (api->find(block->data, &mi) == MEMRT_OK) {
            REQUIRE(api->get_data(mi) == block->data);
            api->release(mi);
        }
    }
}

TEST(growth_beside_threads_that_find_the_block)
{
    int was = api->tracking(1);
    books_t before = books_now();
    grown_block_t block = {.data = api->block_alloc(NULL, 100)};
    crew_run(2, grow_or_find, &block);
    api->block_free(NULL, block.data, 0);
    books_expect_no_leak(&before);
    api->tracking(was);
}

static void expand_after_free(void *context)
{
    const size_t *size = context;
    void *data = api->block_alloc(NULL, *size);
    api->block_free(NULL, data, *size);
    (void)!api->block_try_expand(data, *size + 1);
}

TEST(growth_of_a_freed_block_aborts_with_a_message)
{
    size_t sizes[] = {10, 1000};
    for (size_t i = 0; i < 2 && memrt__policy_default()->fast; i++) {
        bool tiny = is_tiny_size(sizes[i]);
        expect_refusal(expand_after_free, &sizes[i],
                       tiny ? "block_try_expand of 0x" : "must be at least 1, got 0");
    }
}
