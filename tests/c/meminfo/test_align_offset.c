/// Tests of MemInfos whose data has its alignment at an offset.

#include "support/suite.h"

#include <string.h>

#include "conformance/pattern.h"
#include "runtime/alloc/allocator.h"
#include "runtime/alloc/heap/heap.h"
#include "support/books.h"

static memrt_meminfo_t *create(size_t size, size_t alignment, size_t offset, memrt_policy_t *policy)
{
    memrt_new_options_t options = {.struct_size = sizeof(options),
                                   .policy = policy,
                                   .alignment = alignment,
                                   .zeroed = 1,
                                   .align_offset = offset};
    memrt_meminfo_t *mi;
    ck_assert_int_eq(api->meminfo_new(size, &options, &mi), MEMRT_OK);
    return mi;
}

/// Expect that addresses in the data lead to the MemInfo. Only blocks of the heap are found without
/// tracking.
static void expect_located(const char *data, size_t size, const memrt_meminfo_t *mi)
{
    size_t offsets[] = {0, size / 2, size - 1};
    if (!memrt__is_heap(memrt__default_allocator())) {
        return;
    }
    for (size_t i = 0; i < 3 && size != 0; i++) {
        memrt_location_t found = {.struct_size = sizeof(found)};
        ck_assert_int_eq(api->locate(data + offsets[i], &found), MEMRT_OK);
        ck_assert_uint_eq(found.data, (uintptr_t)data);
        ck_assert_uint_eq(found.size, size);
        ck_assert_uint_eq(found.meminfo, (uintptr_t)mi);
    }
}

static const size_t sizes[] = {0, 1, 100, 1000, 5000, 70000, (size_t)3 << 20};
static const size_t alignments[] = {64, 128, 4096, MEMRT_ALIGN_OFFSET_MAX};
static const size_t offsets[] = {8, 16, 24, 56, 64, 128, 1000, 4096, 4104, 1000000, SIZE_MAX - 7};

enum { SIZES = sizeof(sizes) / sizeof(sizes[0]) };

/// Create blocks of all sizes, live at the same time, write to all bytes, and free.
static void try_sizes(size_t alignment, size_t offset)
{
    memrt_meminfo_t *made[SIZES];
    for (size_t i = 0; i < SIZES; i++) {
        made[i] = create(sizes[i], alignment, offset, NULL);
        char *data = api->get_data(made[i]);
        ck_assert_uint_eq(((uintptr_t)data + offset) % alignment, 0);
        ck_assert(pattern_is_zero(data, sizes[i]));
        memset(data, (int)(i + 1), sizes[i]);
    }
    for (size_t i = 0; i < SIZES; i++) {
        const char *data = api->get_data(made[i]);
        for (size_t at = 0; at < sizes[i]; at += 997) {
            ck_assert_int_eq(data[at], (int)(i + 1));
        }
        ck_assert_uint_eq(made[i]->size, sizes[i]);
        expect_located(data, sizes[i], made[i]);
        api->release(made[i]);
    }
}

TEST_EACH(byte_at_offset_is_aligned, sizeof(offsets) / sizeof(offsets[0]))
{
    books_t before = books_now();
    for (size_t i = 0; i < sizeof(alignments) / sizeof(alignments[0]); i++) {
        try_sizes(alignments[i], offsets[index]);
    }
    books_expect_no_leak(&before);
}

TEST(alignment_of_policy_applies_at_offset)
{
    static const size_t own[] = {16, 256, 4096};
    for (size_t i = 0; i < 2; i++) { /* the thread gets a cache with the first block */
        memrt_meminfo_t *plain = create(300, 0, 24, NULL);
        ck_assert_uint_eq(((uintptr_t)api->get_data(plain) + 24) % 64, 0);
        api->release(plain);
    }
    for (size_t i = 0; i < 3; i++) {
        memrt_policy_options_t options = {
            .struct_size = sizeof(options), .name = "shifted", .alignment = own[i]};
        memrt_policy_t *policy;
        ck_assert_int_eq(api->policy_new(&options, &policy), MEMRT_OK);
        memrt_meminfo_t *mi = create(300, 0, 40, policy);
        uintptr_t data = (uintptr_t)api->get_data(mi);
        ck_assert_uint_eq((data + 40) % (own[i] < 64 ? 64 : own[i]), 0);
        expect_located((const char *)data, 300, mi);
        api->release(mi);
        api->policy_release(policy);
    }
}

TEST(data_at_offset_is_known_by_its_address)
{
    int was = api->tracking(1);
    memrt_meminfo_t *mi = create(1000, 64, 24, NULL), *found;
    ck_assert_int_eq(api->find(api->get_data(mi), &found), MEMRT_OK);
    ck_assert_ptr_eq(found, mi);
    api->release(found);
    ck_assert_int_eq(api->block_meminfo(api->get_data(mi), &found), MEMRT_OK);
    ck_assert_ptr_eq(found, mi);
    api->release(found);
    api->release(mi);
    api->tracking(was);
}

TEST(unsuitable_offset_is_refused)
{
    static memrt_external_allocator_t external;
    static char foreign[64];
    memrt_allocator_t file;
    memrt_policy_t *policy;
    memrt_policy_options_t files = {
        .struct_size = sizeof(files), .name = "files", .allocator = &file};
    ck_assert_int_eq(api->allocator_file(NULL, &file), MEMRT_OK);
    ck_assert_int_eq(api->policy_new(&files, &policy), MEMRT_OK);
    memrt_new_options_t good = {.struct_size = sizeof(good), .alignment = 64, .align_offset = 24};
    memrt_new_options_t bad[] = {good, good, good, good};
    bad[0].align_offset = 20;
    bad[1].alignment = 2 * MEMRT_ALIGN_OFFSET_MAX;
    bad[2].external = &external;
    bad[3].policy = policy;
    books_t before = books_now();
    memrt_meminfo_t *mi = NULL;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        ck_assert_int_eq(api->meminfo_new(100, &bad[i], &mi), MEMRT_EINVAL);
    }
    good.alignment = 0; /* only the offset does not apply */
    ck_assert_int_eq(api->resizable_new(100, &good, &mi), MEMRT_EINVAL);
    ck_assert_int_eq(api->resizable_new_reserved(100, 4096, &good, &mi), MEMRT_EINVAL);
    ck_assert_int_eq(api->meminfo_adopt(foreign, 64, &good, &mi), MEMRT_EINVAL);
    ck_assert_ptr_null(mi);
    books_expect_unchanged(&before);
    api->policy_release(policy);
}
