#include "support/suite.h"

#include <math.h>
#include <string.h>

#include "runtime/base/options.h"
#include "runtime/debug/tracking.h"
#include "support/crew.h"

/// Tracking as a test wants it; as it was again at its end.
static memrt_tracking_t before;

static void track(uint32_t frames, uint64_t sample)
{
    memrt_tracking_t wanted = {
        .struct_size = sizeof(wanted), .on = 1, .frames = frames, .sample = sample};
    before.struct_size = sizeof(before);
    ck_assert_int_eq(api->tracking_get(&before), MEMRT_OK);
    ck_assert_int_eq(api->tracking_set(&wanted), MEMRT_OK);
}

static void track_as_before(void)
{
    ck_assert_int_eq(api->tracking_set(&before), MEMRT_OK);
}

/// Sums over the live buffers of one size.
typedef struct sums {
    size_t rows;
    double blocks;
    uint32_t site;
} sums_t;

static sums_t sum_up(size_t size)
{
    sums_t sums = {0};
    void *rows;
    size_t count;
    ck_assert_int_eq(api->buffers(sizeof(memrt_buffer_t), &rows, &count), MEMRT_OK);
    for (size_t i = 0; i < count; i++) {
        const memrt_buffer_t *row = (const memrt_buffer_t *)rows + i;
        if (row->live.size == size) {
            sums.rows++;
            sums.blocks += row->stands_for;
            sums.site = row->site;
        }
    }
    api->live_free(rows);
    return sums;
}

TEST(settings_are_read_as_they_were_set)
{
    memrt_tracking_t now = {.struct_size = sizeof(now)};
    track(5, 4096);
    ck_assert_int_eq(api->tracking_get(&now), MEMRT_OK);
    ck_assert_int_eq(now.on, 1);
    ck_assert_uint_eq(now.frames, 5);
    ck_assert_uint_eq(now.native, 0);
    ck_assert_uint_eq(now.sample, 4096);
    ck_assert_int_eq(api->tracking_enabled(), 1);
    track_as_before();
}

TEST(settings_that_cannot_be_are_refused_and_change_nothing)
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

#define EACH 20011 /* bytes that no other test asks for */

/// One of each kind of birth, `EACH` bytes each.
typedef struct births {
    memrt_meminfo_t *mis[5];
    void *blocks[2];
} births_t;

static char foreign[EACH];

static births_t bear_all(void)
{
    births_t births;
    memrt_new_options_t plain = {.struct_size = sizeof(plain)}, aligned = plain;
    aligned.alignment = 4096;
    births.mis[0] = api->allocate(EACH);
    ck_assert_int_eq(api->meminfo_new(EACH, &plain, &births.mis[1]), MEMRT_OK);
    ck_assert_int_eq(api->meminfo_new(EACH, &aligned, &births.mis[2]), MEMRT_OK);
    ck_assert_int_eq(api->meminfo_adopt(foreign, EACH, NULL, &births.mis[3]), MEMRT_OK);
    ck_assert_int_eq(api->resizable_new(EACH, NULL, &births.mis[4]), MEMRT_OK);
    births.blocks[0] = api->block_alloc(NULL, EACH);
    births.blocks[1] = api->block_calloc(NULL, 1, EACH);
    return births;
}

static void end_all(const births_t *births)
{
    for (size_t i = 0; i < 5; i++) {
        api->release(births->mis[i]);
    }
    for (size_t i = 0; i < 2; i++) {
        api->block_free(NULL, births->blocks[i], EACH);
    }
}

static size_t one_frame(memrt_frame_t *frames, size_t max)
{
    ck_assert_uint_gt(max, 0);
    frames[0] = api->frame_new("bear", "births.py", 3);
    return 1;
}

TEST(every_kind_of_birth_is_listed_once_with_its_site)
{
    api->set_frames(one_frame);
    track(4, 0);
    births_t births = bear_all();
    track_as_before();
    api->set_frames(NULL);
    sums_t sums = sum_up(EACH);
    ck_assert_uint_eq(sums.rows, 7);
    ck_assert_double_eq(sums.blocks, 7);
    memrt_site_t site = {.struct_size = sizeof(site)};
    ck_assert_int_eq(api->site_read(sums.site, &site), MEMRT_OK);
    ck_assert_uint_eq(site.births, 7);
    ck_assert_uint_eq(site.bytes, 7 * EACH);
    end_all(&births);
    ck_assert_uint_eq(sum_up(EACH).rows, 0);
}

