/// Tests of the order in which observers receive block events.

#include "support/suite.h"

#include <string.h>

#include "runtime/meminfo/block.h"
#include "runtime/observe/live_set.h"
#include "support/tape.h"

/// State of an observed block during its last callback.
typedef struct seen {
    bool old_listed, listed; ///< whether the old header and the header were in the live set
    size_t holders;          ///< named references
    size_t resizes, frees;
} seen_t;

static seen_t seen;

static bool is_listed_at(void *data)
{
    return memrt__live_contains((uintptr_t)memrt__block_of(data));
}

static void look_at_resize(void *old_data, void *data, size_t size)
{
    (void)size;
    seen.old_listed = is_listed_at(old_data);
    seen.listed = is_listed_at(data);
    seen.resizes++;
}

static void look_at_free(void *data)
{
    seen.listed = is_listed_at(data);
    seen.holders = api->holders(memrt__block_of(data), NULL, sizeof(memrt_holder_t), 0);
    seen.frees++;
}

/// Create a block with a named reference and an observer.
static memrt_meminfo_t *create_known(void)
{
    static const memrt_observer_t observer = {sizeof(observer), look_at_resize, look_at_free, NULL};
    void *data = api->block_alloc(NULL, 5000);
    ck_assert_ptr_nonnull(data);
    memrt_meminfo_t *mi;
    ck_assert_int_eq(api->block_meminfo(data, &mi), MEMRT_OK);
    ck_assert_int_eq(api->acquire_as(mi, MEMRT_HOLDER_EXPORT, "export"), MEMRT_OK);
    api->set_observer(&observer);
    api->observe(mi);
    seen = (seen_t){0};
    return mi;
}

TEST(free_reaches_observer_before_live_set_and_names)
{
    bool was = api->tracking(true);
    tape_start((memrt_trace_options_t){0});
    memrt_meminfo_t *mi = create_known();
    unsigned known = memrt__flags_load_relaxed(&mi->flags) & MEMRT__FLAG_KNOWN;
    ck_assert_uint_eq(known, MEMRT__FLAG_KNOWN & ~(MEMRT__FLAG_HOOKS | MEMRT__FLAG_LOGGED));
    uintptr_t key = (uintptr_t)mi;
    api->release(mi); /* releases the export without its name */
    api->release(mi);
    api->block_free(NULL, mi->data, 0);
    ck_assert_uint_eq(seen.frees, 1);
    ck_assert(seen.listed);
    ck_assert_uint_eq(seen.holders, 1);
    ck_assert(!memrt__live_contains(key));
    const tape_t *tape = tape_stop();
    ck_assert_uint_eq(tape_count(tape, MEMRT_TRACE_ALLOC), 1);
    ck_assert_uint_eq(tape_count(tape, MEMRT_TRACE_FREE), 1);
    api->set_observer(NULL);
    api->tracking(was);
}

TEST(resize_reaches_live_set_before_observer)
{
    bool was = api->tracking(true);
    memrt_meminfo_t *mi = create_known();
    api->release_as(mi, MEMRT_HOLDER_EXPORT, "export");
    api->release(mi);
    void *data = api->block_realloc(NULL, mi->data, 9000);
    ck_assert_ptr_nonnull(data);
    ck_assert_uint_eq(seen.resizes, 1);
    ck_assert(seen.listed && !seen.old_listed);
    api->block_free(NULL, data, 0);
    ck_assert_uint_eq(seen.frees, 1);
    api->set_observer(NULL);
    api->tracking(was);
}

TEST(discarded_block_has_no_event_but_leaves_live_set)
{
    bool was = api->tracking(true);
    tape_start((memrt_trace_options_t){0});
    memrt__block_request_t request = {.policy = api->policy_default(),
                                      .size = 100,
                                      .kind = MEMRT_KIND_INLINE,
                                      .event = {.weight = 1}};
    memrt_meminfo_t *mi = memrt__block_new(&request);
    uintptr_t key = (uintptr_t)mi;
    ck_assert(memrt__live_contains(key));
    memrt__block_discard(mi);
    ck_assert(!memrt__live_contains(key));
    ck_assert_uint_eq(tape_stop()->count, 0);
    api->tracking(was);
}
