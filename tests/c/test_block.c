#include "support/suite.h"

#include <stdlib.h>
#include <string.h>

#include "conformance/pattern.h"
#include "runtime/alloc/allocator.h"
#include "runtime/base/os.h"
#include "runtime/base/options.h"
#include "runtime/meminfo/block.h"
#include "support/books.h"
#include "support/counting.h"
#include "support/failing.h"
#include "support/moving.h"

static const size_t sizes[] = {
    0, 1, 63, 64, 5000, MEMRT__LARGE - 1, MEMRT__LARGE, MEMRT__LARGE + 1, (size_t)10 << 20};
#define SIZES (sizeof(sizes) / sizeof(sizes[0]))

static const size_t aligns[] = {1, 2, 16, 64, 128, 512, 4096, (size_t)2 << 20};
#define ALIGNS (sizeof(aligns) / sizeof(aligns[0]))

static memrt_policy_t *policy_of(const memrt_allocator_t *allocator, size_t alignment)
{
    memrt_policy_options_t options = {
        .struct_size = sizeof(options), .alignment = alignment, .allocator = allocator};
    memrt_policy_t *policy;
    ck_assert_int_eq(api->policy_new(&options, &policy), MEMRT_OK);
    return policy;
}

static void expect_place(const void *data, size_t size, size_t align)
{
    size_t least = align < MEMRT_ALIGN_MIN ? MEMRT_ALIGN_MIN : align;
    ck_assert_ptr_nonnull(data);
    ck_assert_uint_eq((uintptr_t)data % least, 0);
    if (size >= MEMRT__LARGE) {
        ck_assert_uint_eq((uintptr_t)data % memrt__os_page_size(), 0);
    }
    const memrt_meminfo_t *mi = memrt__block_of(data);
    ck_assert_ptr_eq(mi->data, data);
    ck_assert_uint_eq(mi->size, size);
}

TEST(every_size_and_alignment_holds_for_alloc_calloc_realloc_and_new)
{
    for (size_t a = 0; a < ALIGNS; a++) {
        memrt_policy_t *policy = policy_of(NULL, aligns[a]);
        for (size_t s = 0; s < SIZES; s++) {
            void *data = api->block_alloc(policy, sizes[s]);
            expect_place(data, sizes[s], aligns[a]);
            size_t next = sizes[(s + 4) % SIZES];
            data = api->block_realloc(policy, data, next);
            expect_place(data, next, aligns[a]);
            api->block_free(policy, data, 0);
            data = api->block_calloc(policy, 1, sizes[s]);
            expect_place(data, sizes[s], aligns[a]);
            ck_assert(pattern_is_zero(data, sizes[s]));
            api->block_free(policy, data, 0);
            memrt_new_options_t options = {.struct_size = sizeof(options), .alignment = aligns[a]};
            memrt_meminfo_t *mi;
            ck_assert_int_eq(api->meminfo_new(sizes[s], &options, &mi), MEMRT_OK);
            expect_place(api->get_data(mi), sizes[s], aligns[a]);
            api->release(mi);
        }
        api->policy_release(policy);
    }
}

TEST(a_block_that_waits_for_reuse_shows_a_count_of_zero)
{
    memrt_meminfo_t *mi = api->allocate(100);
    bool waits = memrt__policy_default()->quick && !memrt__is_watched(~0u);
    api->release(mi);
    ck_assert(!waits || mi->refct == 0);
}

TEST(data_begins_one_header_after_the_meminfo)
{
    for (size_t s = 0; s < SIZES; s++) {
        memrt_meminfo_t *mi = api->allocate(sizes[s]);
        ck_assert_ptr_nonnull(mi);
        ck_assert_uint_eq((uintptr_t)api->get_data(mi) - (uintptr_t)mi, MEMRT_HEADER_SIZE);
        ck_assert_uint_eq((uintptr_t)mi % 64, 0);
        api->release(mi);
    }
}

