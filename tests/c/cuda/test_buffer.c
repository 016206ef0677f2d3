#include "support/cuda.h"

#include <string.h>

#include "support/books.h"
#include "support/child.h"

void suite_prepare(void)
{
    cuda_prepare();
}

static const memrt_memory_t memories[] = {MEMRT_MEMORY_DEVICE, MEMRT_MEMORY_MANAGED,
                                          MEMRT_MEMORY_PINNED};

static memrt_cuda_info_t read_info(const memrt_meminfo_t *mi)
{
    memrt_cuda_info_t info = {.struct_size = sizeof(info)};
    ck_assert_int_eq(api->cuda_info(mi, &info), MEMRT_OK);
    return info;
}

static int peek_byte(memrt_meminfo_t *mi)
{
    return fake_peek((uintptr_t)api->get_data(mi));
}

TEST_EACH(buffer_of_each_memory_kind_reads_back_writes, 3)
{
    char out[100], in[100];
    memset(in, 7, sizeof(in));
    memrt_meminfo_t *mi = cuda_buffer(memories[index], 100, 0);
    ck_assert_int_eq(api->cuda_write(mi, 0, in, 100, 0), MEMRT_OK);
    ck_assert_int_eq(api->cuda_read(mi, 0, out, 100, 0), MEMRT_OK);
    ck_assert_mem_eq(in, out, 100);
    ck_assert_uint_eq(read_info(mi).memory, memories[index]);
    ck_assert_int_eq(read_info(mi).device, 0);
    api->release(mi);
    cuda_expect_clean();
}

TEST_EACH(buffer_counts_in_stats_of_memory_kind_until_freed, 3)
{
    memrt_stats_t process = stats_of(NULL);
    memrt_cuda_stats_t before = cuda_stats_of(memories[index]);
    memrt_meminfo_t *mi = cuda_buffer(memories[index], 1000, 0);
    memrt_cuda_stats_t during = cuda_stats_of(memories[index]);
    ck_assert_uint_eq(during.live - before.live, 1000);
    ck_assert_uint_eq(during.alloc - before.alloc, 1);
    ck_assert_uint_ge(during.peak, during.live);
    ck_assert_uint_eq(stats_of(NULL).adopted - process.adopted, 1000);
    ck_assert_uint_eq(stats_of(api->policy_of(mi)).adopted, 1000);
    api->release(mi);
    ck_assert_uint_eq(cuda_stats_of(memories[index]).live, before.live);
    ck_assert_uint_eq(cuda_stats_of(memories[index]).free - before.free, 1);
    cuda_expect_clean();
}

TEST_EACH(empty_buffer_has_no_address_and_no_driver_allocation, 3)
{
    memrt_meminfo_t *mi = cuda_buffer(memories[index], 0, 0);
    ck_assert_ptr_null(api->get_data(mi));
    ck_assert_int_eq(api->cuda_read(mi, 0, NULL, 0, 0), MEMRT_OK);
    api->release(mi);
    ck_assert_uint_eq(fake_calls("cuMemAlloc_v2") + fake_calls("cuMemHostAlloc") +
                          fake_calls("cuMemAllocManaged"),
                      0);
    cuda_expect_clean();
}

/// The host cannot touch device memory of the fake driver: an access would crash.
TEST(diagnostics_do_not_touch_device_memory)
{
    char text[300];
    memrt_meminfo_t *found = NULL;
    memrt_live_t *list = NULL;
    size_t count = 0;
    int was_on = api->tracking(1);
    memrt_meminfo_t *mi = cuda_buffer(MEMRT_MEMORY_DEVICE, 100000, 0);
    ck_assert((mi->flags & MEMRT_FLAG_DEVICE) != 0);
    ck_assert_int_eq(api->set_name(mi, "on the device"), MEMRT_OK);
    ck_assert_int_eq(api->acquire_as(mi, MEMRT_HOLDER_EXPORT, "kernel"), MEMRT_OK);
    api->release_as(mi, MEMRT_HOLDER_EXPORT, "kernel");
    ck_assert_uint_gt(api->dump(mi, text, sizeof(text)), 0);
    ck_assert_int_eq(api->find(api->get_data(mi), &found), MEMRT_OK);
    ck_assert_ptr_eq(found, mi);
    ck_assert_int_eq(api->live(&list, &count), MEMRT_OK);
    api->live_free(list);
    api->release(found);
    api->release(mi);
    api->tracking(was_on);
    (void)api->release_unused();
    cuda_expect_clean();
}

