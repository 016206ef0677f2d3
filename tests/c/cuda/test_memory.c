#include "support/cuda.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

void suite_prepare(void)
{
    cuda_prepare();
}

typedef struct request {
    const char *call;
    memrt_memory_t memory;
    int pools;
} request_t;

static const request_t requests[] = {
    {"cuMemAllocAsync", MEMRT_MEMORY_DEVICE, 1},     {"cuMemAlloc_v2", MEMRT_MEMORY_DEVICE, 0},
    {"cuMemAllocManaged", MEMRT_MEMORY_MANAGED, 1},  {"cuMemHostAlloc", MEMRT_MEMORY_PINNED, 1},
    {"cuCtxPushCurrent_v2", MEMRT_MEMORY_DEVICE, 1},
};
#define REQUESTS (sizeof(requests) / sizeof(requests[0]))

static memrt_status_t request_memory(const request_t *request, uintptr_t stream,
                                     memrt_meminfo_t **out)
{
    memrt_cuda_options_t options = {
        .struct_size = sizeof(options), .memory = request->memory, .stream = stream};
    return api->cuda_new(100, &options, out);
}

static memrt_status_t request_with_error(const request_t *request, int error)
{
    memrt_meminfo_t *mi = NULL;
    memrt_cuda_stats_t before = cuda_stats_of(request->memory);
    fake_machine(1, request->pools);
    fake_fail(request->call, 1, error, 0);
    memrt_status_t status = request_memory(request, MEMRT_CUDA_STREAM_LEGACY, &mi);
    fake_machine(1, 1);
    ck_assert_ptr_null(mi);
    ck_assert_uint_eq(cuda_stats_of(request->memory).live, before.live);
    ck_assert_uint_eq(cuda_stats_of(request->memory).alloc, before.alloc);
    cuda_expect_clean();
    return status;
}

TEST_EACH(refused_driver_request_leaves_accounts_unchanged, REQUESTS)
{
    char text[200];
    ck_assert_int_eq(request_with_error(&requests[index], 999), MEMRT_EDEVICE);
    (void)api->cuda_error(text, sizeof(text));
    ck_assert_ptr_nonnull(strstr(text, requests[index].call));
    ck_assert_ptr_nonnull(strstr(text, "an unknown error (999)"));
    ck_assert_int_eq(request_with_error(&requests[index], 2), MEMRT_ENOMEM);
}

TEST(refused_driver_request_counts_as_failed)
{
    memrt_cuda_stats_t before = cuda_stats_of(MEMRT_MEMORY_DEVICE);
    (void)request_with_error(&requests[0], 2);
    ck_assert_uint_eq(cuda_stats_of(MEMRT_MEMORY_DEVICE).failed - before.failed, 1);
}

static const char *const frees[] = {"cuMemFreeAsync", "cuMemFree_v2", "cuMemFree_v2",
                                    "cuMemFreeHost", "cuCtxPushCurrent_v2"};

TEST_EACH(failed_driver_free_counts_as_lost, REQUESTS)
{
    const request_t *request = &requests[index];
    memrt_meminfo_t *mi = NULL;
    memrt_cuda_stats_t before = cuda_stats_of(request->memory);
    fake_machine(1, request->pools);
    ck_assert_int_eq(request_memory(request, MEMRT_CUDA_STREAM_LEGACY, &mi), MEMRT_OK);
    ck_assert_int_eq(api->cuda_set_limit(request->memory, 0), MEMRT_OK); /* keeps no memory */
    fake_fail(frees[index], 1, 4, 0); /* CUDA_ERROR_DEINITIALIZED, as at the end of a process */
    api->release(mi);
    ck_assert_int_eq(api->cuda_set_limit(request->memory, UINT64_MAX), MEMRT_OK);
    fake_machine(1, 1);
    memrt_cuda_stats_t after = cuda_stats_of(request->memory);
    ck_assert_uint_eq(after.lost - before.lost, 1);
    ck_assert_uint_eq(after.free - before.free, 1);
    ck_assert_uint_eq(after.live, before.live);
    ck_assert_uint_eq(fake_faults(), 0);
    fake_reset();
}

TEST(memory_is_freed_although_stream_wait_fails)
{
    memrt_cuda_stats_t before = cuda_stats_of(MEMRT_MEMORY_PINNED);
    uintptr_t stream = cuda_stream();
    memrt_meminfo_t *mi = cuda_buffer(MEMRT_MEMORY_PINNED, 100, stream);
    fake_fail("cuStreamSynchronize", 1, 400, 0); /* CUDA_ERROR_INVALID_HANDLE */
    api->release(mi);
    ck_assert_uint_eq(cuda_stats_of(MEMRT_MEMORY_PINNED).lost, before.lost);
    ck_assert_int_eq(api->cuda_stream_free(0, stream), MEMRT_OK);
    cuda_expect_clean();
}

