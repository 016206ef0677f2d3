/// Tests of the look-up of a MemInfo by its data.

#include "support/suite.h"

#include <stdlib.h>
#include <string.h>

#include "conformance/pattern.h"
#include "runtime/alloc/heap/heap.h"
#include "runtime/base/atomics.h"
#include "runtime/base/size.h"
#include "runtime/config/options.h"
#include "support/books.h"
#include "support/crew.h"

/// Count the rows of the live list over `data`. Copies the first row to `*row`.
static size_t count_rows(const void *data, memrt_live_t *row)
{
    memrt_live_t *list;
    size_t count, hits = 0;
    ck_assert_int_eq(api->live(&list, &count), MEMRT_OK);
    for (size_t i = 0; i < count; i++) {
        ck_assert(i == 0 || list[i - 1].id < list[i].id);
        if (list[i].data == (uintptr_t)data && hits++ == 0) {
            *row = list[i];
        }
    }
    api->live_free(list);
    return hits;
}

static void expect_found(const void *data, const memrt_meminfo_t *expected)
{
    memrt_meminfo_t *found;
    ck_assert_int_eq(api->find(data, &found), MEMRT_OK);
    ck_assert_ptr_eq(found, expected);
    ck_assert_uint_ge(api->refcount(found), 2);
    api->release(found);
}

TEST(tracked_meminfo_is_found_only_by_its_first_byte)
{
    static char foreign[100];
    int was = api->tracking(1);
    memrt_meminfo_t *inner = api->allocate(100), *adopted;
    ck_assert_int_eq(api->meminfo_adopt(foreign, 100, NULL, &adopted), MEMRT_OK);
    expect_found(api->get_data(inner), inner);
    expect_found(foreign, adopted);
    memrt_meminfo_t *none = NULL;
    ck_assert_int_eq(api->find((char *)api->get_data(inner) + 1, &none), MEMRT_ENOENT);
    ck_assert_int_eq(api->find(foreign + 8, &none), MEMRT_ENOENT);
    ck_assert_int_eq(api->find(NULL, &none), MEMRT_ENOENT);
    ck_assert_int_eq(api->find((void *)(uintptr_t)1, &none), MEMRT_ENOENT);
    ck_assert_ptr_null(none);
    api->release(inner);
    api->release(adopted);
    api->tracking(was);
}

TEST(name_at_creation_is_kept_after_999_unnamed_meminfos)
{
    static char data[8];
    memrt_new_options_t named = {.struct_size = sizeof(named), .name = "named"};
    char name[MEMRT_NAME_MAX + 1];
    for (int i = 0; i < 1000; i++) {
        memrt_meminfo_t *mi;
        ck_assert_int_eq(api->meminfo_adopt(data, 8, i < 999 ? NULL : &named, &mi), MEMRT_OK);
        api->get_name(mi, name);
        ck_assert_str_eq(name, i < 999 ? "" : "named");
        api->release(mi);
    }
}

TEST(untracked_meminfo_is_found_after_set_name)
{
    if (memrt__options.check) { /* checking keeps tracking on */
        return;
    }
    int was = api->tracking(0);
    memrt_meminfo_t *mi = api->allocate(100), *found;
    ck_assert_int_eq(api->find(api->get_data(mi), &found), MEMRT_ENOENT);
    ck_assert_int_eq(api->set_name(mi, "known"), MEMRT_OK);
    expect_found(api->get_data(mi), mi);
    api->release(mi);
    api->tracking(was);
}

/// Allocator without metadata. A header can stand right before other data.
typedef struct pool {
    _Alignas(64) char bytes[4096];
    size_t used;
} pool_t;

static void *pool_alloc(void *ctx, size_t size, size_t align)
{
    pool_t *pool = ctx;
    size_t start = (pool->used + align - 1) & ~(align - 1);
    pool->used = start + size;
    return pool->used <= sizeof(pool->bytes) ? pool->bytes + start : NULL;
}

static void pool_free(void *ctx, void *ptr, size_t size, size_t align)
{
    (void)ctx, (void)ptr, (void)size, (void)align;
}