TEST(buffer_with_stream_is_allocated_and_freed_in_order)
{
    uintptr_t stream = cuda_stream();
    memrt_meminfo_t *mi = cuda_buffer(MEMRT_MEMORY_DEVICE, 64, stream);
    fake_launch(stream, (uintptr_t)api->get_data(mi), 1, 64);
    ck_assert_uint_eq(read_info(mi).stream, stream);
    api->release(mi); /* before the work is done */
    ck_assert_uint_eq(fake_calls("cuMemAllocAsync"), 1);
    ck_assert_uint_eq(fake_calls("cuMemFreeAsync"), 1);
    ck_assert_uint_eq(fake_calls("cuStreamSynchronize"), 0);
    ck_assert_int_eq(api->cuda_stream_free(0, stream), MEMRT_OK);
    cuda_expect_clean();
}

TEST(free_waits_for_work_in_another_stream)
{
    uintptr_t stream = cuda_stream(), other = cuda_stream();
    memrt_meminfo_t *mi = cuda_buffer(MEMRT_MEMORY_DEVICE, 64, stream);
    fake_launch(other, (uintptr_t)api->get_data(mi), 1, 64);
    ck_assert_int_eq(api->cuda_used(mi, other), MEMRT_OK);
    api->release(mi);
    ck_assert_int_eq(api->cuda_stream_synchronize(0, stream), MEMRT_OK);
    ck_assert_int_eq(api->cuda_stream_free(0, other), MEMRT_OK);
    ck_assert_int_eq(api->cuda_stream_free(0, stream), MEMRT_OK);
    cuda_expect_clean();
}

TEST(fake_driver_reports_fault_for_unannounced_work)
{
    uintptr_t stream = cuda_stream(), other = cuda_stream();
    memrt_meminfo_t *mi = cuda_buffer(MEMRT_MEMORY_DEVICE, 64, stream);
    fake_launch(other, (uintptr_t)api->get_data(mi), 1, 64);
    api->release(mi);
    ck_assert_int_eq(api->cuda_stream_synchronize(0, stream), MEMRT_OK);
    ck_assert_int_eq(api->cuda_stream_free(0, other), MEMRT_OK);
    ck_assert_int_eq(api->cuda_stream_free(0, stream), MEMRT_OK);
    ck_assert_uint_eq(fake_faults(), 1);
    fake_reset();
    cuda_expect_clean();
}

TEST_EACH(free_synchronizes_stream_without_async_free, 2)
{
    uintptr_t stream = cuda_stream();
    fake_machine(1, index);
    memrt_memory_t memory = index == 0 ? MEMRT_MEMORY_DEVICE : MEMRT_MEMORY_MANAGED;
    memrt_meminfo_t *mi = cuda_buffer(memory, 64, stream);
    fake_launch(stream, (uintptr_t)api->get_data(mi), 1, 64);
    api->release(mi);
    ck_assert_uint_eq(fake_calls("cuMemFreeAsync"), 0);
    ck_assert_uint_eq(fake_calls("cuStreamSynchronize"), 1);
    ck_assert_int_eq(api->cuda_stream_free(0, stream), MEMRT_OK);
    fake_machine(1, 1);
    cuda_expect_clean();
}

TEST(per_thread_stream_uses_no_async_allocation)
{
    memrt_meminfo_t *mi = cuda_buffer(MEMRT_MEMORY_DEVICE, 64, MEMRT_CUDA_STREAM_PER_THREAD);
    api->release(mi);
    ck_assert_uint_eq(fake_calls("cuMemAlloc_v2"), 1);
    ck_assert_uint_eq(fake_calls("cuMemFree_v2"), 1);
    cuda_expect_clean();
}

