#include "runtime/cuda/pinned_cache.h"

#include <pthread.h>
#include <string.h>

#include "runtime/config/options.h"
#include "support/cuda.h"

#define MIB ((size_t)1 << 20)
#define SIZE (3 * MIB)

/// Whether the tests of cached blocks can run: checking mode has no caches.
static bool caches;

/// Switch the cache on, also where a sanitizer or a setting switched all caches off at the start.
void suite_prepare(void)
{
    cuda_prepare();
    caches = !memrt__options.check;
    memrt__options.cache = caches;
}

/// Define a test of cached blocks.
#define CACHE_TEST_EACH(name, count)                                                               \
    static void name##_with_cache(int index);                                                      \
    TEST_EACH(name, count)                                                                         \
    {                                                                                              \
        if (caches) {                                                                              \
            name##_with_cache(index);                                                              \
        }                                                                                          \
    }                                                                                              \
    static void name##_with_cache(__attribute__((unused)) int index)
#define CACHE_TEST(name) CACHE_TEST_EACH(name, 1)

static uintptr_t get_address(memrt_meminfo_t *mi)
{
    return (uintptr_t)mi->data;
}

/// Make and drop a pinned buffer, and return its address.
static uintptr_t use_buffer(size_t size, uintptr_t stream)
{
    memrt_meminfo_t *mi = cuda_buffer(MEMRT_MEMORY_PINNED, size, stream);
    uintptr_t address = get_address(mi);
    api->release(mi);
    return address;
}

static uint64_t cached(void)
{
    return cuda_stats_of(MEMRT_MEMORY_PINNED).cached;
}

static void set_limit(uint64_t limit)
{
    ck_assert_int_eq(api->cuda_set_limit(MEMRT_MEMORY_PINNED, limit), MEMRT_OK);
}

CACHE_TEST(next_request_gets_freed_block_without_driver_call)
{
    uintptr_t first = use_buffer(SIZE, 0);
    ck_assert_uint_eq(cached(), SIZE);
    memrt_meminfo_t *mi = cuda_buffer(MEMRT_MEMORY_PINNED, SIZE - 100, 0);
    ck_assert_uint_eq(get_address(mi), first);
    ck_assert_uint_eq(cached(), 0);
    ck_assert_uint_eq(fake_calls("cuMemHostAlloc"), 1);
    ck_assert_uint_eq(fake_calls("cuMemFreeHost"), 0);
    api->release(mi);
    cuda_expect_clean();
    ck_assert_uint_eq(cached(), 0);
}

CACHE_TEST(last_freed_block_of_the_size_is_taken_first)
{
    memrt_meminfo_t *a = cuda_buffer(MEMRT_MEMORY_PINNED, SIZE, 0);
    memrt_meminfo_t *b = cuda_buffer(MEMRT_MEMORY_PINNED, SIZE, 0);
    uintptr_t first = get_address(a), second = get_address(b);
    api->release(a);
    api->release(b);
    (void)use_buffer(2 * SIZE, 0);
    a = cuda_buffer(MEMRT_MEMORY_PINNED, SIZE, 0);
    b = cuda_buffer(MEMRT_MEMORY_PINNED, SIZE, 0);
    ck_assert_uint_eq(get_address(a), second);
    ck_assert_uint_eq(get_address(b), first);
    api->release(a);
    api->release(b);
    cuda_expect_clean();
}

CACHE_TEST_EACH(block_is_cached_after_work_of_all_streams, 2)
{
    uintptr_t stream = cuda_stream();
    memrt_meminfo_t *mi = cuda_buffer(MEMRT_MEMORY_PINNED, SIZE, index == 0 ? 0 : stream);
    unsigned char *data = mi->data;
    memset(data, 1, SIZE);
    fake_launch(stream, (uintptr_t)data, 7, SIZE);
    api->release(mi);
    ck_assert_uint_eq(cached(), SIZE);
    ck_assert_uint_eq(data[0], 7); /* the work is done, and changes no later contents */
    ck_assert_int_eq(api->cuda_stream_free(0, stream), MEMRT_OK);
    cuda_expect_clean();
}

