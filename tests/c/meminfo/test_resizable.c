#include "support/suite.h"

#include <string.h>

#include "conformance/pattern.h"
#include "runtime/alloc/allocator.h"
#include "runtime/base/atomics.h"
#include "runtime/config/options.h"
#include "support/books.h"
#include "support/child.h"
#include "support/allocators/counting.h"
#include "support/crew.h"
#include "support/kernel.h"
#include "support/allocators/failing.h"

static memrt_meminfo_t *create_resizable(size_t size, const memrt_new_options_t *options)
{
    memrt_meminfo_t *mi;
    ck_assert_int_eq(api->resizable_new(size, options, &mi), MEMRT_OK);
    return mi;
}

TEST(resizable_meminfo_keeps_contents_through_resizes)
{
    static const size_t steps[] = {1, 5000, 0, 2000000, 3, 1048576, 70};
    memrt_meminfo_t *mi = create_resizable(100, NULL);
    size_t size = 100;
    pattern_write(api->get_data(mi), size, 1);
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        void *data = api->resizable_realloc(mi, steps[i]);
        ck_assert_ptr_nonnull(data);
        ck_assert_ptr_eq(api->get_data(mi), data);
        ck_assert_uint_eq(api->size(mi), steps[i]);
        ck_assert(pattern_holds(data, size < steps[i] ? size : steps[i], 1));
        size = steps[i];
        pattern_write(data, size, 1);
    }
    api->release(mi);
}

TEST(resizable_meminfo_can_start_zeroed_or_aligned)
{
    memrt_new_options_t options = {.struct_size = sizeof(options), .zeroed = 1};
    for (int round = 0; round < 2; round++) {
        memrt_meminfo_t *mi = create_resizable(1000, &options);
        ck_assert(pattern_is_zero(api->get_data(mi), 1000));
        memset(api->get_data(mi), 0xFF, 1000);
        api->release(mi);
    }
    options = (memrt_new_options_t){.struct_size = sizeof(options), .alignment = 4096};
    memrt_meminfo_t *mi = create_resizable(1000, &options);
    ck_assert_uint_eq((uintptr_t)api->get_data(mi) % 4096, 0);
    api->release(mi);
}

static const size_t lefts[] = {100, 100, 5000, 100, 300000, 100};

TEST(resizable_meminfo_works_in_recycled_memory)
{
    for (size_t i = 0; i < sizeof(lefts) / sizeof(lefts[0]); i++) {
        memrt_meminfo_t *mi = create_resizable(lefts[i], NULL);
        ck_assert_uint_eq(api->size(mi), lefts[i]);
        ck_assert_uint_eq(api->refcount(mi), 1);
        pattern_write(api->get_data(mi), lefts[i], 2);
        ck_assert(pattern_holds(api->get_data(mi), lefts[i], 2));
        api->release(mi);
    }
}

TEST(failed_resize_keeps_pointer_size_contents_and_refcount)
{
    memrt_allocator_t failing;
    ck_assert_int_eq(failing_new(memrt__default_allocator(), &failing), MEMRT_OK);
    memrt_policy_options_t settings = {.struct_size = sizeof(settings), .allocator = &failing};
    memrt_new_options_t options = {.struct_size = sizeof(options)};
    ck_assert_int_eq(api->policy_new(&settings, &options.policy), MEMRT_OK);
    memrt_meminfo_t *mi = create_resizable(1000, &options);
    void *data = api->get_data(mi);
    pattern_write(data, 1000, 4);
    books_t before = books_now();
    failing_at(&failing, 1);
    ck_assert_ptr_null(api->resizable_realloc(mi, 5000000));
    ck_assert_ptr_null(api->resizable_realloc(mi, SIZE_MAX));
    failing_at(&failing, 1);
    ck_assert_ptr_null(api->resizable_alloc(mi, 10));
    books_expect_unchanged(&before);
    ck_assert_ptr_eq(api->get_data(mi), data);
    ck_assert_uint_eq(api->size(mi), 1000);
    ck_assert_uint_eq(api->refcount(mi), 1);
    ck_assert(pattern_holds(data, 1000, 4));
    api->release(mi);
    api->policy_release(options.policy);
}

