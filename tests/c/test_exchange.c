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

static void count(void *data, size_t size, void *info)
{
    (void)data;
    (void)size;
    __atomic_add_fetch((unsigned *)info, 1, __ATOMIC_RELAXED);
}

/// New memory, whose end is counted.
static memrt_meminfo_t *memory_in(memrt_memory_t memory, unsigned *ended)
{
    memrt_meminfo_t *mi = NULL;
    if (memory == MEMRT_MEMORY_HOST) {
        memrt_new_options_t options = {
            .struct_size = sizeof(options), .dtor = count, .dtor_info = ended};
        ck_assert_int_eq(api->meminfo_new(BYTES, &options, &mi), MEMRT_OK);
        return mi;
    }
    memrt_cuda_options_t options = {
        .struct_size = sizeof(options), .memory = memory, .dtor = count, .dtor_info = ended};
    ck_assert_int_eq(api->cuda_new(BYTES, &options, &mi), MEMRT_OK);
    return mi;
}

/// Have the nth request of memrt from now on fail; 0: none.
static void fail_at(uint64_t nth)
{
    memrt_failure_plan_t plan = {.struct_size = sizeof(plan), .nth = nth};
    ck_assert_int_eq(api->fail_allocations(nth != 0 ? &plan : NULL), MEMRT_OK);
}

/// A view of the same bytes that names a device.
static memrt_dlpack_view_t on_device(DLDeviceType type, int32_t number)
{
    memrt_dlpack_view_t view = bytes;
    view.device = (DLDevice){type, number};
    return view;
}

static DLManagedTensorVersioned *export(memrt_meminfo_t *mi, const memrt_dlpack_view_t *view)
{
    DLManagedTensorVersioned *tensor = NULL;
    const char *why = "";
    memrt_status_t status = api->dlpack_export(mi, view, &tensor, &why);
    ck_assert_msg(status == MEMRT_OK, "%s", why);
    return tensor;
}

static void expect_no_export(memrt_meminfo_t *mi, const memrt_dlpack_view_t *view)
{
    DLManagedTensorVersioned *tensor = NULL;
    const char *why = "";
    ck_assert_int_eq(api->dlpack_export(mi, view, &tensor, &why), MEMRT_ENOTSUP);
    ck_assert_msg(strstr(why, "device") != NULL, "%s", why);
    ck_assert_ptr_null(tensor);
}

/* --- DLPack. --- */

TEST_EACH(d15_without_a_device_in_the_view_a_tensor_is_where_its_memory_is, PLACES)
{
    unsigned ended = 0;
    memrt_meminfo_t *mi = memory_in(places[index].memory, &ended);
    DLManagedTensorVersioned *tensor = export(mi, &bytes);
    ck_assert_int_eq(tensor->dl_tensor.device.device_type, places[index].device.device_type);
    ck_assert_int_eq(tensor->dl_tensor.device.device_id, 0);
    api->release(mi);
    ck_assert_uint_eq(ended, 0);
    tensor->deleter(tensor);
    ck_assert_uint_eq(ended, 1);
    cuda_expect_clean();
}

TEST(d14_memory_of_a_device_is_exported_as_that_and_nothing_else)
{
    unsigned ended = 0;
    memrt_meminfo_t *mi = memory_in(MEMRT_MEMORY_DEVICE, &ended);
    memrt_dlpack_view_t view = on_device(kDLCUDA, 0);
    DLManagedTensorVersioned *tensor = export(mi, &view);
    ck_assert_int_eq(tensor->dl_tensor.device.device_type, kDLCUDA);
    tensor->deleter(tensor);
    for (int type = kDLCPU; type < 20; type++) {
        view = on_device((DLDeviceType)type, type == kDLCUDA);
        expect_no_export(mi, &view);
    }
    api->release(mi);
    cuda_expect_clean();
}

TEST_EACH(d14_what_the_host_reads_is_exported_as_any_memory_that_it_reads, PLACES)
{
    unsigned ended = 0;
    if (places[index].memory == MEMRT_MEMORY_DEVICE) {
        return;
    }
    memrt_meminfo_t *mi = memory_in(places[index].memory, &ended);
    for (int type = kDLCPU; type < 20; type++) {
        memrt_dlpack_view_t view = on_device((DLDeviceType)type, 0);
        if (type == kDLCPU || type == kDLCUDAHost || type == kDLROCMHost ||
            type == kDLCUDAManaged) {
            DLManagedTensorVersioned *tensor = export(mi, &view);
            ck_assert_int_eq(tensor->dl_tensor.device.device_type, (DLDeviceType)type);
            tensor->deleter(tensor);
        } else {
            expect_no_export(mi, &view);
        }
    }
    api->release(mi);
    cuda_expect_clean();
}