TEST(read_waits_for_announced_stream_work)
{
    char byte = 0;
    uintptr_t stream = cuda_stream(), other = cuda_stream();
    memrt_meminfo_t *mi = cuda_buffer(MEMRT_MEMORY_DEVICE, 64, stream);
    fake_launch(stream, (uintptr_t)api->get_data(mi), 1, 64);
    ck_assert_int_ne(peek_byte(mi), 1);
    ck_assert_int_eq(api->cuda_read(mi, 63, &byte, 1, other), MEMRT_OK);
    ck_assert_int_eq(byte, 1);
    fake_launch(other, (uintptr_t)api->get_data(mi), 2, 64);
    ck_assert_int_eq(api->cuda_used(mi, other), MEMRT_OK);
    ck_assert_int_eq(api->cuda_read(mi, 0, &byte, 1, 0), MEMRT_OK);
    ck_assert_int_eq(byte, 2);
    api->release(mi);
    ck_assert_int_eq(api->cuda_stream_free(0, other), MEMRT_OK);
    ck_assert_int_eq(api->cuda_stream_free(0, stream), MEMRT_OK);
    cuda_expect_clean();
}

TEST(cuda_wait_makes_stream_wait_for_buffer)
{
    uintptr_t stream = cuda_stream(), other = cuda_stream();
    memrt_meminfo_t *mi = cuda_buffer(MEMRT_MEMORY_DEVICE, 64, stream);
    fake_launch(stream, (uintptr_t)api->get_data(mi), 1, 64);
    ck_assert_int_eq(api->cuda_wait(mi, other), MEMRT_OK);
    ck_assert_int_eq(api->cuda_stream_synchronize(0, other), MEMRT_OK);
    ck_assert_int_eq(peek_byte(mi), 1);
    api->release(mi);
    ck_assert_int_eq(api->cuda_stream_free(0, other), MEMRT_OK);
    ck_assert_int_eq(api->cuda_stream_free(0, stream), MEMRT_OK);
    cuda_expect_clean();
}

TEST(first_used_stream_becomes_stream_of_buffer)
{
    uintptr_t stream = cuda_stream();
    memrt_meminfo_t *mi = cuda_buffer(MEMRT_MEMORY_DEVICE, 64, 0);
    ck_assert_uint_eq(read_info(mi).stream, 0);
    ck_assert_int_eq(api->cuda_used(mi, stream), MEMRT_OK);
    ck_assert_uint_eq(read_info(mi).stream, stream);
    api->release(mi);
    ck_assert_int_eq(api->cuda_stream_free(0, stream), MEMRT_OK);
    cuda_expect_clean();
}

static size_t dtor_order;

static void record_dtor_order(void *data, size_t size, void *info)
{
    (void)data;
    ck_assert_uint_eq(size, 10);
    *(size_t *)info = dtor_order = fake_live() + 1;
}

TEST(caller_destructor_runs_once_after_memory_is_freed)
{
    size_t seen = 0;
    memrt_cuda_options_t options = {
        .struct_size = sizeof(options), .dtor = record_dtor_order, .dtor_info = &seen};
    memrt_meminfo_t *mi = NULL;
    ck_assert_int_eq(api->cuda_new(10, &options, &mi), MEMRT_OK);
    api->acquire(mi);
    api->release(mi);
    ck_assert_uint_eq(seen, 0);
    api->release(mi);
    ck_assert_uint_eq(seen, 1);
    cuda_expect_clean();
}

TEST(adopted_memory_is_not_freed)
{
    size_t seen = 0;
    memrt_meminfo_t *mi = cuda_buffer(MEMRT_MEMORY_MANAGED, 10, 0), *adopted = NULL;
    memrt_cuda_options_t options = {.struct_size = sizeof(options),
                                    .dtor = record_dtor_order,
                                    .dtor_info = &seen,
                                    .readonly = 1};
    ck_assert_int_eq(api->cuda_adopt((uintptr_t)api->get_data(mi), 10, &options, &adopted),
                     MEMRT_OK);
    ck_assert_ptr_eq(api->get_data(adopted), api->get_data(mi));
    ck_assert_uint_eq(read_info(adopted).memory, MEMRT_MEMORY_MANAGED);
    ck_assert_int_ne(read_info(adopted).adopted, 0);
    ck_assert_int_ne(api->readonly(adopted), 0);
    ck_assert_int_eq(api->cuda_write(adopted, 0, "x", 1, 0), MEMRT_EINVAL);
    ck_assert_str_eq(api->policy_name(api->policy_of(adopted)), "cuda foreign");
    api->release(adopted);
    ck_assert_uint_eq(seen, 2);
    ck_assert_uint_eq(fake_live(), 1);
    api->release(mi);
    cuda_expect_clean();
}