TEST(resizable_alloc_leaves_old_data_to_the_caller)
{
    memrt_meminfo_t *mi = create_resizable(100, NULL);
    void *old = api->get_data(mi);
    pattern_write(old, 100, 2);
    void *fresh = api->resizable_alloc(mi, 300);
    ck_assert_ptr_nonnull(fresh);
    ck_assert_ptr_eq(api->get_data(mi), fresh);
    ck_assert_uint_eq(api->size(mi), 300);
    ck_assert(pattern_holds(old, 100, 2));
    api->resizable_free(mi, old);
    ck_assert_ptr_eq(api->get_data(mi), fresh);
    api->release(mi);
}

TEST(resizable_free_of_current_data_allows_new_data)
{
    memrt_meminfo_t *mi = create_resizable(100, NULL);
    api->resizable_free(mi, NULL);
    ck_assert_uint_eq(api->size(mi), 100);
    api->resizable_free(mi, api->get_data(mi));
    ck_assert_ptr_null(api->get_data(mi));
    ck_assert_uint_eq(api->size(mi), 0);
    ck_assert_ptr_nonnull(api->resizable_realloc(mi, 50));
    ck_assert_uint_eq(api->size(mi), 50);
    api->resizable_free(mi, api->get_data(mi));
    api->release(mi);
}

TEST(alignment_and_policy_hold_for_every_resize)
{
    memrt_policy_options_t settings = {.struct_size = sizeof(settings), .name = "owner"};
    memrt_new_options_t options = {.struct_size = sizeof(options), .alignment = 1024, .zeroed = 1};
    ck_assert_int_eq(api->policy_new(&settings, &options.policy), MEMRT_OK);
    memrt_meminfo_t *mi = create_resizable(500, &options);
    ck_assert(pattern_is_zero(api->get_data(mi), 500));
    for (size_t size = 1; size < 3000000; size *= 7) {
        ck_assert_uint_eq((uintptr_t)api->resizable_realloc(mi, size) % 1024, 0);
        ck_assert_uint_eq(stats_of(options.policy).live, size);
    }
    ck_assert_uint_eq(stats_of(options.policy).mi_alloc, 1);
    api->release(mi);
    api->policy_release(options.policy);
}

static void record_data(void *data, size_t size, void *info)
{
    void **seen = info;
    seen[0] = data;
    seen[1] = (void *)(uintptr_t)size;
}

TEST(destructor_gets_the_final_data_and_size)
{
    void *seen[2] = {NULL};
    memrt_new_options_t options = {
        .struct_size = sizeof(options), .dtor = record_data, .dtor_info = seen};
    memrt_meminfo_t *mi = create_resizable(10, &options);
    void *data = api->resizable_realloc(mi, 70000);
    api->release(mi);
    ck_assert_ptr_eq(seen[0], data);
    ck_assert_uint_eq((uintptr_t)seen[1], 70000);
}

TEST(resizable_meminfo_refuses_an_external_allocator)
{
    memrt_external_allocator_t external = {0};
    memrt_new_options_t options = {.struct_size = sizeof(options), .external = &external};
    memrt_meminfo_t *mi = NULL;
    ck_assert_int_eq(api->resizable_new(10, &options, &mi), MEMRT_EINVAL);
    ck_assert_ptr_null(mi);
}

TEST(failed_resizable_allocation_leaks_nothing)
{
    memrt_allocator_t counting;
    memrt_policy_t *policy;
    ck_assert_int_eq(counting_new(api->allocator_default(), &counting), MEMRT_OK);
    memrt_policy_options_t settings = {.struct_size = sizeof(settings), .allocator = &counting};
    ck_assert_int_eq(api->policy_new(&settings, &policy), MEMRT_OK);
    memrt_new_options_t options = {
        .struct_size = sizeof(options), .name = "two parts", .policy = policy};
    for (uint64_t nth = 1; nth <= 3; nth++) {
        memrt_failure_plan_t plan = {.struct_size = sizeof(plan), .nth = nth};
        memrt_meminfo_t *mi = NULL;
        books_t before = books_now();
        ck_assert_int_eq(api->fail_allocations(&plan), MEMRT_OK);
        ck_assert_int_eq(api->resizable_new(100, &options, &mi), MEMRT_ENOMEM);
        ck_assert_int_eq(api->fail_allocations(NULL), MEMRT_OK);
        ck_assert_ptr_null(mi);
        books_expect_unchanged(&before);
        counts_t counts = counting_read(&counting); /* a failed allocation is on no account */
        ck_assert_uint_eq(counts.allocs, counts.frees);
    }
    ck_assert_uint_gt(counting_read(&counting).allocs, 0);
    api->policy_release(policy);
}

