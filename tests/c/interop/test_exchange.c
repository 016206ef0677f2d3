#include "support/cuda.h"

#include <string.h>

#include <memrt/arrow.h>
#include <memrt/dlpack.h>

#include "support/books.h"
#include "support/crew.h"

void suite_prepare(void)
{
    cuda_prepare();
}

static const struct {
    memrt_memory_t memory;
    DLDevice device;
} places[] = {
    {MEMRT_MEMORY_HOST, {kDLCPU, 0}},
    {MEMRT_MEMORY_DEVICE, {kDLCUDA, 0}},
    {MEMRT_MEMORY_MANAGED, {kDLCUDAManaged, 0}},
    {MEMRT_MEMORY_PINNED, {kDLCUDAHost, 0}},
};
enum { PLACES = 4, BYTES = 100 };

static const int64_t extent = BYTES;
static const memrt_dlpack_view_t bytes = {
    .struct_size = sizeof(bytes), .dtype = {kDLUInt, 8, 1}, .ndim = 1, .shape = &extent};

static void count_dtor_call(void *data, size_t size, void *info)
{
    (void)data;
    (void)size;
    __atomic_add_fetch((unsigned *)info, 1, __ATOMIC_RELAXED);
}

/// Allocate memory with a destructor that counts.
static memrt_meminfo_t *allocate_in_memory(memrt_memory_t memory, unsigned *ended)
{
    memrt_meminfo_t *mi = NULL;
    if (memory == MEMRT_MEMORY_HOST) {
        memrt_new_options_t options = {
            .struct_size = sizeof(options), .dtor = count_dtor_call, .dtor_info = ended};
        ck_assert_int_eq(api->meminfo_new(BYTES, &options, &mi), MEMRT_OK);
        return mi;
    }
    memrt_cuda_options_t options = {.struct_size = sizeof(options),
                                    .memory = memory,
                                    .dtor = count_dtor_call,
                                    .dtor_info = ended};
    ck_assert_int_eq(api->cuda_new(BYTES, &options, &mi), MEMRT_OK);
    return mi;
}

/// Return a view of the same bytes, on an explicit device.
static memrt_dlpack_view_t describe_on_device(DLDeviceType type, int32_t number)
{
    memrt_dlpack_view_t view = bytes;
    view.device = (DLDevice){type, number};
    return view;
}

static DLManagedTensorVersioned *export_tensor(memrt_meminfo_t *mi, const memrt_dlpack_view_t *view)
{
    DLManagedTensorVersioned *tensor = NULL;
    const char *why = "";
    memrt_status_t status = api->dlpack_export(mi, view, &tensor, &why);
    ck_assert_msg(status == MEMRT_OK, "%s", why);
    return tensor;
}

static void expect_export_refused(memrt_meminfo_t *mi, const memrt_dlpack_view_t *view)
{
    DLManagedTensorVersioned *tensor = NULL;
    const char *why = "";
    ck_assert_int_eq(api->dlpack_export(mi, view, &tensor, &why), MEMRT_ENOTSUP);
    ck_assert_msg(strstr(why, "device") != NULL, "%s", why);
    ck_assert_ptr_null(tensor);
}

/* --- DLPack. --- */

/// Rule D15.
TEST_EACH(view_without_device_exports_device_of_memory, PLACES)
{
    unsigned ended = 0;
    memrt_meminfo_t *mi = allocate_in_memory(places[index].memory, &ended);
    DLManagedTensorVersioned *tensor = export_tensor(mi, &bytes);
    ck_assert_int_eq(tensor->dl_tensor.device.device_type, places[index].device.device_type);
    ck_assert_int_eq(tensor->dl_tensor.device.device_id, 0);
    api->release(mi);
    ck_assert_uint_eq(ended, 0);
    tensor->deleter(tensor);
    ck_assert_uint_eq(ended, 1);
    cuda_expect_clean();
}

/// Rule D14.
TEST(device_memory_exports_only_as_own_device)
{
    unsigned ended = 0;
    memrt_meminfo_t *mi = allocate_in_memory(MEMRT_MEMORY_DEVICE, &ended);
    memrt_dlpack_view_t view = describe_on_device(kDLCUDA, 0);
    DLManagedTensorVersioned *tensor = export_tensor(mi, &view);
    ck_assert_int_eq(tensor->dl_tensor.device.device_type, kDLCUDA);
    tensor->deleter(tensor);
    for (int type = kDLCPU; type < 20; type++) {
        view = describe_on_device((DLDeviceType)type, type == kDLCUDA);
        expect_export_refused(mi, &view);
    }
    api->release(mi);
    cuda_expect_clean();
}