/// A tensor over memory that its library keeps.
static DLManagedTensorVersioned tensor_at(void *data)
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

TEST(a_tensor_on_a_device_is_adopted_in_the_order_of_the_legacy_stream)
{
    memrt_meminfo_t *owner = cuda_buffer(MEMRT_MEMORY_DEVICE, BYTES, 0), *mi = NULL;
    DLManagedTensorVersioned tensor = tensor_at(api->get_data(owner));
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

static void expect_no_adoption(DLManagedTensorVersioned *tensor, const memrt_new_options_t *options,
                               memrt_status_t expected)
{
    memrt_dlpack_view_t view = {.struct_size = sizeof(view)};
    memrt_meminfo_t *mi = NULL;
    const char *why = NULL;
    ck_assert_int_eq(api->dlpack_adopt(tensor, options, &view, &mi, &why), expected);
    ck_assert_ptr_null(mi);
    ck_assert((why != NULL) == (expected != MEMRT_ENOMEM));
}

TEST(a_tensor_on_a_device_that_cannot_be_there_is_refused)
{
    static char host[BYTES];
    memrt_meminfo_t *owner = cuda_buffer(MEMRT_MEMORY_DEVICE, BYTES, 0);
    DLManagedTensorVersioned tensor = tensor_at(host);
    expect_no_adoption(&tensor, NULL, MEMRT_EDEVICE);
    tensor.dl_tensor.data = api->get_data(owner);
    memrt_new_options_t zeroed = {.struct_size = sizeof(zeroed), .zeroed = 1};
    expect_no_adoption(&tensor, &zeroed, MEMRT_EINVAL);
    memrt_new_options_t aligned = {.struct_size = sizeof(aligned), .alignment = 64};
    expect_no_adoption(&tensor, &aligned, MEMRT_EINVAL);
    memrt_external_allocator_t external = {.malloc = NULL};
    memrt_new_options_t foreign = {.struct_size = sizeof(foreign), .external = &external};
    expect_no_adoption(&tensor, &foreign, MEMRT_EINVAL);
    fail_at(1);
    expect_no_adoption(&tensor, NULL, MEMRT_ENOMEM);
    fail_at(0);
    api->release(owner);
    cuda_expect_clean();
}

TEST_EACH(other_libraries_allocate_in_every_memory, PLACES)
{
    DLManagedTensorVersioned *tensor = NULL;
    memrt_dlpack_view_t view = on_device(places[index].device.device_type, 0);
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

static void expect_no_new(const memrt_dlpack_view_t *view, const memrt_new_options_t *options,
                          memrt_status_t expected)
{
    DLManagedTensorVersioned *tensor = NULL;
    const char *why = NULL;
    ck_assert_int_eq(api->dlpack_new(view, options, &tensor, &why), expected);
    ck_assert_ptr_null(tensor);
    ck_assert((why != NULL) == (expected != MEMRT_ENOMEM));
}

TEST(memory_that_no_device_of_memrts_has_is_not_allocated)
{
    memrt_dlpack_view_t view = on_device(kDLROCM, 0);
    expect_no_new(&view, NULL, MEMRT_ENOTSUP);
    view = on_device(kDLCUDA, 63);
    expect_no_new(&view, NULL, MEMRT_EDEVICE);
    view = on_device(kDLCUDA, -2);
    expect_no_new(&view, NULL, MEMRT_EINVAL);
    memrt_new_options_t zeroed = {.struct_size = sizeof(zeroed), .zeroed = 1};
    view = on_device(kDLCUDAManaged, 0);
    expect_no_new(&view, &zeroed, MEMRT_EINVAL);
    fake_fail("cuMemAllocManaged", 1, 2, 0);
    expect_no_new(&view, NULL, MEMRT_ENOMEM);
    cuda_expect_clean();
}

/// The tensor, the buffer, its header, and the name under which it is held.
TEST(new_memory_of_a_device_meets_every_failure_and_leaves_nothing)
{
    memrt_dlpack_view_t view = on_device(kDLCUDA, 0);
    DLManagedTensorVersioned *tensor = NULL;
    unsigned refused = 0;
    for (uint64_t nth = 1; nth < 20 && tensor == NULL; nth++) {
        fail_at(nth);
        memrt_status_t status = api->dlpack_new(&view, NULL, &tensor, NULL);
        fail_at(0);
        refused += status == MEMRT_ENOMEM;
    }
    ck_assert_ptr_nonnull(tensor);
    ck_assert_uint_ge(refused, 3);
    tensor->deleter(tensor);
    cuda_expect_clean();
}

/* --- Arrow. --- */

static memrt_arrow_view_t column(uint64_t flags)
{
    return (memrt_arrow_view_t){
        .struct_size = sizeof(memrt_arrow_view_t), .format = "C", .flags = flags, .length = BYTES};
}

TEST(an_arrow_array_over_a_device_is_made_only_for_who_says_where_it_is)
{
    memrt_meminfo_t *mi = cuda_buffer(MEMRT_MEMORY_DEVICE, BYTES, 0);
    memrt_arrow_view_t view = column(0);
    struct ArrowSchema schema;
    struct ArrowArray array = {.release = NULL};
    const char *why = "";
    ck_assert_int_eq(api->arrow_export(mi, &view, NULL, &array, &why), MEMRT_ENOTSUP);
    ck_assert_msg(strstr(why, "device") != NULL, "%s", why);
    ck_assert_ptr_null(array.release);
    ck_assert_int_eq(api->arrow_export(mi, &view, &schema, NULL, NULL), MEMRT_OK);
    schema.release(&schema);
    view = column(MEMRT_ARROW_DEVICE);
    ck_assert_int_eq(api->arrow_export(mi, &view, NULL, &array, NULL), MEMRT_OK);
    ck_assert_ptr_eq(array.buffers[1], api->get_data(mi));
    array.release(&array);
    api->release(mi);
    cuda_expect_clean();
}

TEST(elements_and_bitmap_of_an_arrow_array_are_in_one_memory)
{
    memrt_meminfo_t *mi = cuda_buffer(MEMRT_MEMORY_DEVICE, BYTES, 0);
    memrt_meminfo_t *there = cuda_buffer(MEMRT_MEMORY_DEVICE, BYTES, 0);
    memrt_meminfo_t *here = api->allocate(BYTES);
    memrt_arrow_view_t view = column(MEMRT_ARROW_DEVICE);
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

/* --- All at once. --- */

/// Everybody who can hold one buffer without Python.
typedef struct shared {
    memrt_meminfo_t *reference; ///< of C code
    memrt_meminfo_t *named;     ///< of C code that says who it is
    DLManagedTensorVersioned *tensor;
    DLManagedTensor *older_tensor;
    struct ArrowArray array;
    memrt_meminfo_t *view; ///< of memrt itself, over a tensor
} shared_t;
enum { HOLDERS = 6, ORDERS = 720 };

static void share(memrt_meminfo_t *mi, shared_t *out)
{
    memrt_arrow_view_t elements = column(MEMRT_ARROW_DEVICE);
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

static void let_go(shared_t *shared, size_t holder)
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

/// The holder that goes next, by the number of an order, of those that are left.
static size_t pick(size_t *left, size_t count, size_t *order)
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
    memrt_meminfo_t *mi = memory_in(memory, &ended);
    share(mi, &shared);
    ck_assert_uint_eq(api->holders(mi, NULL, 0, 0), 3); /* one name for all tensors */
    for (size_t count = HOLDERS; count > 0; count--) {
        ck_assert_uint_eq(ended, 0);
        ck_assert_uint_eq(api->refcount(mi), count);
        let_go(&shared, pick(left, count, &order));
    }
    ck_assert_uint_eq(ended, 1);
}

TEST_EACH(whatever_holds_a_buffer_it_is_freed_once_in_any_order, PLACES)
{
    books_t before = books_now();
    for (size_t order = 0; order < ORDERS; order++) {
        release_in_order(places[index].memory, order);
    }
    books_expect_no_leak(&before);
    cuda_expect_clean();
}

static void let_go_on_a_thread(size_t index, void *shared)
{
    let_go(shared, index);
}

TEST_EACH(whatever_holds_a_buffer_it_is_freed_once_by_threads, PLACES)
{
    books_t before = books_now();
    for (int round = 0; round < 50; round++) {
        unsigned ended = 0;
        shared_t shared;
        share(memory_in(places[index].memory, &ended), &shared);
        crew_run(HOLDERS, let_go_on_a_thread, &shared);
        ck_assert_uint_eq(__atomic_load_n(&ended, __ATOMIC_RELAXED), 1);
    }
    books_expect_no_leak(&before);
    cuda_expect_clean();
}