TEST(resize_of_shared_data_keeps_the_old_block)
{
    memrt_meminfo_t *mi = create_resizable(100, NULL), *held;
    void *data = api->get_data(mi);
    pattern_write(data, 100, 3);
    ck_assert_int_eq(api->block_meminfo(data, &held), MEMRT_OK);
    void *moved = api->resizable_realloc(mi, 50);
    ck_assert_ptr_ne(moved, data);
    ck_assert(pattern_holds(data, 100, 3));
    ck_assert(pattern_holds(moved, 50, 3));
    api->release(held);
    api->release(mi);
}

TEST(shared_resizable_meminfo_grows_at_its_address)
{
    books_t before = books_now();
    memrt_meminfo_t *mi = create_resizable(100, NULL), *held;
    void *data = api->get_data(mi);
    pattern_write(data, 100, 6);
    api->acquire(mi);
    size_t usable = api->block_usable_size(data);
    ck_assert_int_eq(api->resizable_try_expand(mi, usable), MEMRT_OK);
    ck_assert_ptr_eq(api->get_data(mi), data);
    ck_assert_uint_eq(api->size(mi), usable);
    ck_assert_uint_eq(api->refcount(mi), 2);
    ck_assert(pattern_holds(data, 100, 6));
    ck_assert_int_eq(api->resizable_try_expand(mi, SIZE_MAX), MEMRT_ENOMEM);
    ck_assert_uint_eq(api->size(mi), usable);
    ck_assert_int_eq(api->block_meminfo(data, &held), MEMRT_OK);
    ck_assert_int_eq(api->resizable_try_expand(mi, usable + 1), MEMRT_EBUSY);
    api->release(held);
    api->resizable_free(mi, data);
    ck_assert_int_eq(api->resizable_try_expand(mi, 1), MEMRT_ENOMEM);
    api->release(mi);
    api->release(mi);
    books_expect_no_leak(&before);
}

enum { SHARED = 16 << 20, ROUNDS = 6 };

/// A resizable MemInfo that one thread resizes while another thread lists live buffers.
typedef struct watch {
    memrt_meminfo_t *mi;
    size_t done; ///< atomic; not 0: the resizes have ended
} watch_t;

/// Give the data block of `mi` a second holder, so that a resize copies the data.
static void resize_shared(memrt_meminfo_t *mi)
{
    memrt_meminfo_t *held;
    REQUIRE(api->block_meminfo(api->get_data(mi), &held) == MEMRT_OK);
    REQUIRE(api->resizable_realloc(mi, SHARED) != NULL);
    api->release(held);
}

static size_t count_listed(size_t size, uint32_t kind)
{
    memrt_live_t *list;
    size_t count, found = 0;
    REQUIRE(api->live(&list, &count) == MEMRT_OK);
    for (size_t i = 0; i < count; i++) {
        found += list[i].size == size && list[i].kind == kind;
    }
    api->live_free(list);
    return found;
}

static void resize_or_list(size_t index, void *context)
{
    watch_t *watch = context;
    for (size_t round = 0; index == 0 && round < ROUNDS; round++) {
        resize_shared(watch->mi);
        REQUIRE(api->resizable_realloc(watch->mi, SHARED - 1) != NULL);
    }
    if (index == 0) {
        memrt__store_release(&watch->done, 1);
    }
    while (memrt__load_acquire(&watch->done) == 0) {
        REQUIRE(count_listed(SHARED, MEMRT_KIND_BLOCK) == 0);
    }
}

TEST(resize_of_shared_data_never_lists_data_as_buffer)
{
    int was_on = api->tracking(1);
    watch_t watch = {.mi = create_resizable(SHARED - 1, NULL)};
    crew_run(2, resize_or_list, &watch);
    ck_assert_uint_eq(count_listed(SHARED - 1, MEMRT_KIND_RESIZABLE), 1);
    api->release(watch.mi);
    api->tracking(was_on);
}

#define MIB ((size_t)1 << 20)

static memrt_meminfo_t *create_reserved(size_t size, size_t reserve,
                                        const memrt_new_options_t *options)
{
    memrt_meminfo_t *mi;
    ck_assert_int_eq(api->resizable_new_reserved(size, reserve, options, &mi), MEMRT_OK);
    return mi;
}