/// Rule D14.
TEST_EACH(host_readable_memory_exports_as_any_host_device, PLACES)
{
    unsigned ended = 0;
    if (places[index].memory == MEMRT_MEMORY_DEVICE) {
        return;
    }
    memrt_meminfo_t *mi = allocate_in_memory(places[index].memory, &ended);
    for (int type = kDLCPU; type < 20; type++) {
        memrt_dlpack_view_t view = describe_on_device((DLDeviceType)type, 0);
        if (type == kDLCPU || type == kDLCUDAHost || type == kDLROCMHost ||
            type == kDLCUDAManaged) {
            DLManagedTensorVersioned *tensor = export_tensor(mi, &view);
            ck_assert_int_eq(tensor->dl_tensor.device.device_type, (DLDeviceType)type);
            tensor->deleter(tensor);
        } else {
            expect_export_refused(mi, &view);
        }
    }
    api->release(mi);
    cuda_expect_clean();
}

/// Return a tensor over memory that its library owns.
static DLManagedTensorVersioned create_tensor(void *data)
{
    static int64_t shape[] = {BYTES}, strides[] = {1};
    return (DLManagedTensorVersioned){.version = {1, 3},
                                      .dl_tensor = {.data = data,
                                                    .device = {kDLCUDA, 0},
                                                    .ndim = 1,
                                                    .dtype = {kDLUInt, 8, 1},
                                                    .shape = shape,
                                                    .strides = strides}};
}

TEST(adopted_device_tensor_uses_legacy_stream)
{
    memrt_meminfo_t *owner = cuda_buffer(MEMRT_MEMORY_DEVICE, BYTES, 0), *mi = NULL;
    DLManagedTensorVersioned tensor = create_tensor(api->get_data(owner));
    memrt_new_options_t options = {.struct_size = sizeof(options), .readonly = 1, .name = "theirs"};
    memrt_dlpack_view_t view = {.struct_size = sizeof(view)};
    memrt_cuda_info_t info = {.struct_size = sizeof(info)};
    char name[MEMRT_NAME_MAX + 1];
    ck_assert_int_eq(api->dlpack_adopt(&tensor, &options, &view, &mi, NULL), MEMRT_OK);
    ck_assert_int_eq(api->cuda_info(mi, &info), MEMRT_OK);
    ck_assert_uint_eq(info.memory, MEMRT_MEMORY_DEVICE);
    ck_assert_uint_eq(info.stream, MEMRT_CUDA_STREAM_LEGACY);
    ck_assert_int_eq(info.adopted, 1);
    ck_assert_int_eq(api->readonly(mi), 1);
    api->get_name(mi, name);
    ck_assert_str_eq(name, "theirs");
    ck_assert((mi->flags & MEMRT_FLAG_DEVICE) != 0);
    api->release(mi);
    api->release(owner);
    cuda_expect_clean();
}

static void expect_adoption_refused(DLManagedTensorVersioned *tensor,
                                    const memrt_new_options_t *options, memrt_status_t expected)
{
    memrt_dlpack_view_t view = {.struct_size = sizeof(view)};
    memrt_meminfo_t *mi = NULL;
    const char *why = NULL;
    ck_assert_int_eq(api->dlpack_adopt(tensor, options, &view, &mi, &why), expected);
    ck_assert_ptr_null(mi);
    ck_assert((why != NULL) == (expected != MEMRT_ENOMEM));
}

TEST(device_tensor_adoption_fails_for_bad_input_or_no_memory)
{
    static char host[BYTES];
    memrt_meminfo_t *owner = cuda_buffer(MEMRT_MEMORY_DEVICE, BYTES, 0);
    DLManagedTensorVersioned tensor = create_tensor(host);
    expect_adoption_refused(&tensor, NULL, MEMRT_EDEVICE);
    tensor.dl_tensor.data = api->get_data(owner);
    memrt_new_options_t zeroed = {.struct_size = sizeof(zeroed), .zeroed = 1};
    expect_adoption_refused(&tensor, &zeroed, MEMRT_EINVAL);
    memrt_new_options_t aligned = {.struct_size = sizeof(aligned), .alignment = 64};
    expect_adoption_refused(&tensor, &aligned, MEMRT_EINVAL);
    aligned = (memrt_new_options_t){.struct_size = sizeof(aligned), .align_offset = 64};
    expect_adoption_refused(&tensor, &aligned, MEMRT_EINVAL);
    memrt_external_allocator_t external = {.malloc = NULL};
    memrt_new_options_t foreign = {.struct_size = sizeof(foreign), .external = &external};
    expect_adoption_refused(&tensor, &foreign, MEMRT_EINVAL);
    suite_fail_request(1);
    expect_adoption_refused(&tensor, NULL, MEMRT_ENOMEM);
    suite_fail_request(0);
    api->release(owner);
    cuda_expect_clean();
}