TEST(adopted_data_right_behind_another_header_is_found)
{
    static pool_t pool;
    memrt_allocator_t allocator = {.struct_size = sizeof(allocator),
                                   .version = MEMRT_ALLOCATOR_VERSION,
                                   .ctx = &pool,
                                   .alloc = pool_alloc,
                                   .free = pool_free};
    memrt_policy_options_t settings = {.struct_size = sizeof(settings), .allocator = &allocator};
    memrt_new_options_t options = {.struct_size = sizeof(options), .name = "neighbour"};
    ck_assert_int_eq(api->policy_new(&settings, &options.policy), MEMRT_OK);
    static char elsewhere[8];
    memrt_meminfo_t *header, *behind;
    ck_assert_int_eq(api->meminfo_adopt(elsewhere, 8, &options, &header), MEMRT_OK);
    void *data = (char *)header + MEMRT_HEADER_SIZE;
    memrt_new_options_t named = {.struct_size = sizeof(named), .name = "behind"};
    ck_assert_int_eq(api->meminfo_adopt(data, 8, &named, &behind), MEMRT_OK);
    expect_found(data, behind);
    api->release(behind);
    api->release(header);
    api->policy_release(options.policy);
}

TEST(live_row_has_size_refcount_kind_and_name)
{
    int was = api->tracking(1);
    memrt_meminfo_t *mi = api->allocate(777);
    ck_assert_int_eq(api->set_name(mi, "listed"), MEMRT_OK);
    api->acquire(mi);
    memrt_live_t row;
    ck_assert_uint_eq(count_rows(api->get_data(mi), &row), 1);
    ck_assert_uint_eq(row.meminfo, (uintptr_t)mi);
    ck_assert_uint_eq(row.size, 777);
    ck_assert_uint_eq(row.refcount, 2);
    ck_assert_uint_eq(row.policy, 0);
    ck_assert_uint_eq(row.kind, MEMRT_KIND_INLINE);
    ck_assert_str_eq(row.name, "listed");
    ck_assert_uint_lt(row.age_ns, (uint64_t)SUITE_TIMEOUT * 1000000000);
    api->release(mi);
    api->release(mi);
    api->tracking(was);
}

TEST(resized_block_keeps_its_id_in_the_live_list)
{
    int was = api->tracking(1);
    void *data = api->block_alloc(NULL, 100);
    memrt_live_t before, after;
    ck_assert_uint_eq(count_rows(data, &before), 1);
    data = api->block_realloc(NULL, data, 2000000);
    ck_assert_uint_eq(count_rows(data, &after), 1);
    ck_assert_uint_eq(after.id, before.id);
    ck_assert_uint_eq(after.size, 2000000);
    ck_assert_uint_eq(after.kind, MEMRT_KIND_BLOCK);
    api->block_free(NULL, data, 0);
    ck_assert_uint_eq(count_rows(data, &after), 0);
    api->tracking(was);
}

/// Ways to create a buffer that have a fast path.
enum { ALLOCATE, BLOCK, TINY, ADOPT, WAYS };

static void *allocate_buffer(int way, memrt_meminfo_t **mi)
{
    static char foreign[8];
    *mi = NULL;
    switch (way) {
    case ALLOCATE:
        *mi = api->allocate(100);
        return api->get_data(*mi);
    case BLOCK:
        return api->block_alloc(NULL, 100);
    case TINY:
        return api->block_alloc(NULL, 8);
    default:
        ck_assert_int_eq(api->meminfo_adopt(foreign, 8, NULL, mi), MEMRT_OK);
        return foreign;
    }
}

static void free_buffer(void *data, memrt_meminfo_t *mi)
{
    if (mi != NULL) {
        api->release(mi);
    } else {
        api->block_free(NULL, data, 0);
    }
}

