#include "support/cuda.h"

static unsigned live_before;

void cuda_prepare(void)
{
    char why[200];
    REQUIRE(api->option_set("cuda_driver", MEMRT_FAKE_DRIVER, why, sizeof(why)) == MEMRT_OK);
    for (memrt_memory_t memory = MEMRT_MEMORY_DEVICE; memory <= MEMRT_MEMORY_PINNED; memory++) {
        memrt_cuda_options_t options = {.struct_size = sizeof(options), .memory = memory};
        memrt_meminfo_t *mi, *foreign;
        REQUIRE(api->cuda_new(0, &options, &mi) == MEMRT_OK);
        REQUIRE(api->cuda_adopt(0, 0, &options, &foreign) == MEMRT_OK);
        api->release(foreign);
        api->release(mi);
    }
    live_before = fake_live();
    fake_reset();
}

memrt_meminfo_t *cuda_buffer(memrt_memory_t memory, size_t size, uintptr_t stream)
{
    memrt_cuda_options_t options = {
        .struct_size = sizeof(options), .memory = memory, .stream = stream};
    memrt_meminfo_t *mi = NULL;
    ck_assert_int_eq(api->cuda_new(size, &options, &mi), MEMRT_OK);
    return mi;
}

uintptr_t cuda_stream(void)
{
    uintptr_t stream = 0;
    ck_assert_int_eq(api->cuda_stream_new(0, &stream), MEMRT_OK);
    return stream;
}

void cuda_expect_clean(void)
{
    (void)api->release_unused(); /* pinned memory that is kept for later requests */
    ck_assert_uint_eq(fake_faults(), 0);
    ck_assert_uint_eq(fake_live(), live_before);
    ck_assert_uint_eq(fake_contexts(), 0);
    fake_reset();
}

memrt_cuda_stats_t cuda_stats_of(memrt_memory_t memory)
{
    memrt_cuda_stats_t stats = {.struct_size = sizeof(stats)};
    ck_assert_int_eq(api->cuda_stats(memory, &stats), MEMRT_OK);
    return stats;
}
