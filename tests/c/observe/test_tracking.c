#include "support/suite.h"

#include <math.h>
#include <string.h>

#include "runtime/config/options.h"
#include "runtime/observe/tracking.h"
#include "support/crew.h"

/// Settings before start_tracking(), for restoring.
static memrt_tracking_t before;

static void start_tracking(uint32_t frames, uint64_t sample)
{
    memrt_tracking_t wanted = {
        .struct_size = sizeof(wanted), .on = 1, .frames = frames, .sample = sample};
    before.struct_size = sizeof(before);
    ck_assert_int_eq(api->tracking_get(&before), MEMRT_OK);
    ck_assert_int_eq(api->tracking_set(&wanted), MEMRT_OK);
}

static void restore_tracking(void)
{
    ck_assert_int_eq(api->tracking_set(&before), MEMRT_OK);
}

/// Sums over the live buffers of one size.
typedef struct sums {
    size_t rows;
    double blocks;
    uint32_t site;
} sums_t;

static sums_t sum_tracked_buffers(size_t size)
{
    sums_t sums = {0};
    void *rows;
    size_t count;
    ck_assert_int_eq(api->buffers(sizeof(memrt_buffer_t), &rows, &count), MEMRT_OK);
    for (size_t i = 0; i < count; i++) {
        const memrt_buffer_t *row = (const memrt_buffer_t *)rows + i;
        if (row->live.size == size) {
            sums.rows++;
            sums.blocks += row->weight;
            sums.site = row->site;
        }
    }
    api->live_free(rows);
    return sums;
}

TEST(tracking_get_returns_the_settings_of_tracking_set)
{
    memrt_tracking_t now = {.struct_size = sizeof(now)};
    start_tracking(5, 4096);
    ck_assert_int_eq(api->tracking_get(&now), MEMRT_OK);
    ck_assert_int_eq(now.on, 1);
    ck_assert_uint_eq(now.frames, 5);
    ck_assert_uint_eq(now.native, 0);
    ck_assert_uint_eq(now.sample, 4096);
    ck_assert_int_eq(api->tracking_enabled(), 1);
    restore_tracking();
}

TEST(invalid_tracking_settings_are_refused_and_change_nothing)
{
    memrt_tracking_t was = {.struct_size = sizeof(was)}, now = was, bad = was;
    ck_assert_int_eq(api->tracking_get(&was), MEMRT_OK);
    bad.on = !was.on;
    bad.frames = MEMRT_FRAMES_MAX + 1;
    ck_assert_int_eq(api->tracking_set(&bad), MEMRT_EINVAL);
    bad.frames = 0;
    bad.native = MEMRT_FRAMES_MAX + 1;
    ck_assert_int_eq(api->tracking_set(&bad), MEMRT_EINVAL);
    bad.native = 0;
    bad.struct_size = 8;
    ck_assert_int_eq(api->tracking_set(&bad), MEMRT_EINVAL);
    ck_assert_int_eq(api->tracking_get(&bad), MEMRT_EINVAL);
    ck_assert_int_eq(api->tracking_get(&now), MEMRT_OK);
    ck_assert_int_eq(memcmp(&was, &now, sizeof(now)), 0);
}

#define EACH 20011 /* bytes; no other test uses this size */

/// A buffer of each kind, with EACH bytes.
typedef struct allocations {
    memrt_meminfo_t *mis[5];
    void *blocks[2];
} allocations_t;

static char foreign[EACH];

static allocations_t allocate_all_kinds(void)
{
    allocations_t allocations;
    memrt_new_options_t plain = {.struct_size = sizeof(plain)}, aligned = plain;
    aligned.alignment = 4096;
    allocations.mis[0] = api->allocate(EACH);
    ck_assert_int_eq(api->meminfo_new(EACH, &plain, &allocations.mis[1]), MEMRT_OK);
    ck_assert_int_eq(api->meminfo_new(EACH, &aligned, &allocations.mis[2]), MEMRT_OK);
    ck_assert_int_eq(api->meminfo_adopt(foreign, EACH, NULL, &allocations.mis[3]), MEMRT_OK);
    ck_assert_int_eq(api->resizable_new(EACH, NULL, &allocations.mis[4]), MEMRT_OK);
    allocations.blocks[0] = api->block_alloc(NULL, EACH);
    allocations.blocks[1] = api->block_calloc(NULL, 1, EACH);
    return allocations;
}