TEST_EACH(tracked_allocation_after_1000_earlier_frees_is_listed, WAYS)
{
    memrt_meminfo_t *mi;
    for (int i = 0; i < 1000; i++) {
        void *data = allocate_buffer(index, &mi);
        free_buffer(data, mi);
    }
    int was = api->tracking(1);
    void *data = allocate_buffer(index, &mi);
    memrt_live_t row;
    ck_assert_uint_eq(count_rows(data, &row), 1);
    free_buffer(data, mi);
    ck_assert_uint_eq(count_rows(data, &row), 0);
    api->tracking(was);
}

TEST(only_allocations_made_while_tracking_are_listed)
{
    if (memrt__options.check) { /* checking keeps tracking on */
        return;
    }
    int was = api->tracking(0);
    memrt_meminfo_t *before = api->allocate(10);
    ck_assert_int_eq(api->tracking(1), 0);
    memrt_meminfo_t *during = api->allocate(10);
    ck_assert_int_eq(api->tracking(0), 1);
    memrt_meminfo_t *after = api->allocate(10);
    memrt_live_t row;
    ck_assert_uint_eq(count_rows(api->get_data(before), &row), 0);
    ck_assert_uint_eq(count_rows(api->get_data(during), &row), 1);
    ck_assert_uint_eq(count_rows(api->get_data(after), &row), 0);
    api->release(before);
    api->release(during);
    api->release(after);
    api->tracking(was);
}

TEST(live_list_holds_3000_allocations)
{
    enum { MANY = 3000 };
    static memrt_meminfo_t *all[MANY];
    int was = api->tracking(1);
    for (size_t i = 0; i < MANY; i++) {
        all[i] = api->allocate(i);
    }
    memrt_live_t *list;
    size_t count, bytes = 0;
    ck_assert_int_eq(api->live(&list, &count), MEMRT_OK);
    ck_assert_uint_ge(count, MANY);
    for (size_t i = count - MANY; i < count; i++) {
        ck_assert_uint_eq(list[i].size, i - (count - MANY));
        bytes += list[i].size;
    }
    api->live_free(list);
    ck_assert_uint_eq(bytes, (size_t)MANY * (MANY - 1) / 2);
    for (size_t i = 0; i < MANY; i++) {
        api->release(all[i]);
    }
    api->tracking(was);
}

typedef struct race {
    size_t data; ///< release store by the owner, acquire load by finders; 0: no data now
    size_t stop;
    size_t found, dtors;
} race_t;

static void check_and_poison(void *data, size_t size, void *info)
{
    race_t *race = info;
    REQUIRE(pattern_holds(data, size, 5));
    memset(data, 0xDD, size);
    memrt__fetch_add_relaxed(&race->dtors, 1);
}

#define RACES 3000

static void make_and_release(race_t *race)
{
    memrt_new_options_t options = {
        .struct_size = sizeof(options), .dtor = check_and_poison, .dtor_info = race};
    for (size_t i = 0; i < RACES; i++) {
        memrt_meminfo_t *mi;
        REQUIRE(api->meminfo_new(64, &options, &mi) == MEMRT_OK);
        pattern_write(api->get_data(mi), 64, 5);
        memrt__store_release(&race->data, (size_t)api->get_data(mi));
        while (i == 0 && memrt__load_acquire(&race->found) == 0) { /* wait for the finders */
        }
        for (volatile size_t pause = 0; pause < i % 200; pause++) {
        }
        api->release(mi);
    }
    memrt__store_release(&race->stop, 1);
}

/// Check the life of a found MemInfo: alive and complete until the finder's release, even if the
/// owner releases the MemInfo at the same moment.
static void find_and_release(race_t *race)
{
    while (memrt__load_acquire(&race->stop) == 0) {
        void *data = (void *)memrt__load_acquire(&race->data);
        memrt_meminfo_t *mi;
        if (data != NULL && api->find(data, &mi) == MEMRT_OK) {
            REQUIRE(api->get_data(mi) == data);
            REQUIRE(api->refcount(mi) >= 1);
            api->release(mi);
            memrt__fetch_add_relaxed(&race->found, 1);
        }
    }
}