TEST(address_of_another_context_is_resolved)
{
    memrt_meminfo_t *mi = cuda_buffer(MEMRT_MEMORY_DEVICE, 10, 0), *adopted = NULL;
    uintptr_t alias = fake_alias((uintptr_t)api->get_data(mi));
    ck_assert_int_eq(api->cuda_adopt(alias + 3, 7, NULL, &adopted), MEMRT_OK);
    ck_assert_ptr_eq(api->get_data(adopted), (char *)api->get_data(mi) + 3);
    api->release(adopted);
    api->release(mi);
    cuda_expect_clean();
}

TEST(address_unknown_to_driver_is_refused)
{
    char ours, text[200];
    memrt_meminfo_t *mi = NULL;
    ck_assert_int_eq(api->cuda_adopt((uintptr_t)&ours, 1, NULL, &mi), MEMRT_EDEVICE);
    ck_assert_ptr_null(mi);
    (void)api->cuda_error(text, sizeof(text));
    ck_assert_ptr_nonnull(strstr(text, "cuPointerGetAttribute failed with "
                                       "CUDA_ERROR_INVALID_VALUE (1): invalid argument"));
    cuda_expect_clean();
}

TEST(invalid_arguments_are_refused)
{
    char byte;
    memrt_meminfo_t *mi = NULL, *host = api->allocate(10);
    memrt_cuda_options_t options = {.struct_size = sizeof(options), .memory = 4};
    memrt_cuda_info_t info = {.struct_size = sizeof(info)}, none = {0};
    ck_assert_int_eq(api->cuda_new(10, &options, &mi), MEMRT_EINVAL);
    options.memory = 0;
    options.device = 64;
    ck_assert_int_eq(api->cuda_new(10, &options, &mi), MEMRT_EINVAL);
    options.device = 1;
    ck_assert_int_eq(api->cuda_new(10, &options, &mi), MEMRT_EDEVICE);
    options.struct_size = 3;
    ck_assert_int_eq(api->cuda_new(10, &options, &mi), MEMRT_EINVAL);
    ck_assert_int_eq(api->cuda_adopt(4096, 10, &options, &mi), MEMRT_EINVAL);
    ck_assert_int_eq(api->cuda_new((size_t)1 << 60, NULL, &mi), MEMRT_ENOMEM);
    ck_assert_int_eq(api->cuda_adopt(0, 10, NULL, &mi), MEMRT_EINVAL);
    ck_assert_int_eq(api->cuda_adopt(SIZE_MAX - 5, 10, NULL, &mi), MEMRT_EINVAL);
    ck_assert_int_eq(api->cuda_info(host, &info), MEMRT_ENOENT);
    ck_assert_int_eq(api->cuda_info(host, &none), MEMRT_EINVAL);
    ck_assert_int_eq(api->cuda_used(host, 1), MEMRT_ENOTSUP);
    ck_assert_int_eq(api->cuda_wait(host, 1), MEMRT_ENOTSUP);
    ck_assert_int_eq(api->cuda_read(host, 0, &byte, 1, 0), MEMRT_ENOTSUP);
    ck_assert_int_eq(api->cuda_write(host, 0, &byte, 1, 0), MEMRT_ENOTSUP);
    ck_assert_ptr_null(mi);
    mi = cuda_buffer(MEMRT_MEMORY_DEVICE, 10, 0);
    ck_assert_int_eq(api->cuda_used(mi, 0), MEMRT_EINVAL);
    ck_assert_int_eq(api->cuda_wait(mi, 0), MEMRT_EINVAL);
    ck_assert_int_eq(api->cuda_read(mi, 10, &byte, 1, 0), MEMRT_EINVAL);
    ck_assert_int_eq(api->cuda_read(mi, SIZE_MAX, &byte, 2, 0), MEMRT_EINVAL);
    ck_assert_int_eq(api->cuda_write(mi, 5, &byte, 6, 0), MEMRT_EINVAL);
    ck_assert_int_eq(api->cuda_write(mi, 10, &byte, 0, 0), MEMRT_OK);
    ck_assert_int_eq(api->cuda_new(SIZE_MAX, NULL, &host), MEMRT_ENOMEM);
    api->release(mi);
    api->release(host);
    cuda_expect_clean();
}