static void free_all_kinds(const allocations_t *allocations)
{
    for (size_t i = 0; i < 5; i++) {
        api->release(allocations->mis[i]);
    }
    for (size_t i = 0; i < 2; i++) {
        api->block_free(NULL, allocations->blocks[i], EACH);
    }
}

static size_t write_one_frame(memrt_frame_t *frames, size_t max)
{
    ck_assert_uint_gt(max, 0);
    frames[0] = api->frame_new("bear", "allocations.py", 3);
    return 1;
}

TEST(each_allocation_kind_is_listed_once_with_its_site)
{
    api->set_frames(write_one_frame);
    start_tracking(4, 0);
    allocations_t allocations = allocate_all_kinds();
    restore_tracking();
    api->set_frames(NULL);
    sums_t sums = sum_tracked_buffers(EACH);
    ck_assert_uint_eq(sums.rows, 7);
    ck_assert_double_eq(sums.blocks, 7);
    memrt_site_t site = {.struct_size = sizeof(site)};
    ck_assert_int_eq(api->site_read(sums.site, &site), MEMRT_OK);
    ck_assert_uint_eq(site.allocations, 7);
    ck_assert_uint_eq(site.bytes, 7 * EACH);
    free_all_kinds(&allocations);
    ck_assert_uint_eq(sum_tracked_buffers(EACH).rows, 0);
}

TEST(allocation_far_above_the_sample_mean_is_always_sampled)
{
    if (memrt__options.check) { /* checking lists all buffers */
        return;
    }
    start_tracking(0, 16);
    allocations_t allocations = allocate_all_kinds();
    restore_tracking();
    sums_t sums = sum_tracked_buffers(EACH);
    ck_assert_uint_eq(sums.rows, 7);
    ck_assert_double_eq_tol(sums.blocks, 7, 1e-6);
    free_all_kinds(&allocations);
}

TEST(allocation_of_0_bytes_is_never_sampled)
{
    if (memrt__options.check) {
        return;
    }
    memrt_meminfo_t *mis[100];
    size_t listed = sum_tracked_buffers(0).rows;
    start_tracking(0, 1);
    for (size_t i = 0; i < 100; i++) {
        mis[i] = api->allocate(0);
    }
    restore_tracking();
    ck_assert_uint_eq(sum_tracked_buffers(0).rows, listed);
    for (size_t i = 0; i < 100; i++) {
        api->release(mis[i]);
    }
}

#define ALLOCATIONS 40000
#define SIZE 1009

/// Allocate many buffers. Half of the buffers have SIZE bytes. The remaining sizes vary, so that
/// the sampling points fall anywhere.
static void allocate_many(size_t seat, void *context)
{
    memrt_meminfo_t **kept = (memrt_meminfo_t **)context + seat * ALLOCATIONS;
    for (size_t i = 0; i < ALLOCATIONS; i++) {
        kept[i] = api->allocate(i % 2 == 0 ? SIZE : (i * 7919) % 5000 + 2);
    }
}

static memrt_meminfo_t *kept[4 * ALLOCATIONS];

static double estimate_blocks(unsigned threads, uint64_t mean)
{
    start_tracking(0, mean);
    crew_run(threads, allocate_many, kept);
    restore_tracking();
    double blocks = sum_tracked_buffers(SIZE).blocks;
    for (size_t i = 0; i < threads * ALLOCATIONS; i++) {
        api->release(kept[i]);
    }
    return blocks;
}