static void race_with_release(size_t index, void *context)
{
    if (index == 0) {
        make_and_release(context);
    } else {
        find_and_release(context);
    }
}

TEST(find_racing_last_release_returns_live_meminfo_or_nothing)
{
    int was = api->tracking(1);
    race_t shared = {0};
    crew_run(3, race_with_release, &shared);
    ck_assert_uint_eq(shared.dtors, RACES);
    api->tracking(was);
}

static void resize_or_find(size_t index, void *context)
{
    race_t *shared = context;
    if (index != 0) {
        find_and_release(shared);
        return;
    }
    char *data = api->block_alloc(NULL, 64);
    for (size_t i = 0; i < RACES; i++) {
        memrt__store_release(&shared->data, (size_t)data);
        data = api->block_realloc(NULL, data, 64 + i % 100);
        REQUIRE(data != NULL);
    }
    api->block_free(NULL, data, 0);
    memrt__store_release(&shared->stop, 1);
}

TEST(find_racing_resize_returns_block_at_its_address)
{
    int was = api->tracking(1);
    race_t shared = {0};
    crew_run(3, resize_or_find, &shared);
    api->tracking(was);
}

static void list_or_churn(size_t index, void *context)
{
    race_t *shared = context;
    if (index == 0) {
        for (int i = 0; i < 200; i++) {
            memrt_live_t *list;
            size_t count;
            REQUIRE(api->live(&list, &count) == MEMRT_OK);
            for (size_t row = 0; row < count; row++) {
                REQUIRE(list[row].refcount > 0 && list[row].size < 100000);
            }
            api->live_free(list);
        }
        memrt__store_release(&shared->stop, 1);
        return;
    }
    while (memrt__load_acquire(&shared->stop) == 0) {
        void *data = api->block_realloc(NULL, api->block_alloc(NULL, 50), 500);
        memrt_meminfo_t *mi = api->allocate(50);
        REQUIRE(api->set_name(mi, "churned") == MEMRT_OK);
        api->release(mi);
        api->block_free(NULL, data, 0);
    }
}

TEST(live_list_rows_are_valid_during_concurrent_changes)
{
    int was = api->tracking(1);
    race_t shared = {0};
    crew_run(3, list_or_churn, &shared);
    api->tracking(was);
}

TEST(resizable_meminfo_is_listed_once_and_found_by_its_data)
{
    memrt_meminfo_t *mi;
    memrt_live_t row;
    int was = api->tracking(1);
    ck_assert_int_eq(api->resizable_new(100, NULL, &mi), MEMRT_OK);
    ck_assert_uint_eq(count_rows(api->get_data(mi), &row), 1);
    ck_assert_uint_eq(row.meminfo, (uintptr_t)mi);
    expect_found(api->get_data(mi), mi);
    ck_assert_ptr_nonnull(api->resizable_realloc(mi, 5000000));
    ck_assert_uint_eq(count_rows(api->get_data(mi), &row), 1);
    ck_assert_uint_eq(row.size, 5000000);
    void *old = api->get_data(mi);
    ck_assert_ptr_nonnull(api->resizable_alloc(mi, 10));
    ck_assert_uint_eq(count_rows(old, &row),
                      1); /* owned by the caller now, and listed as a block */
    ck_assert_uint_eq(row.kind, MEMRT_KIND_BLOCK);
    api->resizable_free(mi, old);
    api->release(mi);
    api->tracking(was);
}

/// Expect that each tested address in `size` bytes from `data` on leads to the buffer.
static memrt_location_t expect_located(const char *data, size_t size)
{
    memrt_location_t found = {.struct_size = sizeof(found)};
    size_t last = size == 0 ? 0 : size - 1, offsets[] = {0, last / 3, last / 2, last};
    for (size_t i = 0; i < sizeof(offsets) / sizeof(offsets[0]); i++) {
        ck_assert_int_eq(api->locate(data + offsets[i], &found), MEMRT_OK);
        ck_assert_uint_eq(found.data, (uintptr_t)data);
        ck_assert_uint_eq(found.size, size);
    }
    return found;
}