TEST(a_birth_that_is_far_larger_than_the_mean_is_always_of_the_sample)
{
    if (memrt__options.check) { /* which lists all */
        return;
    }
    track(0, 16);
    births_t births = bear_all();
    track_as_before();
    sums_t sums = sum_up(EACH);
    ck_assert_uint_eq(sums.rows, 7);
    ck_assert_double_eq_tol(sums.blocks, 7, 1e-6);
    end_all(&births);
}

TEST(a_birth_of_no_bytes_is_never_of_the_sample)
{
    if (memrt__options.check) {
        return;
    }
    memrt_meminfo_t *mis[100];
    size_t listed = sum_up(0).rows;
    track(0, 1);
    for (size_t i = 0; i < 100; i++) {
        mis[i] = api->allocate(0);
    }
    track_as_before();
    ck_assert_uint_eq(sum_up(0).rows, listed);
    for (size_t i = 0; i < 100; i++) {
        api->release(mis[i]);
    }
}

#define BIRTHS 40000
#define SIZE 1009

/// Half of the births are of SIZE bytes, the others of sizes all about, so that the points of the
/// sample fall anywhere.
static void bear_many(size_t seat, void *context)
{
    memrt_meminfo_t **kept = (memrt_meminfo_t **)context + seat * BIRTHS;
    for (size_t i = 0; i < BIRTHS; i++) {
        kept[i] = api->allocate(i % 2 == 0 ? SIZE : (i * 7919) % 5000 + 2);
    }
}

static memrt_meminfo_t *kept[4 * BIRTHS];

static double estimate(unsigned threads, uint64_t mean)
{
    track(0, mean);
    crew_run(threads, bear_many, kept);
    track_as_before();
    double blocks = sum_up(SIZE).blocks;
    for (size_t i = 0; i < threads * BIRTHS; i++) {
        api->release(kept[i]);
    }
    return blocks;
}

/// The number listed is binomial: n births, each with p; each stands for 1 / p. Six standard
/// deviations are passed once in a billion runs.
static void expect_unbiased(unsigned threads, uint64_t mean)
{
    double n = threads * (BIRTHS / 2.0), p = -expm1(-(double)SIZE / (double)mean);
    double deviation = sqrt(n * p * (1 - p)) / p, found = estimate(threads, mean);
    ck_assert_msg(fabs(found - n) < 6 * deviation, "%g for %g births, deviation %g", found, n,
                  deviation);
}

TEST(the_sample_estimates_what_all_births_are_without_bias)
{
    if (memrt__options.check) {
        return;
    }
    expect_unbiased(1, 100000);
    expect_unbiased(1, 5000);
    expect_unbiased(1, 500);
    expect_unbiased(4, 5000);
}

TEST(a_smaller_mean_holds_at_once_on_threads_that_sampled_by_a_larger_one)
{
    if (memrt__options.check) {
        return;
    }
    estimate(1, (uint64_t)1 << 40);
    expect_unbiased(1, 5000);
}

TEST(rows_are_as_long_as_the_caller_knows_them)
{
    struct {
        memrt_buffer_t known;
        uint64_t later;
    } *longer;
    void *rows;
    size_t count;
    memrt_live_t *shorter;
    track(0, 0);
    memrt_meminfo_t *mi = api->allocate(EACH);
    track_as_before();
    ck_assert_int_eq(api->buffers(sizeof(memrt_live_t) - 8, &rows, &count), MEMRT_EINVAL);
    ck_assert_int_eq(api->buffers(sizeof(*longer), &rows, &count), MEMRT_OK);
    longer = rows;
    ck_assert_uint_eq(longer[count - 1].known.live.size, EACH);
    ck_assert_double_eq(longer[count - 1].known.stands_for, 1);
    ck_assert_uint_eq(longer[count - 1].later, 0);
    ck_assert_int_eq(api->live(&shorter, &count), MEMRT_OK);
    ck_assert_uint_eq(shorter[count - 1].id, longer[count - 1].known.live.id);
    api->live_free(shorter);
    api->live_free(rows);
    api->release(mi);
}