static const struct {
    const char *call;
    uintptr_t stream;
} waits[] = {
    {"cuCtxSynchronize", MEMRT_CUDA_STREAM_NONE},
    {"cuCtxSynchronize", MEMRT_CUDA_STREAM_PER_THREAD},
    {"cuDeviceGetCount", MEMRT_CUDA_STREAM_NONE},
    {"cuDeviceGet", MEMRT_CUDA_STREAM_NONE},
    {"cuDevicePrimaryCtxGetState", MEMRT_CUDA_STREAM_NONE},
    {"cuStreamSynchronize", MEMRT_CUDA_STREAM_LEGACY},
};

CACHE_TEST_EACH(block_is_freed_after_a_failed_wait, sizeof(waits) / sizeof(waits[0]))
{
    memrt_meminfo_t *mi = cuda_buffer(MEMRT_MEMORY_PINNED, SIZE, waits[index].stream);
    fake_fail(waits[index].call, 1, 700, 0); /* CUDA_ERROR_ILLEGAL_ADDRESS */
    api->release(mi);
    ck_assert_uint_eq(cached(), 0);
    ck_assert_uint_eq(fake_calls("cuMemFreeHost"), 1);
    cuda_expect_clean();
}

CACHE_TEST(wait_leaves_out_devices_that_are_not_used)
{
    fake_machine(3, 1);
    (void)use_buffer(SIZE, 0);
    ck_assert_uint_eq(fake_calls("cuDevicePrimaryCtxGetState"), 3);
    ck_assert_uint_eq(fake_calls("cuCtxSynchronize"), 1);
    fake_machine(1, 1);
    cuda_expect_clean();
}

CACHE_TEST(block_is_freed_with_more_devices_than_memrt_knows)
{
    fake_machine(65, 1);
    (void)use_buffer(SIZE, 0);
    fake_machine(1, 1);
    ck_assert_uint_eq(fake_calls("cuMemFreeHost"), 1);
    cuda_expect_clean();
}

CACHE_TEST(very_large_block_is_freed)
{
    (void)use_buffer(1025 * MIB, 0);
    ck_assert_uint_eq(cached(), 0);
    ck_assert_uint_eq(fake_calls("cuMemFreeHost"), 1);
    cuda_expect_clean();
}

CACHE_TEST(block_is_freed_if_a_context_cannot_be_entered)
{
    memrt_meminfo_t *mi = cuda_buffer(MEMRT_MEMORY_PINNED, SIZE, 0);
    fake_fail("cuCtxPushCurrent_v2", 2, 201, 0); /* the first push is of the release itself */
    api->release(mi);
    ck_assert_uint_eq(fake_calls("cuMemFreeHost"), 1);
    cuda_expect_clean();
}

CACHE_TEST(oldest_blocks_are_freed_beyond_the_most_bytes)
{
    memrt_meminfo_t *buffers[6];
    set_limit(16 * MIB); /* also the most cached bytes */
    for (size_t i = 0; i < 5; i++) {
        buffers[i] = cuda_buffer(MEMRT_MEMORY_PINNED, SIZE, 0);
    }
    for (size_t i = 0; i < 5; i++) {
        api->release(buffers[i]);
    }
    ck_assert_uint_eq(cached(), 5 * SIZE);
    (void)use_buffer(2 * MIB, 0); /* 17 MiB are more than the limit */
    ck_assert_uint_eq(fake_calls("cuMemFreeHost"), 1);
    ck_assert_uint_eq(cached(), 4 * SIZE + 2 * MIB);
    set_limit(UINT64_MAX);
    cuda_expect_clean();
}

CACHE_TEST(cache_holds_a_bounded_number_of_blocks)
{
    memrt_meminfo_t *buffers[300];
    for (size_t i = 0; i < 300; i++) {
        buffers[i] = cuda_buffer(MEMRT_MEMORY_PINNED, 100, 0);
    }
    for (size_t i = 0; i < 300; i++) {
        api->release(buffers[i]);
    }
    ck_assert_uint_eq(fake_calls("cuMemFreeHost"), 300 - 256);
    ck_assert_uint_eq(cached(), 256 * 4096);
    cuda_expect_clean();
}