TEST(reserved_data_grows_and_shrinks_in_place)
{
    static const size_t steps[] = {0, 1, 5000, 64 * MIB, 3, 20 * MIB, 64 * MIB};
    size_t reserve = 64 * MIB, mapped = kernel_calls(KERNEL_MAP);
    memrt_meminfo_t *mi = create_reserved(100, reserve, NULL);
    char *data = api->get_data(mi);
    ck_assert(pattern_is_zero(data, 100));
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        size_t before = api->size(mi), least = before < steps[i] ? before : steps[i];
        pattern_write(data, least < 4096 ? least : 4096, 1);
        memrt_status_t status = steps[i] > before ? api->resizable_try_expand(mi, steps[i])
                                                  : api->resizable_try_shrink(mi, steps[i]);
        ck_assert_int_eq(status, MEMRT_OK);
        ck_assert_ptr_eq(api->get_data(mi), data);
        ck_assert_uint_eq(api->size(mi), steps[i]);
        ck_assert(pattern_holds(data, least < 4096 ? least : 4096, 1));
        if (steps[i] > before + 8192) {
            ck_assert_int_eq(data[steps[i] - 1], 0);
            data[steps[i] - 1] = 1;
        }
    }
    ck_assert_uint_gt(kernel_calls(KERNEL_MAP), mapped);
    ck_assert_ptr_eq(api->resizable_realloc(mi, 100), data);
    ck_assert_ptr_eq(api->resizable_realloc(mi, 2 * MIB), data);
    ck_assert_ptr_null(api->resizable_realloc(mi, reserve + MIB));
    ck_assert_int_eq(api->resizable_try_expand(mi, reserve + MIB), MEMRT_ENOMEM);
    ck_assert_uint_eq(api->size(mi), 2 * MIB);
    api->release(mi);
}

TEST(reserved_data_counts_bytes_and_obeys_the_limit)
{
    memrt_policy_options_t settings = {.struct_size = sizeof(settings), .name = "growing"};
    memrt_new_options_t options = {.struct_size = sizeof(options)};
    ck_assert_int_eq(api->policy_new(&settings, &options.policy), MEMRT_OK);
    memrt_meminfo_t *mi = create_reserved(1000, 256 * MIB, &options);
    ck_assert_uint_eq(stats_of(options.policy).live, 1000);
    ck_assert_int_eq(api->resizable_try_expand(mi, MIB), MEMRT_OK);
    ck_assert_uint_eq(stats_of(options.policy).live, MIB);
    ck_assert_int_eq(api->limit_set(options.policy, NULL, 2 * MIB), MEMRT_OK);
    ck_assert_int_eq(api->resizable_try_expand(mi, 2 * MIB + 1), MEMRT_ENOMEM);
    ck_assert_ptr_null(api->resizable_realloc(mi, 2 * MIB + 1));
    ck_assert_uint_eq(stats_of(options.policy).live, MIB);
    ck_assert_int_eq(api->resizable_try_expand(mi, 2 * MIB), MEMRT_OK);
    ck_assert_int_eq(api->resizable_try_shrink(mi, 10), MEMRT_OK);
    ck_assert_uint_eq(stats_of(options.policy).live, 10);
    memrt_memory_stats_t memory = {.struct_size = sizeof(memory)};
    ck_assert_int_eq(api->memory_stats(&memory), MEMRT_OK);
    ck_assert_uint_lt(memory.mapped, 256 * MIB);
    api->release(mi);
    ck_assert_uint_eq(stats_of(options.policy).live, 0);
    api->policy_release(options.policy);
}

TEST(refused_growth_of_reserved_data_changes_nothing)
{
    memrt_meminfo_t *mi = create_reserved(100, 16 * MIB, NULL);
    void *data = api->get_data(mi);
    pattern_write(data, 100, 3);
    books_t before = books_now();
    kernel_refuse(KERNEL_PROTECT, 0, SIZE_MAX);
    ck_assert_int_eq(api->resizable_try_expand(mi, MIB), MEMRT_ENOMEM);
    ck_assert_ptr_null(api->resizable_realloc(mi, MIB));
    books_expect_unchanged(&before);
    ck_assert_uint_eq(api->size(mi), 100);
    ck_assert(pattern_holds(data, 100, 3));
    memrt_meminfo_t *none;
    ck_assert_int_eq(api->resizable_new_reserved(1, MIB, NULL, &none), MEMRT_ENOMEM);
    kernel_obey();
    kernel_refuse(KERNEL_MAP, 0, SIZE_MAX);
    ck_assert_int_eq(api->resizable_new_reserved(1, MIB, NULL, &none), MEMRT_ENOMEM);
    kernel_obey();
    ck_assert_int_eq(api->resizable_try_expand(mi, MIB), MEMRT_OK);
    kernel_refuse(KERNEL_MAP, 0, SIZE_MAX); /* the pages stay accessible */
    ck_assert_int_eq(api->resizable_try_shrink(mi, 100), MEMRT_OK);
    kernel_obey();
    ck_assert_uint_eq(api->size(mi), 100);
    kernel_refuse(KERNEL_UNMAP, 0, SIZE_MAX);
    api->release(mi); /* the addresses are lost, without their pages */
    kernel_obey();
}