TEST_EACH(dlpack_new_allocates_in_every_memory, PLACES)
{
    DLManagedTensorVersioned *tensor = NULL;
    memrt_dlpack_view_t view = describe_on_device(places[index].device.device_type, 0);
    ck_assert_int_eq(api->dlpack_new(&view, NULL, &tensor, NULL), MEMRT_OK);
    ck_assert_int_eq(tensor->dl_tensor.device.device_type, places[index].device.device_type);
    memrt_meminfo_t *mi = tensor->manager_ctx;
    memrt_holder_t row;
    ck_assert_uint_eq(api->holders(mi, &row, sizeof(row), 1), 1);
    ck_assert_str_eq(row.name, MEMRT_DLPACK_HOLDER);
    ck_assert_uint_eq(api->refcount(mi), 1);
    tensor->deleter(tensor);
    cuda_expect_clean();
}

static void expect_new_refused(const memrt_dlpack_view_t *view, const memrt_new_options_t *options,
                               memrt_status_t expected)
{
    DLManagedTensorVersioned *tensor = NULL;
    const char *why = NULL;
    ck_assert_int_eq(api->dlpack_new(view, options, &tensor, &why), expected);
    ck_assert_ptr_null(tensor);
    ck_assert((why != NULL) == (expected != MEMRT_ENOMEM));
}

TEST(dlpack_new_fails_for_bad_device_options_or_no_memory)
{
    memrt_dlpack_view_t view = describe_on_device(kDLROCM, 0);
    expect_new_refused(&view, NULL, MEMRT_ENOTSUP);
    view = describe_on_device(kDLCUDA, 63);
    expect_new_refused(&view, NULL, MEMRT_EDEVICE);
    view = describe_on_device(kDLCUDA, -2);
    expect_new_refused(&view, NULL, MEMRT_EINVAL);
    memrt_new_options_t zeroed = {.struct_size = sizeof(zeroed), .zeroed = 1};
    view = describe_on_device(kDLCUDAManaged, 0);
    expect_new_refused(&view, &zeroed, MEMRT_EINVAL);
    fake_fail("cuMemAllocManaged", 1, 2, 0);
    expect_new_refused(&view, NULL, MEMRT_ENOMEM);
    cuda_expect_clean();
}

/// Failure points: the tensor, the buffer, its header and the named reference.
TEST(dlpack_new_on_device_leaks_nothing_at_any_failure_point)
{
    memrt_dlpack_view_t view = describe_on_device(kDLCUDA, 0);
    DLManagedTensorVersioned *tensor = NULL;
    unsigned refused = 0;
    for (uint64_t nth = 1; nth < 20 && tensor == NULL; nth++) {
        suite_fail_request(nth);
        memrt_status_t status = api->dlpack_new(&view, NULL, &tensor, NULL);
        suite_fail_request(0);
        refused += status == MEMRT_ENOMEM;
    }
    ck_assert_ptr_nonnull(tensor);
    ck_assert_uint_ge(refused, 3);
    tensor->deleter(tensor);
    cuda_expect_clean();
}

/* --- Arrow. --- */

static memrt_arrow_view_t describe_column(uint64_t flags)
{
    return (memrt_arrow_view_t){
        .struct_size = sizeof(memrt_arrow_view_t), .format = "C", .flags = flags, .length = BYTES};
}

TEST(arrow_export_of_device_memory_needs_device_flag)
{
    memrt_meminfo_t *mi = cuda_buffer(MEMRT_MEMORY_DEVICE, BYTES, 0);
    memrt_arrow_view_t view = describe_column(0);
    struct ArrowSchema schema;
    struct ArrowArray array = {.release = NULL};
    const char *why = "";
    ck_assert_int_eq(api->arrow_export(mi, &view, NULL, &array, &why), MEMRT_ENOTSUP);
    ck_assert_msg(strstr(why, "device") != NULL, "%s", why);
    ck_assert_ptr_null(array.release);
    ck_assert_int_eq(api->arrow_export(mi, &view, &schema, NULL, NULL), MEMRT_OK);
    schema.release(&schema);
    view = describe_column(MEMRT_ARROW_DEVICE);
    ck_assert_int_eq(api->arrow_export(mi, &view, NULL, &array, NULL), MEMRT_OK);
    ck_assert_ptr_eq(array.buffers[1], api->get_data(mi));
    array.release(&array);
    api->release(mi);
    cuda_expect_clean();
}