CACHE_TEST(cached_blocks_are_freed_if_the_driver_has_no_memory)
{
    memrt_meminfo_t *mi = NULL;
    memrt_cuda_options_t options = {.struct_size = sizeof(options), .memory = MEMRT_MEMORY_PINNED};
    (void)use_buffer(SIZE, 0);
    fake_fail("cuMemHostAlloc", 1, 2, 0);
    ck_assert_int_eq(api->cuda_new(2 * SIZE, &options, &mi), MEMRT_OK);
    ck_assert_uint_eq(fake_calls("cuMemFreeHost"), 1);
    ck_assert_uint_eq(cached(), 0);
    api->release(mi);
    (void)api->release_unused();
    fake_fail("cuMemHostAlloc", 1, 2, 1);
    ck_assert_int_eq(api->cuda_new(SIZE, &options, &mi), MEMRT_ENOMEM);
    fake_reset();
    cuda_expect_clean();
}

CACHE_TEST(release_unused_returns_the_bytes_that_the_driver_freed)
{
    (void)use_buffer(SIZE, 0);
    (void)use_buffer(MIB, 0);
    fake_fail("cuMemFreeHost", 1, 4, 0);
    ck_assert_uint_ge(api->release_unused(), MIB);
    ck_assert_uint_eq(cached(), 0);
    ck_assert_uint_eq(api->release_unused(), 0);
    fake_reset();
}

CACHE_TEST(release_unused_keeps_blocks_without_a_context)
{
    (void)use_buffer(SIZE, 0);
    fake_fail("cuCtxPushCurrent_v2", 1, 201, 0);
    (void)api->release_unused();
    ck_assert_uint_eq(cached(), SIZE);
    cuda_expect_clean();
}

static const struct {
    size_t size, rounded;
} sizes[] = {
    {1, 4096},
    {4096, 4096},
    {4097, 5120},
    {5120, 5120},
    {5121, 6144},
    {8191, 8192},
    {3 * MIB + 1, 3 * MIB + MIB / 2},
    {1024 * MIB, 1024 * MIB},
    {1024 * MIB + 1, 1024 * MIB + 1},
    {SIZE_MAX, SIZE_MAX},
};

CACHE_TEST_EACH(size_is_rounded_to_one_of_four_between_powers_of_two,
                sizeof(sizes) / sizeof(sizes[0]))
{
    ck_assert_uint_eq(memrt__pinned_cache_round(sizes[index].size), sizes[index].rounded);
}

TEST(no_block_is_cached_if_the_cache_is_off)
{
    memrt__options.cache = false;
    (void)use_buffer(SIZE, 0);
    ck_assert_uint_eq(cached(), 0);
    ck_assert_uint_eq(fake_calls("cuMemFreeHost"), 1);
    ck_assert_uint_eq(memrt__pinned_cache_round(100), 100);
    memrt__options.cache = caches;
    cuda_expect_clean();
}

enum { THREADS = 4, TURNS = 300 };

/// Write the thread's number into a buffer: a block that two threads have shows both numbers.
static void *use_buffers(void *number)
{
    for (size_t i = 0; i < TURNS; i++) {
        memrt_meminfo_t *mi = NULL;
        memrt_cuda_options_t options = {.struct_size = sizeof(options),
                                        .memory = MEMRT_MEMORY_PINNED};
        REQUIRE(api->cuda_new(4096 * (1 + i % 3), &options, &mi) == MEMRT_OK);
        memset(mi->data, *(unsigned char *)number, 4096);
        if (i % 50 == 0) {
            (void)api->release_unused();
        }
        for (size_t byte = 0; byte < 4096; byte += 64) {
            REQUIRE(((unsigned char *)mi->data)[byte] == *(unsigned char *)number);
        }
        api->release(mi);
    }
    return NULL;
}

CACHE_TEST(concurrent_threads_never_share_a_cached_block)
{
    pthread_t threads[THREADS];
    unsigned char numbers[THREADS];
    for (unsigned char i = 0; i < THREADS; i++) {
        numbers[i] = i;
        ck_assert_int_eq(pthread_create(&threads[i], NULL, use_buffers, &numbers[i]), 0);
    }
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    cuda_expect_clean();
}