/// Check the estimate. The number of listed buffers is binomial: n allocations, each listed with
/// probability p and sampling weight 1 / p. A deviation of more than six standard deviations
/// happens once in a billion runs.
static void expect_unbiased(unsigned threads, uint64_t mean)
{
    double n = threads * (ALLOCATIONS / 2.0), p = -expm1(-(double)SIZE / (double)mean);
    double deviation = sqrt(n * p * (1 - p)) / p, found = estimate_blocks(threads, mean);
    ck_assert_msg(fabs(found - n) < 6 * deviation, "estimate %g of %g allocations, deviation %g",
                  found, n, deviation);
}

TEST(sampling_estimates_allocations_without_bias)
{
    if (memrt__options.check) {
        return;
    }
    expect_unbiased(1, 100000);
    expect_unbiased(1, 5000);
    expect_unbiased(1, 500);
    expect_unbiased(4, 5000);
}

TEST(smaller_sample_mean_takes_effect_at_once)
{
    if (memrt__options.check) {
        return;
    }
    estimate_blocks(1, (uint64_t)1 << 40);
    expect_unbiased(1, 5000);
}

TEST(buffer_rows_have_the_length_requested_by_the_caller)
{
    struct {
        memrt_buffer_t known;
        uint64_t later;
    } *longer;
    void *rows;
    size_t count;
    memrt_live_t *shorter;
    start_tracking(0, 0);
    memrt_meminfo_t *mi = api->allocate(EACH);
    restore_tracking();
    ck_assert_int_eq(api->buffers(sizeof(memrt_live_t) - 8, &rows, &count), MEMRT_EINVAL);
    ck_assert_int_eq(api->buffers(sizeof(*longer), &rows, &count), MEMRT_OK);
    longer = rows;
    ck_assert_uint_eq(longer[count - 1].known.live.size, EACH);
    ck_assert_double_eq(longer[count - 1].known.weight, 1);
    ck_assert_uint_eq(longer[count - 1].later, 0);
    ck_assert_int_eq(api->live(&shorter, &count), MEMRT_OK);
    ck_assert_uint_eq(shorter[count - 1].id, longer[count - 1].known.live.id);
    api->live_free(shorter);
    api->live_free(rows);
    api->release(mi);
}

TEST(buffer_read_returns_the_row_of_a_buffer)
{
    char row[sizeof(memrt_buffer_t) + 8];
    memrt_buffer_t known;
    void *rows;
    size_t count;
    int was = api->tracking(0);
    memrt_meminfo_t *unlisted = api->allocate(EACH);
    start_tracking(0, 0);
    memrt_meminfo_t *mi = api->allocate(EACH);
    restore_tracking();
    ck_assert_int_eq(api->buffers(sizeof(known), &rows, &count), MEMRT_OK);
    ck_assert_int_eq(api->buffer_read(mi, sizeof(known), &known), MEMRT_OK);
    known.live.age_ns = ((memrt_buffer_t *)rows)[count - 1].live.age_ns;
    ck_assert_mem_eq(&known, (memrt_buffer_t *)rows + count - 1, sizeof(known));
    api->live_free(rows);
    memset(row, 1, sizeof(row));
    ck_assert_int_eq(api->buffer_read(mi, sizeof(row), row), MEMRT_OK);
    ck_assert_mem_eq(row + sizeof(known), (char[8]){0}, 8);
    ck_assert_int_eq(api->buffer_read(mi, sizeof(memrt_live_t) - 1, row), MEMRT_EINVAL);
    if (!memrt__options.check) { /* checking lists all buffers */
        ck_assert_int_eq(api->buffer_read(unlisted, sizeof(known), &known), MEMRT_ENOENT);
    }
    api->release(unlisted);
    api->release(mi);
    api->tracking(was);
}