TEST(usable_size_of_reserved_data_needs_no_system_call)
{
    memrt__options.huge_pages = MEMRT__HUGE_OFF;
    memrt_meminfo_t *mi = create_reserved(100, 16 * MIB, NULL);
    void *data = api->get_data(mi);
    for (size_t size = 101; size < 8 * MIB; size *= 50) {
        ck_assert_int_eq(api->resizable_try_expand(mi, size), MEMRT_OK);
        size_t usable = api->block_usable_size(data), calls = kernel_calls(KERNEL_PROTECT);
        ck_assert_uint_ge(usable, size);
        ck_assert_int_eq(api->resizable_try_expand(mi, usable), MEMRT_OK);
        ck_assert_uint_eq(kernel_calls(KERNEL_PROTECT), calls);
        ck_assert_int_eq(((char *)data)[usable - 1], 0);
        ck_assert_int_eq(api->resizable_try_shrink(mi, size), MEMRT_OK);
    }
    api->release(mi);
}

TEST(shared_reserved_data_grows_but_never_shrinks)
{
    memrt_meminfo_t *mi = create_reserved(100, MIB, NULL), *part;
    void *data = api->get_data(mi);
    api->acquire(mi);
    ck_assert_int_eq(api->resizable_try_expand(mi, 5000), MEMRT_OK);
    ck_assert_int_eq(api->resizable_try_shrink(mi, 5000), MEMRT_OK);
    ck_assert_int_eq(api->resizable_try_shrink(mi, 10), MEMRT_EBUSY);
    api->release(mi);
    ck_assert_int_eq(api->block_meminfo(data, &part), MEMRT_OK);
    ck_assert_int_eq(api->resizable_try_shrink(mi, 10), MEMRT_EBUSY);
    ck_assert_int_eq(api->resizable_try_expand(mi, 9000), MEMRT_EBUSY);
    ck_assert_ptr_null(api->resizable_realloc(mi, 9000));
    ck_assert_ptr_eq(api->get_data(mi), data);
    ck_assert_uint_eq(api->size(mi), 5000);
    api->release(part);
    ck_assert_int_eq(api->resizable_try_shrink(mi, 10), MEMRT_OK);
    api->release(mi);
}

TEST(reserved_data_is_known_to_tracking_and_locate)
{
    memrt_live_t *rows;
    size_t count;
    int was = api->tracking(1);
    memrt_new_options_t options = {.struct_size = sizeof(options), .name = "growing"};
    memrt_meminfo_t *mi = create_reserved(100, 64 * MIB, &options);
    ck_assert_int_eq(api->resizable_try_expand(mi, 3 * MIB), MEMRT_OK);
    ck_assert_int_eq(api->live(&rows, &count), MEMRT_OK);
    ck_assert_uint_eq(count, 1);
    ck_assert_uint_eq(rows[0].size, 3 * MIB);
    api->live_free(rows);
    for (size_t alignment = 64; alignment <= 2 * MIB; alignment *= 32) {
        memrt_new_options_t aligned = {.struct_size = sizeof(aligned), .alignment = alignment};
        memrt_meminfo_t *other = create_reserved(2 * MIB, 64 * MIB, &aligned);
        char *data = api->get_data(other);
        ck_assert_uint_eq((uintptr_t)data % alignment, 0);
        memrt_location_t location = {.struct_size = sizeof(location)};
        ck_assert_int_eq(api->locate(data + MIB, &location), MEMRT_OK);
        ck_assert_uint_eq(location.data, (uintptr_t)data);
        ck_assert_uint_eq(location.size, 2 * MIB);
        api->release(other);
    }
    api->tracking(was);
    api->release(mi);
}

/// Data for a growth by steps in a thread, beside reads in other threads.
typedef struct growth {
    memrt_meminfo_t *mi;
    size_t items; ///< atomic: items for the readers
} growth_t;