static void use_inherited_buffers(void *context)
{
    memrt_meminfo_t *mi = context, *fresh = NULL;
    char why[200];
    memrt_cuda_stats_t stats = {.struct_size = sizeof(stats)};
    REQUIRE(api->cuda_new(10, NULL, &fresh) == MEMRT_ENOTSUP);
    REQUIRE(api->cuda_read(mi, 0, why, 1, 0) == MEMRT_ENOTSUP);
    REQUIRE(api->cuda_why_not(why, sizeof(why)) != 0 && strstr(why, "fork") != NULL);
    api->release(mi);
    REQUIRE(fake_calls("cuMemFree_v2") == 0);
    REQUIRE(api->cuda_stats(MEMRT_MEMORY_DEVICE, &stats) == MEMRT_OK && stats.lost == 1);
}

TEST(forked_child_releases_buffer_without_driver)
{
    memrt_meminfo_t *mi = cuda_buffer(MEMRT_MEMORY_DEVICE, 10, 0);
    child_expect_success(use_inherited_buffers, mi);
    api->release(mi);
    cuda_expect_clean();
}

TEST(memory_with_end_unknown_to_driver_is_refused)
{
    memrt_meminfo_t *mi = cuda_buffer(MEMRT_MEMORY_DEVICE, 10, 0), *adopted = NULL;
    uintptr_t address = (uintptr_t)api->get_data(mi);
    ck_assert_int_eq(api->cuda_adopt(address, 11, NULL, &adopted), MEMRT_EDEVICE);
    ck_assert_int_eq(api->cuda_adopt(address + 9, 1, NULL, &adopted), MEMRT_OK);
    api->release(adopted);
    api->release(mi);
    cuda_expect_clean();
}

TEST(memory_across_two_allocations_is_refused)
{
    memrt_meminfo_t *low = cuda_buffer(MEMRT_MEMORY_DEVICE, 10, 0), *adopted = NULL;
    memrt_meminfo_t *high = cuda_buffer(MEMRT_MEMORY_DEVICE, 10, 0);
    /* an alias in another part of the address space */
    uintptr_t one = fake_alias((uintptr_t)api->get_data(low));
    uintptr_t other = (uintptr_t)api->get_data(high);
    uintptr_t start = one < other ? one : other, end = one < other ? other : one;
    ck_assert_int_eq(api->cuda_adopt(start, end - start + 1, NULL, &adopted), MEMRT_EINVAL);
    ck_assert_ptr_null(adopted);
    api->release(high);
    api->release(low);
    cuda_expect_clean();
}

TEST(use_in_per_thread_stream_sets_legacy_stream)
{
    memrt_meminfo_t *mi = cuda_buffer(MEMRT_MEMORY_DEVICE, 64, 0);
    char byte = 0;
    fake_launch(MEMRT_CUDA_STREAM_PER_THREAD, (uintptr_t)api->get_data(mi), 5, 64);
    ck_assert_int_eq(api->cuda_used(mi, MEMRT_CUDA_STREAM_PER_THREAD), MEMRT_OK);
    ck_assert_uint_eq(read_info(mi).stream, MEMRT_CUDA_STREAM_LEGACY);
    ck_assert_int_eq(api->cuda_read(mi, 0, &byte, 1, 0), MEMRT_OK);
    ck_assert_int_eq(byte, 5);
    api->release(mi);
    cuda_expect_clean();
}

TEST(adopted_pinned_memory_is_reported_as_pinned)
{
    memrt_meminfo_t *mi = cuda_buffer(MEMRT_MEMORY_PINNED, 10, 0), *adopted = NULL;
    ck_assert_int_eq(api->cuda_adopt((uintptr_t)api->get_data(mi), 10, NULL, &adopted), MEMRT_OK);
    ck_assert_uint_eq(read_info(adopted).memory, MEMRT_MEMORY_PINNED);
    ck_assert_uint_eq(adopted->flags & MEMRT_FLAG_DEVICE, 0);
    api->release(adopted);
    api->release(mi);
    cuda_expect_clean();
}

TEST(buffer_counts_in_stats_of_given_policy)
{
    memrt_policy_t *policy = NULL;
    ck_assert_int_eq(api->policy_new(NULL, &policy), MEMRT_OK);
    memrt_cuda_options_t options = {.struct_size = sizeof(options), .policy = policy};
    memrt_meminfo_t *mi = NULL;
    ck_assert_int_eq(api->cuda_new(10, &options, &mi), MEMRT_OK);
    ck_assert_ptr_eq(api->policy_of(mi), policy);
    ck_assert_uint_eq(stats_of(policy).adopted, 10);
    api->release(mi);
    api->policy_release(policy);
    cuda_expect_clean();
}