/// What the allocator sees must be what it saw: same start, same size, same alignment.
TEST(the_allocator_gets_back_what_it_gave_after_any_resizing)
{
    counts_t counts;
    memrt_allocator_t counting;
    ck_assert_int_eq(counting_new(memrt__default_allocator(), &counting), MEMRT_OK);
    counting_at_destroy(&counting, &counts);
    memrt_policy_t *policy = policy_of(&counting, 256);
    for (size_t from = 0; from < SIZES; from++) {
        for (size_t to = 0; to < SIZES; to++) {
            void *data = api->block_alloc(policy, sizes[from]);
            data = api->block_realloc(policy, data, sizes[to]);
            size_t asked = counting_read(&counting).bytes, reserved = stats_of(policy).reserved;
            /* Fences are on no account. */
            ck_assert(memrt__options.check ? asked > reserved : asked == reserved);
            api->block_free(policy, data, 0);
            if (memrt__options.check) { /* a guard keeps what was freed */
                api->release_unused();
            }
            ck_assert_uint_eq(counting_read(&counting).bytes, 0);
        }
    }
    api->policy_release(policy);
    api->release_unused();
    ck_assert_uint_eq(counts.allocs, counts.frees);
}

static void grow_through(memrt_policy_t *policy, size_t align)
{
    unsigned char *data = api->block_alloc(policy, 1);
    size_t size = 1;
    pattern_write(data, size, 2);
    while (size < (size_t)3 << 20) {
        size_t next = size * 2 + 3;
        data = api->block_realloc(policy, data, next);
        expect_place(data, next, align);
        ck_assert(pattern_holds(data, size, 2));
        size = next;
        pattern_write(data, size, 2);
    }
    while (size > 1) {
        size /= 5;
        data = api->block_realloc(policy, data, size);
        expect_place(data, size, align);
        ck_assert(pattern_holds(data, size, 2));
    }
    api->block_free(policy, data, 0);
}

TEST(contents_and_alignment_survive_growing_and_shrinking_in_steps)
{
    static const size_t steps[] = {64, 256, 4096, 65536};
    for (size_t i = 0; i < 4; i++) {
        memrt_allocator_t moving;
        ck_assert_int_eq(moving_new(memrt__default_allocator(), &moving), MEMRT_OK);
        memrt_policy_t *policies[2] = {policy_of(NULL, steps[i]), policy_of(&moving, steps[i])};
        for (int p = 0; p < 2; p++) {
            int was = api->tracking(0);
            grow_through(policies[p], steps[i]);
            api->tracking(1); /* listed blocks move with their entry */
            grow_through(policies[p], steps[i]);
            api->tracking(was);
            api->policy_release(policies[p]);
        }
    }
}

static void refuse_growth(const memrt_allocator_t *failing, memrt_policy_t *policy, size_t from,
                          size_t to)
{
    unsigned char *data = api->block_alloc(policy, from);
    ck_assert_ptr_nonnull(data);
    pattern_write(data, from, 6);
    books_t before = books_now();
    failing_at(failing, 1);
    ck_assert_ptr_null(api->block_realloc(policy, data, to));
    failing_at(failing, 0);
    books_expect_unchanged(&before);
    ck_assert(pattern_holds(data, from, 6));
    ck_assert_uint_eq(memrt__block_of(data)->size, from);
    ck_assert_uint_eq(api->refcount(memrt__block_of(data)), 1);
    api->block_free(policy, data, 0);
}

TEST_EACH(realloc_failure_keeps_old_block, 2)
{
    memrt_allocator_t failing;
    ck_assert_int_eq(failing_new(memrt__default_allocator(), &failing), MEMRT_OK);
    memrt_policy_t *policy = policy_of(&failing, 0);
    int was = api->tracking(index);
    for (size_t from = 0; from < SIZES; from++) {
        for (size_t to = 0; to < SIZES; to++) {
            refuse_growth(&failing, policy, sizes[from], sizes[to]);
        }
    }
    api->tracking(was);
    api->policy_release(policy);
}

TEST(an_unborn_block_that_is_given_up_leaves_no_trace)
{
    int was = api->tracking(1);
    books_t before = books_now();
    memrt__block_request_t request = {
        .policy = api->policy_default(), .size = 1000, .kind = MEMRT_KIND_INLINE};
    memrt_meminfo_t *mi = memrt__block_new(&request), *found = NULL;
    ck_assert_ptr_nonnull(mi);
    ck_assert_int_eq(api->find(mi->data, &found), MEMRT_ENOENT);
    memrt__block_discard(mi);
    books_expect_unchanged(&before);
    api->tracking(was);
}