TEST(memory_limit_is_enforced_and_can_be_lifted)
{
    memrt_meminfo_t *first = cuda_buffer(MEMRT_MEMORY_MANAGED, 600, 0), *second = NULL;
    memrt_cuda_options_t options = {.struct_size = sizeof(options), .memory = MEMRT_MEMORY_MANAGED};
    ck_assert_int_eq(api->cuda_set_limit(MEMRT_MEMORY_MANAGED, 1000), MEMRT_OK);
    ck_assert_uint_eq(cuda_stats_of(MEMRT_MEMORY_MANAGED).limit, 1000);
    ck_assert_int_eq(api->cuda_new(401, &options, &second), MEMRT_ENOMEM);
    ck_assert_int_eq(api->cuda_new(400, &options, &second), MEMRT_OK);
    api->release(second);
    ck_assert_int_eq(api->cuda_set_limit(MEMRT_MEMORY_MANAGED, UINT64_MAX), MEMRT_OK);
    ck_assert_int_eq(api->cuda_new(4000, &options, &second), MEMRT_OK);
    api->release(second);
    api->release(first);
    cuda_expect_clean();
}

enum { THREADS = 4, TURNS = 200, PART = 300 };

static void *fill_pinned_memory(void *unused)
{
    memrt_cuda_options_t options = {.struct_size = sizeof(options), .memory = MEMRT_MEMORY_PINNED};
    for (int i = 0; i < TURNS; i++) {
        memrt_meminfo_t *mi = NULL;
        if (api->cuda_new(PART, &options, &mi) == MEMRT_OK) {
            REQUIRE(cuda_stats_of(MEMRT_MEMORY_PINNED).live <= 1000);
            api->release(mi);
        }
    }
    return unused;
}

TEST(concurrent_threads_stay_within_memory_limit)
{
    pthread_t threads[THREADS];
    memrt_cuda_stats_t before = cuda_stats_of(MEMRT_MEMORY_PINNED);
    ck_assert_int_eq(api->cuda_set_limit(MEMRT_MEMORY_PINNED, 1000), MEMRT_OK);
    for (int i = 0; i < THREADS; i++) {
        ck_assert_int_eq(pthread_create(&threads[i], NULL, fill_pinned_memory, NULL), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    memrt_cuda_stats_t after = cuda_stats_of(MEMRT_MEMORY_PINNED);
    ck_assert_uint_eq(after.live, before.live);
    ck_assert_uint_le(after.peak, 1000);
    ck_assert_uint_eq((after.alloc - before.alloc) + (after.failed - before.failed),
                      THREADS * TURNS);
    ck_assert_int_eq(api->cuda_set_limit(MEMRT_MEMORY_PINNED, UINT64_MAX), MEMRT_OK);
    cuda_expect_clean();
}

TEST(device_accounts_refuse_invalid_memory_or_struct_size)
{
    memrt_cuda_stats_t stats = {.struct_size = sizeof(stats)}, none = {0};
    ck_assert_int_eq(api->cuda_stats(MEMRT_MEMORY_HOST, &stats), MEMRT_EINVAL);
    ck_assert_int_eq(api->cuda_stats((memrt_memory_t)4, &stats), MEMRT_EINVAL);
    ck_assert_int_eq(api->cuda_stats(MEMRT_MEMORY_DEVICE, &none), MEMRT_EINVAL);
    ck_assert_int_eq(api->cuda_set_limit(MEMRT_MEMORY_HOST, 1), MEMRT_EINVAL);
    ck_assert_ptr_null(api->cuda_policy((memrt_memory_t)4));
}

TEST(older_caller_gets_only_fields_in_struct_size)
{
    memrt_cuda_stats_t stats;
    memset(&stats, 7, sizeof(stats));
    stats.struct_size = offsetof(memrt_cuda_stats_t, limit);
    ck_assert_int_eq(api->cuda_stats(MEMRT_MEMORY_DEVICE, &stats), MEMRT_OK);
    ck_assert_uint_eq(stats.limit, 0x0707070707070707u);
}

#define KEPT 77

static void use_memory(const request_t *request)
{
    memrt_meminfo_t *mi = NULL;
    fake_machine(1, request->pools);
    errno = KEPT;
    if (request_memory(request, MEMRT_CUDA_STREAM_LEGACY, &mi) == MEMRT_OK) {
        REQUIRE(errno == KEPT);
        api->release(mi);
    }
    REQUIRE(errno == KEPT);
    fake_machine(1, 1);
}

static void use_pinned_policy(void)
{
    memrt_policy_t *policy;
    memrt_policy_options_t options = {.struct_size = sizeof(options),
                                      .allocator = api->allocator_pinned()};
    REQUIRE(api->policy_new(&options, &policy) == MEMRT_OK);
    errno = KEPT;
    void *data = api->block_alloc(policy, 1000);
    REQUIRE(data != NULL && errno == KEPT);
    api->block_free(policy, data, 0);
    REQUIRE(errno == KEPT);
    api->policy_release(policy);
}

static void *use_with_pending_cancel(void *context)
{
    pthread_cancel(pthread_self());
    for (size_t i = 0; i < REQUESTS; i++) {
        use_memory(&requests[i]);
    }
    use_pinned_policy();
    return context;
}

TEST(driver_cancellation_and_errno_do_not_reach_caller)
{
    pthread_t thread;
    void *result;
    ck_assert_int_eq(pthread_create(&thread, NULL, use_with_pending_cancel, NULL), 0);
    ck_assert_int_eq(pthread_join(thread, &result), 0);
    ck_assert_ptr_ne(result, PTHREAD_CANCELED);
    cuda_expect_clean();
}
