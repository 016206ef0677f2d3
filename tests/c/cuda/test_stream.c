#include "support/cuda.h"

#include <string.h>

void suite_prepare(void)
{
    cuda_prepare();
}

static const char *const steps[] = {"cuEventCreate", "cuEventRecord", "cuStreamWaitEvent"};

TEST_EACH(refused_stream_order_is_reported_and_leaves_no_event, 3)
{
    uintptr_t stream = cuda_stream(), other = cuda_stream();
    memrt_meminfo_t *mi = cuda_buffer(MEMRT_MEMORY_DEVICE, 10, stream);
    fake_fail(steps[index], 1, 400, 0);
    ck_assert_int_eq(api->cuda_used(mi, other), MEMRT_EDEVICE);
    ck_assert_uint_eq(fake_calls("cuEventDestroy_v2"), index > 0);
    ck_assert_int_eq(api->cuda_used(mi, other), MEMRT_OK);
    api->release(mi);
    ck_assert_int_eq(api->cuda_stream_free(0, other), MEMRT_OK);
    ck_assert_int_eq(api->cuda_stream_free(0, stream), MEMRT_OK);
    cuda_expect_clean();
}

TEST(stream_does_not_wait_for_itself)
{
    uintptr_t stream = cuda_stream();
    memrt_meminfo_t *mi = cuda_buffer(MEMRT_MEMORY_DEVICE, 10, stream);
    ck_assert_int_eq(api->cuda_used(mi, stream), MEMRT_OK);
    ck_assert_int_eq(api->cuda_wait(mi, stream), MEMRT_OK);
    ck_assert_uint_eq(fake_calls("cuEventRecord"), 0);
    api->release(mi);
    ck_assert_int_eq(api->cuda_stream_free(0, stream), MEMRT_OK);
    cuda_expect_clean();
}

TEST(invalid_streams_are_refused)
{
    uintptr_t stream = 0;
    for (uintptr_t special = 0; special <= MEMRT_CUDA_STREAM_PER_THREAD; special++) {
        ck_assert_int_eq(api->cuda_stream_free(0, special), MEMRT_EINVAL);
    }
    ck_assert_int_eq(api->cuda_stream_synchronize(0, 0), MEMRT_EINVAL);
    ck_assert_int_eq(api->cuda_stream_synchronize(0, MEMRT_CUDA_STREAM_LEGACY), MEMRT_OK);
    ck_assert_int_eq(api->cuda_stream_new(-5, &stream), MEMRT_EINVAL);
    ck_assert_int_eq(api->cuda_stream_new(1, &stream), MEMRT_EDEVICE);
    ck_assert_int_eq(api->cuda_stream_free(1, 4096), MEMRT_EDEVICE);
    ck_assert_int_eq(api->cuda_stream_synchronize(1, 1), MEMRT_EDEVICE);
    fake_fail("cuStreamCreate", 1, 2, 0);
    ck_assert_int_eq(api->cuda_stream_new(0, &stream), MEMRT_ENOMEM);
    ck_assert_uint_eq(stream, 0);
    cuda_expect_clean();
}