static void expect_nothing_located(const void *address)
{
    memrt_location_t found = {.struct_size = sizeof(found), .size = 77};
    ck_assert_int_eq(api->locate(address, &found), MEMRT_ENOENT);
    ck_assert_uint_eq(found.size, 77);
}

static const size_t located_sizes[] = {0,     1,       16,      64,      65,      1000,
                                       40000, 1 << 20, 3000000, 5 << 20, 40 << 20};
#define LOCATED_SIZES (sizeof(located_sizes) / sizeof(located_sizes[0]))

/// Return whether all blocks are found without tracking.
static bool has_heap(void)
{
    return memrt__is_heap(memrt__default_allocator()) && !memrt__options.check;
}

TEST_EACH(blocks_are_located_by_inner_addresses, 2 * LOCATED_SIZES)
{
    size_t size = located_sizes[(size_t)index / 2];
    int was = api->tracking(index % 2 || !has_heap());
    api->block_free(NULL, api->block_alloc(NULL, 1000), 0); /* creates the record of the thread */
    char *data[3];
    for (size_t i = 0; i < 3; i++) {
        data[i] = api->block_alloc(NULL, size);
        ck_assert_ptr_nonnull(data[i]);
    }
    for (size_t i = 0; i < 3; i++) {
        memrt_location_t found = expect_located(data[i], size);
        ck_assert((found.id != 0) == (api->tracking_enabled() != 0));
    }
    expect_nothing_located(data[1] - 8); /* in the header */
    if (api->block_usable_size(data[1]) > memrt__size_max(size, 1)) {
        expect_nothing_located(data[1] + memrt__size_max(size, 1));
    }
    uintptr_t freed = (uintptr_t)data[1];
    api->block_free(NULL, data[1], size);
    expect_nothing_located((void *)freed);
    expect_located(data[0], size);
    api->block_free(NULL, data[0], size);
    api->block_free(NULL, data[2], size);
    api->tracking(was);
}

TEST_EACH(aligned_blocks_are_located, 2 * 6)
{
    static const size_t aligns[] = {16, 64, 128, 4096, 65536, (size_t)2 << 20};
    size_t size = index % 2 ? 3000000 : 1000;
    memrt_policy_options_t options = {.struct_size = sizeof(options),
                                      .alignment = aligns[(size_t)index / 2]};
    memrt_policy_t *policy;
    int was = api->tracking(!has_heap());
    ck_assert_int_eq(api->policy_new(&options, &policy), MEMRT_OK);
    char *data = api->block_alloc(policy, size);
    memset(data, 0x55, size);
    expect_located(data, size);
    expect_nothing_located(data - 1);
    api->block_free(policy, data, size);
    api->policy_release(policy);
    api->tracking(was);
}

TEST(meminfos_of_all_kinds_are_located)
{
    static char foreign[100];
    int was = api->tracking(1);
    memrt_meminfo_t *made = api->allocate(100), *adopted, *resizable;
    ck_assert_int_eq(api->meminfo_adopt(foreign, 100, NULL, &adopted), MEMRT_OK);
    ck_assert_int_eq(api->resizable_new(100, NULL, &resizable), MEMRT_OK);
    ck_assert_uint_eq(expect_located(api->get_data(made), 100).meminfo, (uintptr_t)made);
    ck_assert_uint_eq(expect_located(foreign, 100).meminfo, (uintptr_t)adopted);
    expect_located(api->get_data(resizable), 100);
    expect_nothing_located(adopted); /* a header without data behind it */
    api->resizable_free(resizable, api->get_data(resizable));
    expect_nothing_located(&was);
    api->release(resizable);
    api->release(made);
    api->release(adopted);
    expect_nothing_located(foreign);
    api->tracking(was);
}

static void expect_account(const void *data, uint32_t policy, uint32_t scope)
{
    memrt_location_t found = {.struct_size = sizeof(found)};
    ck_assert_int_eq(api->locate(data, &found), MEMRT_OK);
    ck_assert_uint_eq(found.policy, policy);
    ck_assert_uint_eq(found.scope, scope);
}