TEST(what_is_known_of_one_buffer_is_its_row)
{
    char row[sizeof(memrt_buffer_t) + 8];
    memrt_buffer_t known;
    void *rows;
    size_t count;
    int was = api->tracking(0);
    memrt_meminfo_t *unlisted = api->allocate(EACH);
    track(0, 0);
    memrt_meminfo_t *mi = api->allocate(EACH);
    track_as_before();
    ck_assert_int_eq(api->buffers(sizeof(known), &rows, &count), MEMRT_OK);
    ck_assert_int_eq(api->buffer_read(mi, sizeof(known), &known), MEMRT_OK);
    known.live.age_ns = ((memrt_buffer_t *)rows)[count - 1].live.age_ns;
    ck_assert_mem_eq(&known, (memrt_buffer_t *)rows + count - 1, sizeof(known));
    api->live_free(rows);
    memset(row, 1, sizeof(row));
    ck_assert_int_eq(api->buffer_read(mi, sizeof(row), row), MEMRT_OK);
    ck_assert_mem_eq(row + sizeof(known), (char[8]){0}, 8);
    ck_assert_int_eq(api->buffer_read(mi, sizeof(memrt_live_t) - 1, row), MEMRT_EINVAL);
    if (!memrt__options.check) { /* which lists all */
        ck_assert_int_eq(api->buffer_read(unlisted, sizeof(known), &known), MEMRT_ENOENT);
    }
    api->release(unlisted);
    api->release(mi);
    api->tracking(was);
}

TEST(the_data_of_a_resizable_meminfo_is_no_buffer_by_itself)
{
    if (memrt__options.check) { /* which does not take it for a MemInfo */
        return;
    }
    memrt_meminfo_t *mi;
    memrt_buffer_t row;
    track(0, 0);
    ck_assert_int_eq(api->resizable_new(EACH, NULL, &mi), MEMRT_OK);
    track_as_before();
    const memrt_meminfo_t *part = (memrt_meminfo_t *)api->get_data(mi) - 1;
    ck_assert_int_eq(api->buffer_read(mi, sizeof(row), &row), MEMRT_OK);
    ck_assert_int_eq(api->buffer_read(part, sizeof(row), &row), MEMRT_ENOENT);
    api->release(mi);
}

TEST(a_buffer_that_is_listed_for_its_name_alone_stands_for_none)
{
    if (memrt__options.check) {
        return;
    }
    int was = api->tracking(0);
    memrt_meminfo_t *mi = api->allocate(EACH);
    ck_assert_int_eq(api->set_name(mi, "named"), MEMRT_OK);
    sums_t sums = sum_up(EACH);
    ck_assert_uint_eq(sums.rows, 1);
    ck_assert_double_eq(sums.blocks, 0);
    api->release(mi);
    api->tracking(was);
}

TEST(a_resize_keeps_the_place_of_birth)
{
    api->set_frames(one_frame);
    track(4, 0);
    char *data = api->block_alloc(NULL, 100);
    api->set_frames(NULL);
    data = api->block_realloc(NULL, data, EACH);
    track_as_before();
    sums_t sums = sum_up(EACH);
    ck_assert_uint_eq(sums.rows, 1);
    ck_assert_double_eq(sums.blocks, 1);
    ck_assert_uint_ne(sums.site, 0);
    api->block_free(NULL, data, EACH);
}

TEST(a_sample_takes_blocks_of_zeros_and_small_ones_of_a_policy)
{
    if (memrt__options.check) {
        return;
    }
    void *blocks[40];
    track(0, 1);
    for (size_t i = 0; i < 40; i++) {
        blocks[i] = i % 2 == 0 ? api->block_calloc(NULL, 1, 777) : api->block_alloc(NULL, 777);
    }
    track_as_before();
    ck_assert_uint_eq(sum_up(777).rows, 40);
    for (size_t i = 0; i < 40; i++) {
        api->block_free(NULL, blocks[i], 0);
    }
}

TEST(a_mean_beyond_all_memory_lists_next_to_nothing)
{
    if (memrt__options.check) {
        return;
    }
    memrt_meminfo_t *mis[100];
    track(0, UINT64_MAX);
    for (size_t i = 0; i < 100; i++) {
        mis[i] = api->allocate(EACH);
    }
    track_as_before();
    ck_assert_uint_lt(sum_up(EACH).rows, 100);
    for (size_t i = 0; i < 100; i++) {
        api->release(mis[i]);
    }
}