enum { STEPS = 200, STEP_ITEMS = 3000 };

static void grow_by_steps(growth_t *growth)
{
    size_t *data = api->get_data(growth->mi);
    for (size_t items = 0; items < STEPS * STEP_ITEMS; items += STEP_ITEMS) {
        size_t bytes = (items + STEP_ITEMS) * sizeof(size_t);
        REQUIRE(api->resizable_try_expand(growth->mi, bytes) == MEMRT_OK);
        for (size_t i = items; i < items + STEP_ITEMS; i++) {
            data[i] = i + 1;
        }
        memrt__store_release(&growth->items, items + STEP_ITEMS);
    }
}

static void grow_or_read(size_t index, void *context)
{
    growth_t *growth = context;
    size_t items = 0;
    if (index == 0) {
        grow_by_steps(growth);
    }
    while (items < STEPS * STEP_ITEMS) {
        memrt_live_t *rows;
        size_t count;
        api->acquire(growth->mi);
        const size_t *data = api->get_data(growth->mi);
        items = memrt__load_acquire(&growth->items);
        REQUIRE(api->size(growth->mi) >= items * sizeof(size_t));
        REQUIRE(items == 0 || (data[0] == 1 && data[items - 1] == items));
        REQUIRE(api->live(&rows, &count) == MEMRT_OK);
        api->live_free(rows);
        api->release(growth->mi);
    }
}

TEST(threads_read_reserved_data_during_growth)
{
    int was = api->tracking(1);
    growth_t growth = {.mi = create_reserved(0, 64 * MIB, NULL)};
    crew_run(3, grow_or_read, &growth);
    ck_assert_int_eq(api->resizable_try_shrink(growth.mi, 8), MEMRT_OK);
    api->release(growth.mi);
    api->tracking(was);
}

static void grow_in_child(void *context)
{
    memrt_meminfo_t *mi = context;
    char *data = api->get_data(mi);
    REQUIRE(pattern_holds(data, 100, 1));
    REQUIRE(api->resizable_try_expand(mi, 2 * MIB) == MEMRT_OK);
    REQUIRE(api->get_data(mi) == data);
    memset(data, 7, 2 * MIB);
    REQUIRE(api->resizable_try_shrink(mi, 10) == MEMRT_OK);
    api->release(mi);
}

TEST(child_grows_a_copy_of_inherited_reserved_data)
{
    memrt_meminfo_t *mi = create_reserved(5000, 64 * MIB, NULL);
    char *data = api->get_data(mi);
    pattern_write(data, 100, 1);
    child_expect_success(grow_in_child, mi);
    ck_assert_uint_eq(api->size(mi), 5000);
    ck_assert(pattern_holds(data, 100, 1));
    ck_assert_int_eq(api->resizable_try_expand(mi, 2 * MIB), MEMRT_OK);
    ck_assert(pattern_is_zero(data + 5000, 2 * MIB - 5000));
    api->release(mi);
}

TEST(new_reserved_meminfo_refuses_bad_options)
{
    memrt_meminfo_t *mi = NULL;
    memrt_new_options_t options = {.struct_size = sizeof(options), .alignment = 3};
    ck_assert_int_eq(api->resizable_new_reserved(10, MIB, &options, &mi), MEMRT_EINVAL);
    ck_assert_int_eq(api->resizable_new_reserved(0, 0, NULL, &mi), MEMRT_EINVAL);
    ck_assert_int_eq(api->resizable_new_reserved(10, 9, NULL, &mi), MEMRT_EINVAL);
    ck_assert_int_eq(api->resizable_new_reserved(10, SIZE_MAX, NULL, &mi), MEMRT_ENOMEM);
    ck_assert_int_eq(api->resizable_new_reserved(10, SIZE_MAX - 200, NULL, &mi), MEMRT_ENOMEM);
    ck_assert_int_eq(api->resizable_new_reserved(10, SIZE_MAX / 2, NULL, &mi), MEMRT_ENOMEM);
    ck_assert_ptr_null(mi);
    mi = create_resizable(100, NULL);
    ck_assert_int_eq(api->resizable_try_shrink(mi, 10), MEMRT_ENOTSUP);
    api->resizable_free(mi, api->get_data(mi));
    ck_assert_int_eq(api->resizable_try_shrink(mi, 0), MEMRT_ENOTSUP);
    api->release(mi);
}