typedef struct seen {
    void *old_data, *new_data, *dead;
    size_t size, resizes, deaths;
} seen_t;

static seen_t seen;

static void see_resize(void *old_data, void *new_data, size_t new_size)
{
    seen = (seen_t){old_data, new_data, NULL, new_size, seen.resizes + 1, seen.deaths};
}

static void see_death(void *data)
{
    seen.dead = data;
    seen.deaths++;
}

TEST(a_watched_block_tells_of_its_resizes_and_death_and_others_do_not)
{
    static const memrt_watcher_t watcher = {sizeof(watcher), see_resize, see_death};
    memset(&seen, 0, sizeof(seen));
    api->set_watcher(&watcher);
    void *plain = api->block_alloc(NULL, 100), *watched = api->block_alloc(NULL, 100);
    memrt_meminfo_t *listed = api->allocate(100);
    ck_assert_int_eq(api->set_name(listed, "listed"), MEMRT_OK);
    api->watch(memrt__block_of(watched));
    uintptr_t stood = (uintptr_t)watched;
    plain = api->block_realloc(NULL, plain, 3000);
    watched = api->block_realloc(NULL, watched, 2000);
    ck_assert_uint_eq(seen.resizes, 1);
    ck_assert_uint_eq((uintptr_t)seen.old_data, stood);
    ck_assert_ptr_eq(seen.new_data, watched);
    ck_assert_uint_eq(seen.size, 2000);
    stood = (uintptr_t)watched;
    api->block_free(NULL, plain, 0);
    api->release(listed);
    api->block_free(NULL, watched, 0);
    ck_assert_uint_eq(seen.deaths, 1);
    ck_assert_uint_eq((uintptr_t)seen.dead, stood);
    api->set_watcher(NULL);
}

TEST(a_watched_resizable_one_tells_of_the_resizes_and_death_of_its_data)
{
    static const memrt_watcher_t watcher = {sizeof(watcher), see_resize, see_death};
    memset(&seen, 0, sizeof(seen));
    api->set_watcher(&watcher);
    memrt_meminfo_t *mi;
    ck_assert_int_eq(api->resizable_new(100, NULL, &mi), MEMRT_OK);
    api->watch(mi);
    ck_assert_uint_eq(mi->flags & MEMRT_FLAG_WATCHED, MEMRT_FLAG_WATCHED);
    uintptr_t stood = (uintptr_t)mi->data;
    ck_assert_ptr_nonnull(api->resizable_realloc(mi, 5000));
    ck_assert_uint_eq(seen.resizes, 1);
    ck_assert_uint_eq((uintptr_t)seen.old_data, stood);
    ck_assert_ptr_eq(seen.new_data, mi->data);
    void *replaced = mi->data;
    ck_assert_ptr_nonnull(api->resizable_alloc(mi, 200));
    api->resizable_free(mi, replaced);
    ck_assert_uint_eq(seen.deaths, 1);
    ck_assert_ptr_eq(seen.dead, replaced);
    api->release(mi);
    ck_assert_uint_eq(seen.deaths, 1); /* of the new data nobody wanted to know */
    ck_assert_int_eq(api->resizable_new(100, NULL, &mi), MEMRT_OK);
    api->resizable_free(mi, mi->data);
    api->watch(mi);
    api->release(mi);
    ck_assert_uint_eq(seen.deaths, 1);
    api->set_watcher(NULL);
}

TEST(a_watched_block_may_die_when_the_watcher_is_gone)
{
    static const memrt_watcher_t watcher = {sizeof(watcher), see_resize, see_death};
    memset(&seen, 0, sizeof(seen));
    api->set_watcher(&watcher);
    void *watched = api->block_alloc(NULL, 100);
    api->watch(memrt__block_of(watched));
    api->set_watcher(NULL);
    watched = api->block_realloc(NULL, watched, 100);
    api->block_free(NULL, watched, 0);
    ck_assert_uint_eq(seen.resizes + seen.deaths, 0);
}