TEST(arrow_export_refuses_bitmap_in_other_memory)
{
    memrt_meminfo_t *mi = cuda_buffer(MEMRT_MEMORY_DEVICE, BYTES, 0);
    memrt_meminfo_t *there = cuda_buffer(MEMRT_MEMORY_DEVICE, BYTES, 0);
    memrt_meminfo_t *here = api->allocate(BYTES);
    memrt_arrow_view_t view = describe_column(MEMRT_ARROW_DEVICE);
    struct ArrowArray array;
    const char *why = "";
    view.validity_owner = here;
    view.validity = api->get_data(here);
    ck_assert_int_eq(api->arrow_export(mi, &view, NULL, &array, &why), MEMRT_EINVAL);
    ck_assert_msg(strstr(why, "bitmap") != NULL, "%s", why);
    view.validity_owner = there;
    view.validity = api->get_data(there);
    ck_assert_int_eq(api->arrow_export(here, &view, NULL, &array, NULL), MEMRT_EINVAL);
    ck_assert_int_eq(api->arrow_export(mi, &view, NULL, &array, NULL), MEMRT_OK);
    array.release(&array);
    api->release(mi);
    api->release(there);
    api->release(here);
    cuda_expect_clean();
}

/* --- All exchange protocols at once. --- */

/// Every kind of holder of a buffer, except Python objects.
typedef struct shared {
    memrt_meminfo_t *reference; ///< plain reference
    memrt_meminfo_t *named;     ///< named reference
    DLManagedTensorVersioned *tensor;
    DLManagedTensor *older_tensor;
    struct ArrowArray array;
    memrt_meminfo_t *view; ///< memrt's own import of a tensor
} shared_t;
enum { HOLDERS = 6, ORDERS = 720 };

static void share_memory(memrt_meminfo_t *mi, shared_t *out)
{
    memrt_arrow_view_t elements = describe_column(MEMRT_ARROW_DEVICE);
    memrt_dlpack_view_t view = {.struct_size = sizeof(view)};
    out->reference = mi;
    out->named = mi;
    REQUIRE(api->acquire_as(mi, MEMRT_HOLDER_REFERENCE, "loader") == MEMRT_OK);
    REQUIRE(api->dlpack_export(mi, &bytes, &out->tensor, NULL) == MEMRT_OK);
    REQUIRE(api->dlpack_export_unversioned(mi, &bytes, &out->older_tensor, NULL) == MEMRT_OK);
    REQUIRE(api->arrow_export(mi, &elements, NULL, &out->array, NULL) == MEMRT_OK);
    DLManagedTensorVersioned *tensor;
    REQUIRE(api->dlpack_export(mi, &bytes, &tensor, NULL) == MEMRT_OK);
    REQUIRE(api->dlpack_adopt(tensor, NULL, &view, &out->view, NULL) == MEMRT_OK);
}

static void release_holder(shared_t *shared, size_t holder)
{
    switch (holder) {
    case 0:
        api->release(shared->reference);
        break;
    case 1:
        api->release_as(shared->named, MEMRT_HOLDER_REFERENCE, "loader");
        break;
    case 2:
        shared->tensor->deleter(shared->tensor);
        break;
    case 3:
        shared->older_tensor->deleter(shared->older_tensor);
        break;
    case 4:
        shared->array.release(&shared->array);
        break;
    default:
        api->release(shared->view);
        break;
    }
}

/// Remove the next holder from `left`, as chosen by the number of the order, and return the holder.
static size_t pick_holder(size_t *left, size_t count, size_t *order)
{
    size_t place = *order % count, holder = left[place];
    *order /= count;
    left[place] = left[count - 1];
    return holder;
}

static void release_in_order(memrt_memory_t memory, size_t order)
{
    size_t left[HOLDERS] = {0, 1, 2, 3, 4, 5};
    unsigned ended = 0;
    shared_t shared;
    memrt_meminfo_t *mi = allocate_in_memory(memory, &ended);
    share_memory(mi, &shared);
    ck_assert_uint_eq(api->holders(mi, NULL, 0, 0), 3); /* all tensors share one name */
    for (size_t count = HOLDERS; count > 0; count--) {
        ck_assert_uint_eq(ended, 0);
        ck_assert_uint_eq(api->refcount(mi), count);
        release_holder(&shared, pick_holder(left, count, &order));
    }
    ck_assert_uint_eq(ended, 1);
}

TEST_EACH(buffer_is_freed_once_for_any_release_order_of_holders, PLACES)
{
    books_t before = books_now();
    for (size_t order = 0; order < ORDERS; order++) {
        release_in_order(places[index].memory, order);
    }
    books_expect_no_leak(&before);
    cuda_expect_clean();
}

static void release_holder_on_thread(size_t index, void *shared)
{
    release_holder(shared, index);
}

TEST_EACH(buffer_is_freed_once_when_threads_release_holders, PLACES)
{
    books_t before = books_now();
    for (int round = 0; round < 50; round++) {
        unsigned ended = 0;
        shared_t shared;
        share_memory(allocate_in_memory(places[index].memory, &ended), &shared);
        crew_run(HOLDERS, release_holder_on_thread, &shared);
        ck_assert_uint_eq(__atomic_load_n(&ended, __ATOMIC_RELAXED), 1);
    }
    books_expect_no_leak(&before);
    cuda_expect_clean();
}
