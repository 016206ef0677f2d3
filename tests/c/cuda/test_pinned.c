#include "runtime/cuda/pinned.h"

#include <string.h>

#include "runtime/alloc/guard/guard.h"
#include "support/cuda.h"

void suite_prepare(void)
{
    cuda_prepare();
}

static memrt_policy_t *create_pinned_policy(size_t alignment)
{
    memrt_policy_options_t options = {.struct_size = sizeof(options),
                                      .name = "pinned",
                                      .alignment = alignment,
                                      .allocator = api->allocator_pinned()};
    memrt_policy_t *policy = NULL;
    ck_assert_int_eq(api->policy_new(&options, &policy), MEMRT_OK);
    return policy;
}

TEST(pinned_block_is_host_memory_known_to_the_device)
{
    memrt_policy_t *policy = create_pinned_policy(0);
    unsigned char *data = api->block_calloc(policy, 100, 10);
    memrt_cuda_info_t info = {.struct_size = sizeof(info)};
    memrt_meminfo_t *mi = NULL;
    ck_assert_ptr_nonnull(data);
    ck_assert(data[0] == 0 && memcmp(data, data + 1, 999) == 0);
    memset(data, 3, 1000);
    ck_assert_uint_ge(cuda_stats_of(MEMRT_MEMORY_PINNED).live, 1000 + MEMRT_HEADER_SIZE);
    ck_assert_int_eq(api->block_meminfo(data, &mi), MEMRT_OK);
    ck_assert_int_eq(api->cuda_info(mi, &info), MEMRT_OK);
    ck_assert_uint_eq(info.memory, MEMRT_MEMORY_PINNED);
    ck_assert_int_eq(info.device, -1);
    ck_assert_uint_eq(mi->flags & MEMRT_FLAG_DEVICE, 0);
    api->release(mi);
    data = api->block_realloc(policy, data, 5000000);
    ck_assert_ptr_nonnull(data);
    ck_assert(data[0] == 3 && memcmp(data, data + 1, 999) == 0);
    api->block_free(policy, data, 0);
    api->policy_release(policy);
    cuda_expect_clean();
}

TEST_EACH(pinned_blocks_have_the_alignment_of_their_policy, 9)
{
    size_t alignment = (size_t)64 << (2 * index); /* to 4 MiB */
    memrt_policy_t *policy = create_pinned_policy(alignment);
    for (size_t size = 0; size < 3000000; size = size * 9 + 1) {
        void *data = api->block_alloc(policy, size);
        ck_assert_uint_eq((uintptr_t)data % alignment, 0);
        memset(data, 1, size);
        api->block_free(policy, data, size);
    }
    api->policy_release(policy);
    cuda_expect_clean();
}

TEST(driver_failure_makes_pinned_allocation_return_null)
{
    memrt_policy_t *policy = create_pinned_policy(0);
    fake_fail("cuMemHostAlloc", 1, 304, 0);
    ck_assert_ptr_null(api->block_alloc(policy, 100));
    fake_fail("cuCtxPushCurrent_v2", 1, 304, 0);
    ck_assert_ptr_null(api->block_alloc(policy, 100));
    api->policy_release(policy);
    cuda_expect_clean();
}

TEST(size_that_overflows_with_its_alignment_is_refused)
{
    const memrt_allocator_t *pinned = api->allocator_pinned();
    ck_assert_ptr_null(pinned->alloc(NULL, SIZE_MAX - 100, 8192));
    cuda_expect_clean();
}

TEST(pinned_block_with_failed_free_is_counted_as_lost)
{
    const memrt_allocator_t *pinned = api->allocator_pinned();
    memrt_cuda_stats_t before = cuda_stats_of(MEMRT_MEMORY_PINNED);
    void *block = pinned->alloc(NULL, 100, 64);
    fake_fail("cuCtxPushCurrent_v2", 1, 4, 0);
    pinned->free(NULL, block, 100, 64);
    ck_assert_uint_eq(cuda_stats_of(MEMRT_MEMORY_PINNED).lost - before.lost, 1);
    ck_assert_uint_eq(cuda_stats_of(MEMRT_MEMORY_PINNED).live, before.live);
    fake_reset();
}

TEST(pinned_allocator_is_recognized_behind_a_guard)
{
    memrt_allocator_t guarded;
    ck_assert_int_eq(api->allocator_guard(api->allocator_pinned(), &guarded), MEMRT_OK);
    ck_assert(memrt__is_pinned(&guarded));
    ck_assert(memrt__is_pinned(api->allocator_pinned()));
    ck_assert(!memrt__is_pinned(api->allocator_system()));
    guarded.destroy(guarded.ctx);
}
