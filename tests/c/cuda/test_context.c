#include "runtime/cuda/context.h"

#include "support/cuda.h"

void suite_prepare(void)
{
    cuda_prepare();
}

TEST(device_primary_context_is_retained_once)
{
    memrt__context_t context;
    fake_machine(3, 1);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(memrt__context_enter(2, &context), MEMRT_OK);
        ck_assert_int_eq(context.device, 2);
        ck_assert_uint_eq(fake_contexts(), 1);
        memrt__context_leave(&context);
    }
    ck_assert_uint_eq(fake_calls("cuDevicePrimaryCtxRetain"), 1);
    fake_machine(1, 1);
    cuda_expect_clean();
}

TEST(current_device_follows_current_context_or_is_zero)
{
    memrt__context_t outer, inner;
    fake_machine(3, 1);
    ck_assert_int_eq(memrt__context_enter(1, &outer), MEMRT_OK);
    ck_assert_int_eq(memrt__context_enter(MEMRT_CUDA_DEVICE_CURRENT, &inner), MEMRT_OK);
    ck_assert_int_eq(inner.device, 1);
    memrt__context_leave(&inner);
    memrt__context_leave(&outer);
    ck_assert_int_eq(memrt__context_enter(MEMRT_CUDA_DEVICE_CURRENT, &outer), MEMRT_OK);
    ck_assert_int_eq(outer.device, 0);
    memrt__context_leave(&outer);
    fake_machine(1, 1);
    cuda_expect_clean();
}

TEST(unusable_device_is_refused)
{
    memrt__context_t context;
    ck_assert_int_eq(memrt__context_enter(9, &context), MEMRT_EDEVICE);
    ck_assert_int_eq(memrt__context_enter(-2, &context), MEMRT_EINVAL);
    ck_assert_int_eq(memrt__context_enter(MEMRT__DEVICES_MAX, &context), MEMRT_EINVAL);
    fake_machine(5, 1);
    fake_fail("cuDevicePrimaryCtxRetain", 1, 46, 0);
    ck_assert_int_eq(memrt__context_enter(4, &context), MEMRT_EDEVICE);
    ck_assert_int_eq(memrt__context_enter(4, &context), MEMRT_OK);
    memrt__context_leave(&context);
    fake_machine(1, 1);
    cuda_expect_clean();
}

TEST(failed_query_or_missing_function_means_no_memory_pools)
{
    memrt__context_t context;
    ck_assert_int_eq(memrt__context_enter(0, &context), MEMRT_OK);
    ck_assert(memrt__context_has_pools(&context));
    fake_fail("cuDeviceGetAttribute", 1, 1, 0);
    ck_assert(!memrt__context_has_pools(&context));
    memrt__driver_t old = *context.driver;
    old.mem_free_async = NULL;
    ck_assert(!memrt__context_has_pools(&(memrt__context_t){&old, 0}));
    old.mem_alloc_async = NULL;
    ck_assert(!memrt__context_has_pools(&(memrt__context_t){&old, 0}));
    memrt__context_leave(&context);
    cuda_expect_clean();
}
