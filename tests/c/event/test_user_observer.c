/// Tests of the callbacks for observed blocks.

#include "support/suite.h"

#include <string.h>

#include "runtime/alloc/guard/guard.h"
#include "runtime/meminfo/block.h"
#include "runtime/policy/policy_table.h"

typedef struct seen {
    void *old_data, *new_data, *dead;
    size_t size, resizes, frees;
} seen_t;

static seen_t seen;

static void record_resize(void *old_data, void *new_data, size_t new_size)
{
    seen = (seen_t){old_data, new_data, NULL, new_size, seen.resizes + 1, seen.frees};
}

static void record_free(void *data)
{
    seen.dead = data;
    seen.frees++;
}

static void *marked; ///< last data reported to the observer's `observe` callback
static char byte_moved;

/// Compare the first bytes of both blocks. The old block is not freed yet, so its bytes can be
/// read.
static void compare_resized_blocks(void *old_data, void *new_data, size_t new_size)
{
    (void)new_size;
    byte_moved = (char)(*(char *)old_data == *(char *)new_data ? *(char *)old_data : 0);
}

static void record_tracked(void *data)
{
    marked = data;
}

TEST(observe_callback_gets_data_of_observed_meminfo)
{
    static const memrt_observer_t observer = {sizeof(observer), record_resize, record_free,
                                              record_tracked};
    static const memrt_observer_t older = {offsetof(memrt_observer_t, observe), record_resize,
                                           record_free, record_tracked};
    memrt_meminfo_t *mi;
    marked = NULL;
    api->set_observer(&older);
    ck_assert_int_eq(api->resizable_new(100, NULL, &mi), MEMRT_OK);
    api->observe(mi);
    ck_assert_ptr_null(marked);
    api->set_observer(&observer);
    api->observe(mi);
    ck_assert_ptr_eq(marked, mi->data);
    marked = NULL;
    api->resizable_free(mi, mi->data);
    api->observe(mi); /* a MemInfo without data causes no callback */
    ck_assert_ptr_null(marked);
    api->release(mi);
    api->set_observer(NULL);
    mi = api->allocate(100);
    api->observe(mi); /* without an observer, only the flag is set */
    ck_assert_ptr_null(marked);
    api->release(mi);
}

TEST(observer_sees_resize_before_old_data_is_freed)
{
    static const memrt_observer_t observer = {sizeof(observer), compare_resized_blocks, record_free,
                                              NULL};
    static const size_t steps[] = {3000, 5000, 3000000, 3000001, 200};
    memrt_meminfo_t *mi;
    api->set_observer(&observer);
    ck_assert_int_eq(api->resizable_new(100, NULL, &mi), MEMRT_OK);
    api->observe(mi);
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        void *stood = mi->data;
        bool grows_in_place = steps[i] == 3000001 && steps[i] <= api->block_usable_size(stood) &&
                              !memrt__is_guard(&memrt__policy_default()->allocator);
        *(char *)stood = (char)('a' + i);
        byte_moved = 0;
        ck_assert_ptr_nonnull(api->resizable_realloc(mi, steps[i]));
        ck_assert_int_eq(byte_moved, (char)('a' + i));
        /* a moved block leaves its old block allocated: the address could not be reused */
        ck_assert(grows_in_place == (mi->data == stood));
    }
    api->release(mi);
    api->set_observer(NULL);
}

TEST(observer_sees_resize_and_free_of_observed_blocks_only)
{
    static const memrt_observer_t observer = {sizeof(observer), record_resize, record_free, NULL};
    memset(&seen, 0, sizeof(seen));
    api->set_observer(&observer);
    void *plain = api->block_alloc(NULL, 100), *observed = api->block_alloc(NULL, 100);
    memrt_meminfo_t *listed = api->allocate(100);
    ck_assert_int_eq(api->set_name(listed, "listed"), MEMRT_OK);
    api->observe(memrt__block_of(observed));
    uintptr_t stood = (uintptr_t)observed;
    plain = api->block_realloc(NULL, plain, 3000);
    observed = api->block_realloc(NULL, observed, 2000);
    ck_assert_uint_eq(seen.resizes, 1);
    ck_assert_uint_eq((uintptr_t)seen.old_data, stood);
    ck_assert_ptr_eq(seen.new_data, observed);
    ck_assert_uint_eq(seen.size, 2000);
    stood = (uintptr_t)observed;
    api->block_free(NULL, plain, 0);
    api->release(listed);
    api->block_free(NULL, observed, 0);
    ck_assert_uint_eq(seen.frees, 1);
    ck_assert_uint_eq((uintptr_t)seen.dead, stood);
    api->set_observer(NULL);
}

TEST(observer_sees_resize_and_free_of_resizable_data)
{
    static const memrt_observer_t observer = {sizeof(observer), record_resize, record_free, NULL};
    memset(&seen, 0, sizeof(seen));
    api->set_observer(&observer);
    memrt_meminfo_t *mi;
    ck_assert_int_eq(api->resizable_new(100, NULL, &mi), MEMRT_OK);
    api->observe(mi);
    ck_assert_uint_eq(mi->flags & MEMRT_FLAG_OBSERVED, MEMRT_FLAG_OBSERVED);
    uintptr_t stood = (uintptr_t)mi->data;
    ck_assert_ptr_nonnull(api->resizable_realloc(mi, 5000));
    ck_assert_uint_eq(seen.resizes, 1);
    ck_assert_uint_eq((uintptr_t)seen.old_data, stood);
    ck_assert_ptr_eq(seen.new_data, mi->data);
    void *replaced = mi->data;
    ck_assert_ptr_nonnull(api->resizable_alloc(mi, 200));
    api->resizable_free(mi, replaced);
    ck_assert_uint_eq(seen.frees, 1);
    ck_assert_ptr_eq(seen.dead, replaced);
    api->release(mi);
    ck_assert_uint_eq(seen.frees, 1); /* the new data was not marked for the observer */
    ck_assert_int_eq(api->resizable_new(100, NULL, &mi), MEMRT_OK);
    api->resizable_free(mi, mi->data);
    api->observe(mi);
    api->release(mi);
    ck_assert_uint_eq(seen.frees, 1);
    api->set_observer(NULL);
}

TEST(observed_block_can_be_freed_after_observer_is_removed)
{
    static const memrt_observer_t observer = {sizeof(observer), record_resize, record_free, NULL};
    memset(&seen, 0, sizeof(seen));
    api->set_observer(&observer);
    void *observed = api->block_alloc(NULL, 100);
    api->observe(memrt__block_of(observed));
    api->set_observer(NULL);
    observed = api->block_realloc(NULL, observed, 100);
    api->block_free(NULL, observed, 0);
    ck_assert_uint_eq(seen.resizes + seen.frees, 0);
}