TEST(buffer_with_refused_name_frees_memory)
{
    char novel[MEMRT_NAME_MAX + 2];
    memset(novel, 'x', sizeof(novel) - 1);
    novel[sizeof(novel) - 1] = 0;
    memrt_cuda_options_t options = {.struct_size = sizeof(options), .name = novel};
    memrt_meminfo_t *mi = NULL;
    ck_assert_int_eq(api->cuda_new(10, &options, &mi), MEMRT_EINVAL);
    ck_assert_int_eq(api->cuda_new(0, &options, &mi), MEMRT_EINVAL);
    ck_assert_ptr_null(mi);
    ck_assert_uint_eq(fake_calls("cuMemFree_v2"), 1);
    cuda_expect_clean();
}

static const char *const of_a_copy[] = {"cuCtxPushCurrent_v2", "cuEventCreate", "cuMemcpyAsync",
                                        "cuStreamSynchronize"};

TEST_EACH(read_returns_error_when_driver_call_fails, 4)
{
    char byte = 0;
    uintptr_t stream = cuda_stream();
    memrt_meminfo_t *mi = cuda_buffer(MEMRT_MEMORY_DEVICE, 10, MEMRT_CUDA_STREAM_LEGACY);
    fake_fail(of_a_copy[index], 1, 700, 0);
    ck_assert_int_eq(api->cuda_read(mi, 0, &byte, 1, stream), MEMRT_EDEVICE);
    ck_assert_int_eq(api->cuda_read(mi, 0, &byte, 1, stream), MEMRT_OK);
    api->release(mi);
    ck_assert_int_eq(api->cuda_stream_free(0, stream), MEMRT_OK);
    cuda_expect_clean();
}

TEST(wait_and_adopt_fail_without_context)
{
    memrt_meminfo_t *mi = cuda_buffer(MEMRT_MEMORY_DEVICE, 10, MEMRT_CUDA_STREAM_LEGACY);
    fake_fail("cuCtxPushCurrent_v2", 1, 700, 0);
    ck_assert_int_eq(api->cuda_wait(mi, MEMRT_CUDA_STREAM_PER_THREAD), MEMRT_EDEVICE);
    memrt_meminfo_t *adopted = NULL;
    fake_fail("cuCtxPushCurrent_v2", 1, 700, 0);
    ck_assert_int_eq(api->cuda_adopt((uintptr_t)api->get_data(mi), 10, NULL, &adopted),
                     MEMRT_EDEVICE);
    api->release(mi);
    cuda_expect_clean();
}

TEST(wait_for_idle_buffer_creates_no_event)
{
    memrt_meminfo_t *mi = cuda_buffer(MEMRT_MEMORY_DEVICE, 10, 0);
    ck_assert_int_eq(api->cuda_wait(mi, MEMRT_CUDA_STREAM_LEGACY), MEMRT_OK);
    ck_assert_uint_eq(fake_calls("cuEventCreate"), 0);
    api->release(mi);
    cuda_expect_clean();
}

static const char *const of_an_order[] = {"cuCtxPushCurrent_v2", "cuEventCreate", "cuEventRecord",
                                          "cuStreamWaitEvent"};

TEST_EACH(failed_use_by_per_thread_stream_keeps_buffer_stream, 4)
{
    memrt_meminfo_t *mi = cuda_buffer(MEMRT_MEMORY_DEVICE, 64, 0);
    fake_fail(of_an_order[index], 1, 700, 0);
    ck_assert_int_eq(api->cuda_used(mi, MEMRT_CUDA_STREAM_PER_THREAD), MEMRT_EDEVICE);
    ck_assert_uint_eq(read_info(mi).stream, MEMRT_CUDA_STREAM_NONE);
    ck_assert_int_eq(api->cuda_used(mi, MEMRT_CUDA_STREAM_PER_THREAD), MEMRT_OK);
    ck_assert_uint_eq(read_info(mi).stream, MEMRT_CUDA_STREAM_LEGACY);
    ck_assert_int_eq(api->cuda_used(mi, MEMRT_CUDA_STREAM_PER_THREAD), MEMRT_OK);
    api->release(mi);
    cuda_expect_clean();
}