TEST(located_buffers_have_policy_and_scope)
{
    static const size_t sizes[] = {10, 100, 3000000};
    static char foreign[100];
    memrt_policy_t *policy;
    memrt_scope_t *scope;
    memrt_meminfo_t *adopted;
    ck_assert_int_eq(api->policy_new(NULL, &policy), MEMRT_OK);
    ck_assert_int_eq(api->scope_open(NULL, "located", &scope), MEMRT_OK);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]) && has_heap(); i++) {
        char *outside = api->block_alloc(policy, sizes[i]);
        ck_assert_int_eq(api->scope_enter(scope, NULL), MEMRT_OK);
        char *inside = api->block_alloc(NULL, sizes[i]);
        ck_assert_int_eq(api->scope_enter(NULL, NULL), MEMRT_OK);
        expect_account(outside + sizes[i] / 2, api->policy_index(policy), 0);
        expect_account(inside + sizes[i] / 2, 0, api->scope_id(scope));
        api->block_free(policy, outside, sizes[i]);
        api->block_free(NULL, inside, sizes[i]);
    }
    memrt_new_options_t options = {
        .struct_size = sizeof(options), .policy = policy, .name = "located"};
    ck_assert_int_eq(api->meminfo_adopt(foreign, 100, &options, &adopted), MEMRT_OK);
    expect_account(foreign + 50, api->policy_index(policy), 0);
    memrt_location_t brief = {.struct_size = 40, .policy = 77};
    ck_assert_int_eq(api->locate(foreign, &brief), MEMRT_OK);
    ck_assert_uint_eq(brief.policy, 77);
    api->release(adopted);
    api->scope_release(scope);
    api->policy_release(policy);
}

TEST(other_addresses_are_not_located)
{
    static char foreign[100];
    void *heap = malloc(100);
    memrt_location_t brief = {.struct_size = 8};
    int was = api->tracking(0);
    const void *addresses[] = {NULL,
                               (void *)1,
                               foreign,
                               heap,
                               &brief,
                               (void *)(uintptr_t)SIZE_MAX,
                               (void *)expect_located,
                               (void *)(uintptr_t)((size_t)1 << 47)};
    for (size_t i = 0; i < sizeof(addresses) / sizeof(addresses[0]); i++) {
        expect_nothing_located(addresses[i]);
    }
    memrt_meminfo_t *mi = api->allocate(100);
    uintptr_t segment = (uintptr_t)api->get_data(mi) & ~(uintptr_t)(((size_t)4 << 20) - 1);
    for (size_t step = 0; step < ((size_t)4 << 20) && has_heap(); step += 4096) {
        memrt_location_t found = {.struct_size = sizeof(found)};
        (void)!api->locate((void *)(segment + step), &found); /* never crashes */
    }
    ck_assert_int_eq(api->locate(foreign, &brief), MEMRT_EINVAL);
    api->release(mi);
    free(heap);
    api->tracking(was);
}

static void locate_beside_frees(size_t index, void *context)
{
    char **blocks = context, *own = api->block_alloc(NULL, 1000);
    for (size_t round = 0; round < 300; round++) {
        memrt_location_t found = {.struct_size = sizeof(found)};
        if (index == 0) {
            api->block_free(NULL, blocks[round % 2], 0);
            blocks[round % 2] = api->block_alloc(NULL, round % 2 ? 100 : 3000000);
        } else {
            memrt_status_t status = api->locate(own + round, &found);
            REQUIRE(!has_heap() || (status == MEMRT_OK && found.data == (uintptr_t)own));
        }
    }
    api->block_free(NULL, own, 1000);
}

TEST(block_is_located_beside_threads_that_allocate_and_free)
{
    char *blocks[] = {api->block_alloc(NULL, 100), api->block_alloc(NULL, 3000000)};
    crew_run(3, locate_beside_frees, blocks);
    api->block_free(NULL, blocks[0], 0);
    api->block_free(NULL, blocks[1], 0);
}
