#include "support/suite.h"

#include <stdlib.h>
#include <string.h>

#include "conformance/pattern.h"
#include "runtime/alloc/allocator.h"
#include "runtime/config/options.h"
#include "runtime/meminfo/block.h"
#include "runtime/os/os.h"
#include "support/books.h"
#include "support/allocators/counting.h"
#include "support/allocators/failing.h"
#include "support/allocators/moving.h"

static const size_t sizes[] = {
    0, 1, 63, 64, 5000, MEMRT__LARGE - 1, MEMRT__LARGE, MEMRT__LARGE + 1, (size_t)10 << 20};
#define SIZES (sizeof(sizes) / sizeof(sizes[0]))

static const size_t aligns[] = {1, 2, 16, 64, 128, 512, 4096, (size_t)2 << 20};
#define ALIGNS (sizeof(aligns) / sizeof(aligns[0]))

static memrt_policy_t *create_policy(const memrt_allocator_t *allocator, size_t alignment)
{
    memrt_policy_options_t options = {
        .struct_size = sizeof(options), .alignment = alignment, .allocator = allocator};
    memrt_policy_t *policy;
    ck_assert_int_eq(api->policy_new(&options, &policy), MEMRT_OK);
    return policy;
}

/// `offset` is the distance of the data from a multiple of the alignment.
static void expect_placement(const void *data, size_t size, size_t align, size_t offset)
{
    size_t least = align < MEMRT_ALIGN_MIN ? MEMRT_ALIGN_MIN : align;
    ck_assert_ptr_nonnull(data);
    ck_assert_uint_eq((uintptr_t)data % least, offset);
    const memrt_meminfo_t *mi = memrt__block_of(data);
    ck_assert_ptr_eq(mi->data, data);
    ck_assert_uint_eq(mi->size, size);
}

static void expect_alignment(const void *data, size_t size, size_t align)
{
    expect_placement(data, size, align, 0);
}

static void expect_block(const void *data, size_t size, size_t align)
{
    expect_placement(data, size, align, align == 16 ? 16 : 0);
}

TEST(alloc_calloc_realloc_and_new_keep_size_and_alignment)
{
    for (size_t a = 0; a < ALIGNS; a++) {
        memrt_policy_t *policy = create_policy(NULL, aligns[a]);
        for (size_t s = 0; s < SIZES; s++) {
            void *data = api->block_alloc(policy, sizes[s]);
            expect_block(data, sizes[s], aligns[a]);
            size_t next = sizes[(s + 4) % SIZES];
            data = api->block_realloc(policy, data, next);
            expect_block(data, next, aligns[a]);
            api->block_free(policy, data, 0);
            data = api->block_calloc(policy, 1, sizes[s]);
            expect_block(data, sizes[s], aligns[a]);
            ck_assert(pattern_is_zero(data, sizes[s]));
            api->block_free(policy, data, 0);
            memrt_new_options_t options = {.struct_size = sizeof(options), .alignment = aligns[a]};
            memrt_meminfo_t *mi;
            ck_assert_int_eq(api->meminfo_new(sizes[s], &options, &mi), MEMRT_OK);
            expect_alignment(api->get_data(mi), sizes[s], aligns[a]);
            api->release(mi);
        }
        api->policy_release(policy);
    }
}

TEST(released_block_awaiting_reuse_has_refcount_zero)
{
    memrt_meminfo_t *mi = api->allocate(100);
    bool waits = memrt__policy_default()->fast && !memrt__is_slow(~0u);
    api->release(mi);
    ck_assert(!waits || mi->refct == 0);
}

TEST(data_starts_header_size_bytes_after_meminfo)
{
    for (size_t s = 0; s < SIZES; s++) {
        memrt_meminfo_t *mi = api->allocate(sizes[s]);
        ck_assert_ptr_nonnull(mi);
        ck_assert_uint_eq((uintptr_t)api->get_data(mi) - (uintptr_t)mi, MEMRT_HEADER_SIZE);
        ck_assert_uint_eq((uintptr_t)mi % 64, 0);
        api->release(mi);
    }
}

/// Check that the allocator receives the start, size and alignment of each block.
TEST(allocator_gets_back_all_bytes_after_any_realloc)
{
    counts_t counts;
    memrt_allocator_t counting;
    ck_assert_int_eq(counting_new(memrt__default_allocator(), &counting), MEMRT_OK);
    counting_at_destroy(&counting, &counts);
    memrt_policy_t *policy = create_policy(&counting, 256);
    for (size_t from = 0; from < SIZES; from++) {
        for (size_t to = 0; to < SIZES; to++) {
            void *data = api->block_alloc(policy, sizes[from]);
            data = api->block_realloc(policy, data, sizes[to]);
            size_t asked = counting_read(&counting).bytes, reserved = stats_of(policy).reserved;
            /* Redzones are on no account. */
            ck_assert(memrt__options.check ? asked > reserved : asked == reserved);
            api->block_free(policy, data, 0);
            if (memrt__options.check) { /* a guard keeps freed blocks in quarantine */
                api->release_unused();
            }
            ck_assert_uint_eq(counting_read(&counting).bytes, 0);
        }
    }
    api->policy_release(policy);
    api->release_unused();
    ck_assert_uint_eq(counts.allocs, counts.frees);
}

static void grow_through_sizes(memrt_policy_t *policy, size_t align)
{
    unsigned char *data = api->block_alloc(policy, 1);
    size_t size = 1;
    pattern_write(data, size, 2);
    while (size < (size_t)3 << 20) {
        size_t next = size * 2 + 3;
        data = api->block_realloc(policy, data, next);
        expect_alignment(data, next, align);
        ck_assert(pattern_holds(data, size, 2));
        size = next;
        pattern_write(data, size, 2);
    }
    while (size > 1) {
        size /= 5;
        data = api->block_realloc(policy, data, size);
        expect_alignment(data, size, align);
        ck_assert(pattern_holds(data, size, 2));
    }
    api->block_free(policy, data, 0);
}

TEST(realloc_in_steps_keeps_contents_and_alignment)
{
    static const size_t steps[] = {64, 256, 4096, 65536};
    for (size_t i = 0; i < 4; i++) {
        memrt_allocator_t moving;
        ck_assert_int_eq(moving_new(memrt__default_allocator(), &moving), MEMRT_OK);
        memrt_policy_t *policies[2] = {create_policy(NULL, steps[i]),
                                       create_policy(&moving, steps[i])};
        for (int p = 0; p < 2; p++) {
            int was = api->tracking(0);
            grow_through_sizes(policies[p], steps[i]);
            api->tracking(1); /* a resize moves the entry of a listed block */
            grow_through_sizes(policies[p], steps[i]);
            api->tracking(was);
            api->policy_release(policies[p]);
        }
    }
}

static void expect_growth_refused(const memrt_allocator_t *failing, memrt_policy_t *policy,
                                  size_t from, size_t to)
{
    unsigned char *data = api->block_alloc(policy, from);
    ck_assert_ptr_nonnull(data);
    if (from < to && to <= api->block_usable_size(data)) { /* may need no memory */
        api->block_free(policy, data, 0);
        return;
    }
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
    memrt_policy_t *policy = create_policy(&failing, 0);
    int was = api->tracking(index);
    for (size_t from = 0; from < SIZES; from++) {
        for (size_t to = 0; to < SIZES; to++) {
            expect_growth_refused(&failing, policy, sizes[from], sizes[to]);
        }
    }
    api->tracking(was);
    api->policy_release(policy);
}

TEST(block_discarded_before_publishing_changes_no_account)
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