TEST(data_block_of_a_resizable_meminfo_is_not_a_buffer)
{
    if (memrt__options.check) { /* checking does not accept a data block as a MemInfo */
        return;
    }
    memrt_meminfo_t *mi;
    memrt_buffer_t row;
    start_tracking(0, 0);
    ck_assert_int_eq(api->resizable_new(EACH, NULL, &mi), MEMRT_OK);
    restore_tracking();
    const memrt_meminfo_t *part = (memrt_meminfo_t *)api->get_data(mi) - 1;
    ck_assert_int_eq(api->buffer_read(mi, sizeof(row), &row), MEMRT_OK);
    ck_assert_int_eq(api->buffer_read(part, sizeof(row), &row), MEMRT_ENOENT);
    api->release(mi);
}

TEST(buffer_listed_only_by_name_has_sampling_weight_0)
{
    if (memrt__options.check) {
        return;
    }
    int was = api->tracking(0);
    memrt_meminfo_t *mi = api->allocate(EACH);
    ck_assert_int_eq(api->set_name(mi, "named"), MEMRT_OK);
    sums_t sums = sum_tracked_buffers(EACH);
    ck_assert_uint_eq(sums.rows, 1);
    ck_assert_double_eq(sums.blocks, 0);
    api->release(mi);
    api->tracking(was);
}

TEST(resize_keeps_the_allocation_site)
{
    api->set_frames(write_one_frame);
    start_tracking(4, 0);
    char *data = api->block_alloc(NULL, 100);
    api->set_frames(NULL);
    data = api->block_realloc(NULL, data, EACH);
    restore_tracking();
    sums_t sums = sum_tracked_buffers(EACH);
    ck_assert_uint_eq(sums.rows, 1);
    ck_assert_double_eq(sums.blocks, 1);
    ck_assert_uint_ne(sums.site, 0);
    api->block_free(NULL, data, EACH);
}

TEST(sampling_includes_calloc_and_alloc_blocks)
{
    if (memrt__options.check) {
        return;
    }
    void *blocks[40];
    start_tracking(0, 1);
    for (size_t i = 0; i < 40; i++) {
        blocks[i] = i % 2 == 0 ? api->block_calloc(NULL, 1, 777) : api->block_alloc(NULL, 777);
    }
    restore_tracking();
    ck_assert_uint_eq(sum_tracked_buffers(777).rows, 40);
    for (size_t i = 0; i < 40; i++) {
        api->block_free(NULL, blocks[i], 0);
    }
}

TEST(largest_sample_mean_does_not_list_every_allocation)
{
    if (memrt__options.check) {
        return;
    }
    memrt_meminfo_t *mis[100];
    start_tracking(0, UINT64_MAX);
    for (size_t i = 0; i < 100; i++) {
        mis[i] = api->allocate(EACH);
    }
    restore_tracking();
    ck_assert_uint_lt(sum_tracked_buffers(EACH).rows, 100);
    for (size_t i = 0; i < 100; i++) {
        api->release(mis[i]);
    }
}

static memrt_meminfo_t *allocate_while_request_fails(uint64_t nth)
{
    suite_fail_request(nth);
    memrt_meminfo_t *mi = api->allocate(EACH);
    suite_fail_request(0);
    return mi;
}

/// The live set requests memory second, or first where the block comes from the thread cache.
TEST(allocation_fails_without_room_in_the_live_set)
{
    if (memrt__options.check) {
        return;
    }
    memrt_meminfo_t *mis[4096];
    size_t count = 0;
    start_tracking(0, 0);
    while (count < 4096 && (mis[count] = allocate_while_request_fails(2 - count % 2)) != NULL) {
        count++;
    }
    ck_assert_uint_lt(count, 4096);
    ck_assert_uint_eq(sum_tracked_buffers(EACH).rows, count);
    mis[count] = api->allocate(EACH);
    ck_assert_ptr_nonnull(mis[count]);
    ck_assert_uint_eq(sum_tracked_buffers(EACH).rows, count + 1);
    restore_tracking();
    for (size_t i = 0; i <= count; i++) {
        api->release(mis[i]);
    }
}
