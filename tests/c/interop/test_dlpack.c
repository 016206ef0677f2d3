#include "support/suite.h"

#include <string.h>

#include <memrt/dlpack.h>

#include "support/crew.h"

#define FLOAT64 ((DLDataType){kDLFloat, 64, 1})
#define CPU ((DLDevice){kDLCPU, 0})

static const char untouched[] = "untouched";

/* --- Producer of tensors. --- */

/// Tensor of another library, with a count of its deleter calls.
typedef struct foreign {
    DLManagedTensorVersioned versioned;
    DLManagedTensor unversioned;
    size_t deleted;
} foreign_t;

static void count_versioned(DLManagedTensorVersioned *self)
{
    ((foreign_t *)self->manager_ctx)->deleted++;
}

static void count_unversioned(DLManagedTensor *self)
{
    ((foreign_t *)self->manager_ctx)->deleted++;
}

static double numbers[24];
static int64_t shape[] = {2, 3, 4};
static int64_t strides[] = {12, 4, 1};

/// Fill both tensors with the same view: all of `numbers`, as 2 by 3 by 4.
static void create_foreign_tensor(foreign_t *out)
{
    DLTensor tensor = {numbers, CPU, 3, FLOAT64, shape, strides, 0};
    *out = (foreign_t){.versioned = {.version = {1, 3},
                                     .manager_ctx = out,
                                     .deleter = count_versioned,
                                     .dl_tensor = tensor},
                       .unversioned = {tensor, out, count_unversioned}};
}

static memrt_meminfo_t *adopt_tensor(foreign_t *foreign, memrt_dlpack_view_t *view)
{
    memrt_meminfo_t *mi = NULL;
    const char *why = untouched;
    *view = (memrt_dlpack_view_t){.struct_size = sizeof(*view)};
    memrt_status_t status = api->dlpack_adopt(&foreign->versioned, NULL, view, &mi, &why);
    ck_assert_msg(status == MEMRT_OK, "%s", why);
    ck_assert_ptr_eq(why, untouched);
    return mi;
}

/// Check that the import is refused with a reason that contains `word`, and that nothing has
/// changed. The caller still owns the tensor and calls its deleter.
static void expect_refusal(foreign_t *foreign, memrt_status_t expected, const char *word)
{
    memrt_meminfo_t *mi = NULL;
    memrt_dlpack_view_t view = {.struct_size = sizeof(view), .ndim = -5};
    const char *why = "";
    ck_assert_int_eq(api->dlpack_adopt(&foreign->versioned, NULL, &view, &mi, &why), expected);
    ck_assert_msg(strstr(why, word) != NULL, "\"%s\" lacks \"%s\"", why, word);
    ck_assert_int_eq(api->dlpack_adopt(&foreign->versioned, NULL, &view, &mi, NULL), expected);
    ck_assert_ptr_null(mi);
    ck_assert_int_eq(view.ndim, -5);
    ck_assert_uint_eq(foreign->deleted, 0);
}

/// Check the refusal for both kinds of tensor, with the same content.
static void expect_refusal_of_both(foreign_t *foreign, memrt_status_t expected, const char *word)
{
    memrt_meminfo_t *mi = NULL;
    memrt_dlpack_view_t view = {.struct_size = sizeof(view)};
    foreign->unversioned.dl_tensor = foreign->versioned.dl_tensor;
    ck_assert_int_eq(api->dlpack_adopt_unversioned(&foreign->unversioned, NULL, &view, &mi, NULL),
                     expected);
    ck_assert_ptr_null(mi);
    expect_refusal(foreign, expected, word);
}

/* --- Consumer. --- */

static memrt_dlpack_view_t describe_bytes(const memrt_meminfo_t *mi, int64_t *extent)
{
    *extent = (int64_t)api->size(mi);
    return (memrt_dlpack_view_t){.struct_size = sizeof(memrt_dlpack_view_t),
                                 .dtype = {kDLUInt, 8, 1},
                                 .ndim = 1,
                                 .shape = extent};
}

static DLManagedTensorVersioned *export_tensor(memrt_meminfo_t *mi, const memrt_dlpack_view_t *view)
{
    DLManagedTensorVersioned *tensor;
    const char *why = untouched;
    memrt_status_t status = api->dlpack_export(mi, view, &tensor, &why);
    ck_assert_msg(status == MEMRT_OK, "%s", why);
    ck_assert_ptr_eq(why, untouched);
    return tensor;
}

static DLManagedTensor *export_unversioned_tensor(memrt_meminfo_t *mi,
                                                  const memrt_dlpack_view_t *view)
{
    DLManagedTensor *tensor;
    ck_assert_int_eq(api->dlpack_export_unversioned(mi, view, &tensor, NULL), MEMRT_OK);
    return tensor;
}

/// Check that the export is refused for both kinds of tensor, with a reason that contains `word`,
/// and that nothing has changed.
static void expect_export_refused(memrt_meminfo_t *mi, const memrt_dlpack_view_t *view,
                                  memrt_status_t expected, const char *word)
{
    DLManagedTensorVersioned *tensor = NULL;
    DLManagedTensor *unversioned = NULL;
    const char *why = "";
    ck_assert_int_eq(api->dlpack_export(mi, view, &tensor, &why), expected);
    ck_assert_msg(strstr(why, word) != NULL, "\"%s\" lacks \"%s\"", why, word);
    ck_assert_int_eq(api->dlpack_export_unversioned(mi, view, &unversioned, NULL), expected);
    ck_assert_ptr_null(tensor);
    ck_assert_ptr_null(unversioned);
    ck_assert_uint_eq(api->refcount(mi), 1);
}

/* --- Exports. --- */

/// Rule D2.
TEST(tensor_has_version_of_header)
{
    int64_t extent;
    memrt_meminfo_t *mi = api->allocate(100);
    memrt_dlpack_view_t view = describe_bytes(mi, &extent);
    DLManagedTensorVersioned *tensor = export_tensor(mi, &view);
    ck_assert_uint_eq(tensor->version.major, 1);
    ck_assert_uint_eq(tensor->version.minor, 3);
    ck_assert_ptr_eq(tensor->dl_tensor.data, api->get_data(mi));
    ck_assert_uint_eq(tensor->flags, 0);
    tensor->deleter(tensor);
    api->release(mi);
}

/// Rule D6.
TEST(memory_lives_until_last_deleter)
{
    int64_t extent;
    memrt_meminfo_t *mi = api->allocate(100);
    memrt_dlpack_view_t view = describe_bytes(mi, &extent);
    DLManagedTensorVersioned *tensor = export_tensor(mi, &view);
    DLManagedTensor *unversioned = export_unversioned_tensor(mi, &view);
    api->release(mi);
    memset(tensor->dl_tensor.data, 7, 100);
    tensor->deleter(tensor);
    ck_assert_int_eq(((char *)unversioned->dl_tensor.data)[99], 7);
    unversioned->deleter(unversioned);
}

typedef struct tensors {
    DLManagedTensorVersioned *versioned;
    DLManagedTensor *unversioned;
} tensors_t;

static void call_deleters(size_t index, void *context)
{
    (void)index;
    const tensors_t *tensors = context;
    tensors->versioned->deleter(tensors->versioned);
    tensors->unversioned->deleter(tensors->unversioned);
}

/// Rule D6.
TEST(deleters_on_another_thread_free_memory)
{
    foreign_t foreign;
    memrt_dlpack_view_t view;
    create_foreign_tensor(&foreign);
    memrt_meminfo_t *mi = adopt_tensor(&foreign, &view);
    view.flags = 0; /* unversioned tensors have no flags */
    tensors_t tensors = {export_tensor(mi, &view), export_unversioned_tensor(mi, &view)};
    ck_assert_uint_eq(api->refcount(mi), 3);
    api->release(mi);
    ck_assert_uint_eq(foreign.deleted, 0);
    crew_run(1, call_deleters, &tensors);
    ck_assert_uint_eq(foreign.deleted, 1);
}

static void export_and_delete(size_t index, void *context)
{
    memrt_meminfo_t *mi = context;
    int64_t extent = 100;
    memrt_dlpack_view_t view = {
        .struct_size = sizeof(view), .dtype = {kDLUInt, 8, 1}, .ndim = 1, .shape = &extent};
    for (int i = 0; i < 200; i++) {
        DLManagedTensorVersioned *tensor;
        REQUIRE(api->dlpack_export(mi, &view, &tensor, NULL) == MEMRT_OK);
        REQUIRE(api->holders(mi, NULL, 0, 0) == 1);
        tensor->deleter(tensor);
    }
    (void)index;
}

/// Rule D6.
TEST(concurrent_exports_of_meminfo_balance_references)
{
    memrt_meminfo_t *mi = api->allocate(100);
    crew_run(6, export_and_delete, mi);
    ck_assert_uint_eq(api->refcount(mi), 1);
    ck_assert_uint_eq(api->holders(mi, NULL, 0, 0), 0);
    api->release(mi);
}

/// Rule D10.
TEST(read_only_memory_is_exported_only_with_version)
{
    int64_t extent;
    memrt_new_options_t options = {.struct_size = sizeof(options), .readonly = 1};
    memrt_meminfo_t *mi;
    DLManagedTensor *unversioned = NULL;
    ck_assert_int_eq(api->meminfo_new(100, &options, &mi), MEMRT_OK);
    memrt_dlpack_view_t view = describe_bytes(mi, &extent);
    DLManagedTensorVersioned *tensor = export_tensor(mi, &view);
    ck_assert_uint_eq(tensor->flags, DLPACK_FLAG_BITMASK_READ_ONLY);
    tensor->deleter(tensor);
    ck_assert_int_eq(api->dlpack_export_unversioned(mi, &view, &unversioned, NULL), MEMRT_ENOTSUP);
    ck_assert_ptr_null(unversioned);
    api->release(mi);
}

/// Rule D10.
TEST(read_only_view_of_writable_memory_sets_flag)
{
    int64_t extent;
    memrt_meminfo_t *mi = api->allocate(100);
    memrt_dlpack_view_t view = describe_bytes(mi, &extent);
    DLManagedTensor *unversioned = NULL;
    const char *why = "";
    view.flags = DLPACK_FLAG_BITMASK_READ_ONLY;
    DLManagedTensorVersioned *tensor = export_tensor(mi, &view);
    ck_assert_uint_eq(tensor->flags, DLPACK_FLAG_BITMASK_READ_ONLY);
    tensor->deleter(tensor);
    ck_assert_int_eq(api->dlpack_export_unversioned(mi, &view, &unversioned, &why), MEMRT_ENOTSUP);
    ck_assert_ptr_nonnull(strstr(why, "read-only"));
    api->release(mi);
}

/// Rule D12.
TEST(view_accepts_copied_flag_and_refuses_unsupported_flags)
{
    int64_t extent;
    memrt_meminfo_t *mi = api->allocate(100);
    memrt_dlpack_view_t view = describe_bytes(mi, &extent);
    view.flags = DLPACK_FLAG_BITMASK_IS_COPIED;
    DLManagedTensorVersioned *tensor = export_tensor(mi, &view);
    ck_assert_uint_eq(tensor->flags, DLPACK_FLAG_BITMASK_IS_COPIED);
    tensor->deleter(tensor);
    view.flags = DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED;
    expect_export_refused(mi, &view, MEMRT_EINVAL, "view");
    view.flags = (uint64_t)1 << 63;
    expect_export_refused(mi, &view, MEMRT_EINVAL, "view");
    api->release(mi);
}

/// Rule D15.
TEST(device_comes_from_view_with_cpu_as_default)
{
    int64_t extent;
    memrt_meminfo_t *mi = api->allocate(100);
    memrt_dlpack_view_t view = describe_bytes(mi, &extent);
    DLManagedTensorVersioned *tensor = export_tensor(mi, &view);
    ck_assert_int_eq(tensor->dl_tensor.device.device_type, kDLCPU);
    ck_assert_int_eq(tensor->dl_tensor.device.device_id, 0);
    tensor->deleter(tensor);
    view.device = (DLDevice){kDLCUDAHost, 0};
    tensor = export_tensor(mi, &view);
    ck_assert_int_eq(tensor->dl_tensor.device.device_type, kDLCUDAHost);
    tensor->deleter(tensor);
    api->release(mi);
}

/// Rule D18.
TEST(exported_strides_count_elements_and_are_never_null)
{
    int64_t extents[] = {2, 3, 4}, fortran[] = {1, 2, 6};
    memrt_meminfo_t *mi = api->allocate(2 * 3 * 4 * 8);
    memrt_dlpack_view_t view = {
        .struct_size = sizeof(view), .dtype = FLOAT64, .ndim = 3, .shape = extents};
    DLManagedTensorVersioned *tensor = export_tensor(mi, &view);
    DLManagedTensor *unversioned = export_unversioned_tensor(mi, &view);
    extents[0] = 100; /* the tensors have copies */
    ck_assert_mem_eq(tensor->dl_tensor.shape, ((int64_t[]){2, 3, 4}), 24);
    ck_assert_mem_eq(tensor->dl_tensor.strides, ((int64_t[]){12, 4, 1}), 24);
    ck_assert_mem_eq(unversioned->dl_tensor.strides, ((int64_t[]){12, 4, 1}), 24);
    tensor->deleter(tensor);
    unversioned->deleter(unversioned);
    extents[0] = 2;
    view.strides = fortran;
    tensor = export_tensor(mi, &view);
    ck_assert_mem_eq(tensor->dl_tensor.strides, fortran, 24);
    tensor->deleter(tensor);
    api->release(mi);
}

/// Rule D18.
TEST(negative_strides_start_at_offset)
{
    int64_t extents[] = {3}, backwards[] = {-1};
    memrt_meminfo_t *mi = api->allocate(24);
    memrt_dlpack_view_t view = {.struct_size = sizeof(view),
                                .dtype = FLOAT64,
                                .ndim = 1,
                                .offset = 16,
                                .shape = extents,
                                .strides = backwards};
    DLManagedTensorVersioned *tensor = export_tensor(mi, &view);
    ck_assert_ptr_eq(tensor->dl_tensor.data, (char *)api->get_data(mi) + 16);
    ck_assert_uint_eq(tensor->dl_tensor.byte_offset, 0);
    tensor->deleter(tensor);
    view.offset = 15;
    expect_export_refused(mi, &view, MEMRT_EINVAL, "outside");
    view.offset = 17;
    expect_export_refused(mi, &view, MEMRT_EINVAL, "outside");
    view.offset = UINT64_MAX;
    expect_export_refused(mi, &view, MEMRT_EINVAL, "outside");
    api->release(mi);
}

/// Rule D20.
TEST(export_without_dimensions_has_no_shape_or_strides)
{
    memrt_meminfo_t *mi = api->allocate(8);
    memrt_dlpack_view_t view = {.struct_size = sizeof(view), .dtype = FLOAT64};
    DLManagedTensorVersioned *tensor = export_tensor(mi, &view);
    ck_assert_ptr_null(tensor->dl_tensor.shape);
    ck_assert_ptr_null(tensor->dl_tensor.strides);
    ck_assert_ptr_eq(tensor->dl_tensor.data, api->get_data(mi));
    tensor->deleter(tensor);
    api->release(mi);
}

/// Rule D21.
TEST(export_without_elements_has_null_data)
{
    int64_t extents[] = {3, 0, 5};
    memrt_meminfo_t *mi = api->allocate(8);
    memrt_dlpack_view_t view = {
        .struct_size = sizeof(view), .dtype = FLOAT64, .ndim = 3, .offset = 8, .shape = extents};
    DLManagedTensorVersioned *tensor = export_tensor(mi, &view);
    ck_assert_ptr_null(tensor->dl_tensor.data);
    ck_assert_mem_eq(tensor->dl_tensor.strides, ((int64_t[]){5, 5, 1}), 24);
    tensor->deleter(tensor);
    view.offset = 9;
    expect_export_refused(mi, &view, MEMRT_EINVAL, "outside");
    api->release(mi);
}

/// Supported element types, and some unsupported types.
static const struct {
    DLDataType dtype;
    bool taken;
} types[] = {
    {{kDLInt, 8, 1}, true},
    {{kDLInt, 64, 1}, true},
    {{kDLInt, 128, 1}, false},
    {{kDLInt, 24, 1}, false},
    {{kDLInt, 4, 1}, false},
    {{kDLInt, 0, 1}, false},
    {{kDLUInt, 16, 1}, true},
    {{kDLUInt, 1, 1}, false},
    {{kDLFloat, 16, 1}, true},
    {{kDLFloat, 32, 1}, true},
    {{kDLFloat, 64, 1}, true},
    {{kDLFloat, 8, 1}, false},
    {{kDLFloat, 80, 1}, false},
    {{kDLFloat, 128, 1}, false},
    {{kDLFloat, 64, 4}, false},
    {{kDLFloat, 64, 0}, false},
    {{kDLOpaqueHandle, 64, 1}, false},
    {{kDLBfloat, 16, 1}, true},
    {{kDLComplex, 32, 1}, false},
    {{kDLComplex, 64, 1}, true},
    {{kDLComplex, 128, 1}, true},
    {{kDLBool, 8, 1}, true},
    {{kDLBool, 1, 1}, false},
    {{kDLFloat8_e3m4, 8, 1}, true},
    {{kDLFloat8_e8m0fnu, 8, 1}, true},
    {{kDLFloat6_e2m3fn, 6, 1}, false},
    {{kDLFloat4_e2m1fn, 4, 1}, false},
    {{99, 8, 1}, false},
    {{255, 255, 65535}, false},
};

/// Rule D24.
TEST(only_known_whole_byte_single_lane_types_are_exchanged)
{
    memrt_meminfo_t *mi = api->allocate(16);
    foreign_t foreign;
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        memrt_dlpack_view_t view = {.struct_size = sizeof(view), .dtype = types[i].dtype};
        create_foreign_tensor(&foreign);
        foreign.versioned.dl_tensor.dtype = types[i].dtype;
        if (types[i].taken) {
            DLManagedTensorVersioned *tensor = export_tensor(mi, &view);
            ck_assert_mem_eq(&tensor->dl_tensor.dtype, &types[i].dtype, sizeof(DLDataType));
            tensor->deleter(tensor);
            memrt_meminfo_t *adopted = adopt_tensor(&foreign, &view);
            ck_assert_uint_eq(api->size(adopted), 24u * types[i].dtype.bits / 8);
            api->release(adopted);
        } else {
            expect_export_refused(mi, &view, MEMRT_ENOTSUP, "type");
            expect_refusal_of_both(&foreign, MEMRT_ENOTSUP, "type");
        }
    }
    api->release(mi);
}

/// Rule D25.
TEST(bool_has_code_6_and_complex_has_code_5)
{
    memrt_meminfo_t *mi = api->allocate(16);
    memrt_dlpack_view_t view = {.struct_size = sizeof(view), .dtype = {kDLComplex, 128, 1}};
    DLManagedTensorVersioned *tensor = export_tensor(mi, &view);
    ck_assert_uint_eq(tensor->dl_tensor.dtype.code, 5);
    tensor->deleter(tensor);
    view.dtype = (DLDataType){kDLBool, 8, 1};
    tensor = export_tensor(mi, &view);
    ck_assert_uint_eq(tensor->dl_tensor.dtype.code, 6);
    tensor->deleter(tensor);
    api->release(mi);
}

/// Rule D26.
TEST(invalid_view_is_not_exported)
{
    int64_t extents[] = {1, 2}, steps[] = {INT64_MAX, 1};
    memrt_meminfo_t *mi = api->allocate(64);
    memrt_dlpack_view_t good = {
        .struct_size = sizeof(good), .dtype = FLOAT64, .ndim = 2, .shape = extents};
    memrt_dlpack_view_t view = good;
    view.struct_size--;
    expect_export_refused(mi, &view, MEMRT_EINVAL, "view");
    view = good;
    view.ndim = -1;
    expect_export_refused(mi, &view, MEMRT_EINVAL, "dimensions");
    view.ndim = MEMRT_DLPACK_NDIM_MAX + 1;
    expect_export_refused(mi, &view, MEMRT_EINVAL, "dimensions");
    view = good;
    view.shape = NULL;
    expect_export_refused(mi, &view, MEMRT_EINVAL, "shape");
    view = good;
    extents[1] = -1;
    expect_export_refused(mi, &view, MEMRT_EINVAL, "negative");
    extents[1] = 9;
    expect_export_refused(mi, &view, MEMRT_EINVAL, "outside");
    extents[0] = 2;
    extents[1] = INT64_MAX;
    expect_export_refused(mi, &view, MEMRT_EINVAL, "exceed");
    extents[1] = 2;
    view.strides = steps;
    expect_export_refused(mi, &view, MEMRT_EINVAL, "strides");
    extents[0] = 1; /* the stride of an axis of length 1 is unused and may have any value */
    DLManagedTensorVersioned *tensor = export_tensor(mi, &view);
    tensor->deleter(tensor);
    api->release(mi);
}

/// Rule D26.
TEST(maximum_number_of_dimensions_is_exchanged)
{
    int64_t extents[MEMRT_DLPACK_NDIM_MAX];
    foreign_t foreign;
    memrt_dlpack_view_t view;
    for (size_t i = 0; i < MEMRT_DLPACK_NDIM_MAX; i++) {
        extents[i] = 1;
    }
    create_foreign_tensor(&foreign);
    foreign.versioned.dl_tensor.ndim = MEMRT_DLPACK_NDIM_MAX;
    foreign.versioned.dl_tensor.shape = foreign.versioned.dl_tensor.strides = extents;
    memrt_meminfo_t *mi = adopt_tensor(&foreign, &view);
    DLManagedTensorVersioned *tensor = export_tensor(mi, &view);
    ck_assert_int_eq(tensor->dl_tensor.ndim, MEMRT_DLPACK_NDIM_MAX);
    tensor->deleter(tensor);
    api->release(mi);
}

static uint64_t count_exported(void)
{
    memrt_stats_t stats = {.struct_size = sizeof(stats)};
    ck_assert_int_eq(api->stats_read(NULL, &stats), MEMRT_OK);
    return stats.exported;
}

/// Rule D27.
TEST(export_holds_named_reference_until_deleter)
{
    int64_t extent;
    memrt_holder_t row;
    uint64_t before = count_exported();
    memrt_meminfo_t *mi = api->allocate(100);
    memrt_dlpack_view_t view = describe_bytes(mi, &extent);
    DLManagedTensorVersioned *tensor = export_tensor(mi, &view);
    ck_assert_uint_eq(api->refcount(mi), 2);
    ck_assert_uint_eq(api->holders(mi, &row, sizeof(row), 1), 1);
    ck_assert_str_eq(row.name, MEMRT_DLPACK_HOLDER);
    ck_assert_uint_eq(row.kind, MEMRT_HOLDER_EXPORT);
    DLManagedTensor *unversioned = export_unversioned_tensor(mi, &view);
    ck_assert_uint_eq(api->holders(mi, &row, sizeof(row), 1), 1);
    ck_assert_uint_eq(row.count, 2);
    ck_assert_uint_eq(count_exported(), before + 2);
    unversioned->deleter(unversioned);
    tensor->deleter(tensor);
    ck_assert_uint_eq(count_exported(), before);
    ck_assert_uint_eq(api->refcount(mi), 1);
    ck_assert_uint_eq(api->holders(mi, NULL, 0, 0), 0);
    api->release(mi);
}

/* --- New memory for another library. --- */

TEST(new_memory_is_held_only_by_tensor)
{
    int64_t extents[] = {3, 5};
    DLManagedTensorVersioned *tensor;
    memrt_holder_t row;
    memrt_dlpack_view_t view = {
        .struct_size = sizeof(view), .dtype = FLOAT64, .ndim = 2, .shape = extents};
    memrt_new_options_t options = {.struct_size = sizeof(options), .zeroed = 1, .alignment = 4096};
    ck_assert_int_eq(api->dlpack_new(&view, &options, &tensor, NULL), MEMRT_OK);
    memrt_meminfo_t *mi = tensor->manager_ctx;
    ck_assert_uint_eq(api->refcount(mi), 1);
    ck_assert_uint_eq(api->holders(mi, &row, sizeof(row), 1), 1);
    ck_assert_uint_eq(api->size(mi), 15 * 8);
    double *data = tensor->dl_tensor.data;
    ck_assert_uint_eq((uintptr_t)data % 4096, 0);
    ck_assert_double_eq(data[14], 0);
    ck_assert_mem_eq(tensor->dl_tensor.strides, ((int64_t[]){5, 1}), 16);
    tensor->deleter(tensor);
    extents[0] = 0;
    ck_assert_int_eq(api->dlpack_new(&view, NULL, &tensor, NULL), MEMRT_OK);
    ck_assert_ptr_null(tensor->dl_tensor.data);
    tensor->deleter(tensor);
}

static void expect_new_refused(const memrt_dlpack_view_t *view, const memrt_new_options_t *options,
                               memrt_status_t expected, const char *word)
{
    DLManagedTensorVersioned *tensor = NULL;
    const char *why = "";
    ck_assert_int_eq(api->dlpack_new(view, options, &tensor, &why), expected);
    ck_assert_msg(strstr(why, word) != NULL, "\"%s\" lacks \"%s\"", why, word);
    ck_assert_ptr_null(tensor);
}

TEST(new_tensor_with_invalid_view_or_options_is_refused)
{
    int64_t extents[] = {3, 5}, steps[] = {5, 1};
    memrt_dlpack_view_t good = {
        .struct_size = sizeof(good), .dtype = FLOAT64, .ndim = 2, .shape = extents};
    memrt_dlpack_view_t view = good;
    memrt_new_options_t options = {.struct_size = sizeof(options), .readonly = 1};
    expect_new_refused(&good, &options, MEMRT_EINVAL, "options");
    options = (memrt_new_options_t){.struct_size = sizeof(options), .alignment = 3};
    expect_new_refused(&good, &options, MEMRT_EINVAL, "options");
    view.strides = steps;
    expect_new_refused(&view, NULL, MEMRT_EINVAL, "strides");
    view = good;
    view.offset = 8;
    expect_new_refused(&view, NULL, MEMRT_EINVAL, "offset");
    view = good;
    view.flags = 64;
    expect_new_refused(&view, NULL, MEMRT_EINVAL, "view");
    view = good;
    view.dtype.lanes = 2;
    expect_new_refused(&view, NULL, MEMRT_ENOTSUP, "lanes");
    extents[0] = INT64_MAX / 39;
    expect_new_refused(&good, NULL, MEMRT_EINVAL, "exceed");
    extents[0] = INT64_MAX / 40; /* the full address space: out of memory */
    expect_new_refused(&good, NULL, MEMRT_ENOMEM, "");
}

/* --- Adoption. --- */

/// Rule D6.
TEST(adopted_tensor_is_deleted_once_with_last_reference)
{
    foreign_t foreign;
    memrt_dlpack_view_t view;
    create_foreign_tensor(&foreign);
    memrt_meminfo_t *mi = adopt_tensor(&foreign, &view);
    ck_assert_ptr_eq(api->get_data(mi), numbers);
    ck_assert_uint_eq(api->size(mi), sizeof(numbers));
    ck_assert_uint_eq(api->refcount(mi), 1);
    api->acquire(mi);
    api->release(mi);
    ck_assert_uint_eq(foreign.deleted, 0);
    api->release(mi);
    ck_assert_uint_eq(foreign.deleted, 1);
}

/// Rule D6.
TEST(adopted_tensor_may_have_no_deleter)
{
    foreign_t foreign;
    memrt_dlpack_view_t view = {.struct_size = sizeof(view)};
    memrt_meminfo_t *mi;
    create_foreign_tensor(&foreign);
    foreign.versioned.deleter = NULL;
    foreign.unversioned.deleter = NULL;
    api->release(adopt_tensor(&foreign, &view));
    ck_assert_int_eq(api->dlpack_adopt_unversioned(&foreign.unversioned, NULL, &view, &mi, NULL),
                     MEMRT_OK);
    api->release(mi);
}

static void record_size(void *data, size_t size, void *info)
{
    (void)data;
    *(size_t *)info = size;
}

/// Rule D6.
TEST(caller_destructor_replaces_deleter)
{
    foreign_t foreign;
    size_t noted = 0;
    memrt_meminfo_t *mi;
    memrt_dlpack_view_t view = {.struct_size = sizeof(view)};
    memrt_new_options_t options = {
        .struct_size = sizeof(options), .dtor = record_size, .dtor_info = &noted, .name = "tensor"};
    create_foreign_tensor(&foreign);
    ck_assert_int_eq(api->dlpack_adopt(&foreign.versioned, &options, &view, &mi, NULL), MEMRT_OK);
    char name[MEMRT_NAME_MAX + 1];
    api->get_name(mi, name);
    ck_assert_str_eq(name, "tensor");
    api->release(mi);
    ck_assert_uint_eq(noted, sizeof(numbers));
    ck_assert_uint_eq(foreign.deleted, 0);
}

/// Rule D9.
TEST(wrong_major_version_is_refused_with_tensor_unread)
{
    foreign_t foreign;
    create_foreign_tensor(&foreign);
    memset(&foreign.versioned.dl_tensor, 0xff, sizeof(foreign.versioned.dl_tensor));
    foreign.versioned.version.major = 2;
    expect_refusal(&foreign, MEMRT_ENOTSUP, "major");
    foreign.versioned.version.major = 0;
    expect_refusal(&foreign, MEMRT_ENOTSUP, "major");
    foreign.versioned.version.major = UINT32_MAX;
    expect_refusal(&foreign, MEMRT_ENOTSUP, "major");
}

/// Rule D11.
TEST(read_only_or_unversioned_tensor_is_adopted_read_only)
{
    foreign_t foreign;
    memrt_dlpack_view_t view;
    memrt_meminfo_t *mi;
    create_foreign_tensor(&foreign);
    mi = adopt_tensor(&foreign, &view);
    ck_assert_int_eq(api->readonly(mi), 0);
    ck_assert_uint_eq(view.flags, 0);
    api->release(mi);
    foreign.versioned.flags = DLPACK_FLAG_BITMASK_READ_ONLY;
    mi = adopt_tensor(&foreign, &view);
    ck_assert_int_eq(api->readonly(mi), 1);
    ck_assert_uint_eq(view.flags, DLPACK_FLAG_BITMASK_READ_ONLY);
    api->release(mi);
    ck_assert_int_eq(api->dlpack_adopt_unversioned(&foreign.unversioned, NULL, &view, &mi, NULL),
                     MEMRT_OK);
    ck_assert_int_eq(api->readonly(mi), 1);
    ck_assert_uint_eq(view.flags, DLPACK_FLAG_BITMASK_READ_ONLY);
    api->release(mi);
    ck_assert_uint_eq(foreign.deleted, 3);
}

/// Rule D15.
TEST_EACH(only_host_readable_memory_is_adopted, 20)
{
    foreign_t foreign;
    memrt_dlpack_view_t view;
    DLDevice device = {(DLDeviceType)index, 0};
    create_foreign_tensor(&foreign);
    foreign.versioned.dl_tensor.device = device;
    if (index == kDLCPU || index == kDLCUDAHost || index == kDLROCMHost ||
        index == kDLCUDAManaged) {
        memrt_meminfo_t *mi = adopt_tensor(&foreign, &view);
        ck_assert_int_eq((int)view.device.device_type, index);
        api->release(mi);
    } else {
        expect_refusal_of_both(&foreign, MEMRT_ENOTSUP, "device");
    }
}

/// Rule D18.
TEST(missing_strides_are_compact_before_version_1_2)
{
    foreign_t foreign;
    memrt_meminfo_t *mi;
    memrt_dlpack_view_t view;
    create_foreign_tensor(&foreign);
    foreign.versioned.dl_tensor.strides = foreign.unversioned.dl_tensor.strides = NULL;
    for (uint32_t minor = 0; minor < 2; minor++) {
        foreign.versioned.version.minor = minor;
        mi = adopt_tensor(&foreign, &view);
        ck_assert_ptr_null(view.strides);
        ck_assert_uint_eq(api->size(mi), sizeof(numbers));
        api->release(mi);
    }
    foreign.deleted = 0;
    foreign.versioned.version.minor = 2;
    expect_refusal(&foreign, MEMRT_EINVAL, "strides");
    ck_assert_int_eq(api->dlpack_adopt_unversioned(&foreign.unversioned, NULL, &view, &mi, NULL),
                     MEMRT_OK);
    ck_assert_uint_eq(api->size(mi), sizeof(numbers));
    api->release(mi);
}

/// Rule D18.
TEST(adopted_memory_spans_lowest_to_highest_byte)
{
    int64_t steps[] = {-12, 0, 2};
    foreign_t foreign;
    memrt_dlpack_view_t view;
    create_foreign_tensor(&foreign);
    foreign.versioned.dl_tensor.data = numbers + 12;
    foreign.versioned.dl_tensor.strides = steps;
    memrt_meminfo_t *mi = adopt_tensor(&foreign, &view);
    ck_assert_ptr_eq(api->get_data(mi), numbers);
    ck_assert_uint_eq(api->size(mi), 12 * 8 + (3 * 2 + 1) * 8);
    ck_assert_uint_eq(view.offset, 12 * 8);
    ck_assert_ptr_eq(view.strides, steps);
    ck_assert_ptr_eq(view.shape, shape);
    api->release(mi);
}

/// Rule D20.
TEST(adoption_without_dimensions_ignores_shape_and_strides)
{
    foreign_t foreign;
    memrt_dlpack_view_t view;
    create_foreign_tensor(&foreign);
    foreign.versioned.dl_tensor.ndim = 0;
    foreign.versioned.dl_tensor.shape = (int64_t *)8; /* not a valid address */
    foreign.versioned.dl_tensor.strides = (int64_t *)8;
    memrt_meminfo_t *mi = adopt_tensor(&foreign, &view);
    ck_assert_ptr_null(view.shape);
    ck_assert_ptr_null(view.strides);
    ck_assert_uint_eq(api->size(mi), 8);
    api->release(mi);
    foreign.versioned.dl_tensor.shape = foreign.versioned.dl_tensor.strides = NULL;
    api->release(adopt_tensor(&foreign, &view));
}

/// Rule D21.
TEST(adoption_without_elements_ignores_data)
{
    int64_t extents[] = {2, 0, 4};
    foreign_t foreign;
    memrt_dlpack_view_t view;
    create_foreign_tensor(&foreign);
    foreign.versioned.dl_tensor.shape = extents;
    void *addresses[] = {NULL, numbers, (void *)8};
    for (size_t i = 0; i < 3; i++) {
        foreign.versioned.dl_tensor.data = addresses[i];
        foreign.versioned.dl_tensor.byte_offset = UINT64_MAX;
        memrt_meminfo_t *mi = adopt_tensor(&foreign, &view);
        ck_assert_uint_eq(api->size(mi), 0);
        ck_assert_uint_eq(view.offset, 0);
        api->release(mi);
    }
    ck_assert_uint_eq(foreign.deleted, 3);
}

/// Rule D22.
TEST(byte_offset_leads_to_first_element)
{
    int64_t extents[] = {3};
    foreign_t foreign;
    memrt_dlpack_view_t view;
    create_foreign_tensor(&foreign);
    foreign.versioned.dl_tensor.ndim = 1;
    foreign.versioned.dl_tensor.shape = extents;
    foreign.versioned.dl_tensor.strides = strides + 2;
    foreign.versioned.dl_tensor.byte_offset = 40;
    memrt_meminfo_t *mi = adopt_tensor(&foreign, &view);
    ck_assert_ptr_eq(api->get_data(mi), numbers + 5);
    ck_assert_uint_eq(api->size(mi), 24);
    api->release(mi);
}

/// Rule D26.
TEST(tensor_with_invalid_shape_is_refused)
{
    int64_t extents[] = {2, 3, 4}, steps[] = {12, 4, 1};
    foreign_t foreign;
    create_foreign_tensor(&foreign);
    DLTensor *tensor = &foreign.versioned.dl_tensor;
    tensor->shape = extents;
    tensor->strides = steps;
    tensor->ndim = -1;
    expect_refusal_of_both(&foreign, MEMRT_EINVAL, "dimensions");
    tensor->ndim = INT32_MIN;
    expect_refusal_of_both(&foreign, MEMRT_EINVAL, "dimensions");
    tensor->ndim = MEMRT_DLPACK_NDIM_MAX + 1;
    expect_refusal_of_both(&foreign, MEMRT_EINVAL, "dimensions");
    tensor->ndim = 3;
    tensor->shape = NULL;
    expect_refusal_of_both(&foreign, MEMRT_EINVAL, "shape");
    tensor->shape = extents;
    extents[1] = -3;
    expect_refusal_of_both(&foreign, MEMRT_EINVAL, "negative");
    extents[1] = INT64_MAX / 32; /* fits, but not when multiplied by the element size */
    expect_refusal_of_both(&foreign, MEMRT_EINVAL, "exceed");
    extents[0] = 0; /* other extents are checked also when an extent is 0 */
    extents[1] = extents[2] = INT64_MAX;
    expect_refusal_of_both(&foreign, MEMRT_EINVAL, "exceed");
}

/// Rule D26.
TEST(strides_beyond_address_space_are_refused)
{
    int64_t steps[] = {12, 4, 1};
    int64_t bad[] = {INT64_MAX, INT64_MIN, INT64_MAX / 8, INT64_MIN / 8, INT64_MAX / 16 + 1};
    foreign_t foreign;
    create_foreign_tensor(&foreign);
    foreign.versioned.dl_tensor.strides = steps;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        steps[1] = bad[i];
        expect_refusal_of_both(&foreign, MEMRT_EINVAL, "address space");
    }
    steps[0] = INT64_MIN / 8; /* each end alone is near enough, but both together are not */
    steps[1] = INT64_MAX / 16;
    expect_refusal_of_both(&foreign, MEMRT_EINVAL, "strides");
}

/// Rule D26.
TEST(missing_or_out_of_range_data_is_refused)
{
    int64_t backwards[] = {-12, -4, -1};
    foreign_t foreign;
    create_foreign_tensor(&foreign);
    DLTensor *tensor = &foreign.versioned.dl_tensor;
    tensor->data = NULL;
    expect_refusal_of_both(&foreign, MEMRT_EINVAL, "no data");
    tensor->data = numbers;
    tensor->byte_offset = UINT64_MAX - 8;
    expect_refusal_of_both(&foreign, MEMRT_EINVAL, "outside");
    tensor->byte_offset = 0;
    tensor->data = (void *)(UINTPTR_MAX - 100);
    expect_refusal_of_both(&foreign, MEMRT_EINVAL, "outside");
    tensor->data = (void *)8;
    tensor->strides = backwards;
    expect_refusal_of_both(&foreign, MEMRT_EINVAL, "outside");
}

/// Rule D28.
TEST(unknown_flags_are_ignored)
{
    foreign_t foreign;
    memrt_dlpack_view_t view;
    create_foreign_tensor(&foreign);
    foreign.versioned.flags = ~(uint64_t)DLPACK_FLAG_BITMASK_READ_ONLY;
    foreign.versioned.version.minor = 99;
    memrt_meminfo_t *mi = adopt_tensor(&foreign, &view);
    ck_assert_int_eq(api->readonly(mi), 0);
    ck_assert_uint_eq(view.flags, DLPACK_FLAG_BITMASK_IS_COPIED);
    api->release(mi);
}

TEST(invalid_options_or_views_are_refused)
{
    foreign_t foreign;
    memrt_meminfo_t *mi = NULL;
    memrt_dlpack_view_t view = {.struct_size = sizeof(view)};
    memrt_new_options_t good = {.struct_size = sizeof(good)}, options[3] = {good, good, good};
    options[0].struct_size = 0;
    options[1].zeroed = 1;
    options[2].alignment = 128;
    create_foreign_tensor(&foreign);
    for (size_t i = 0; i < 3; i++) {
        const char *why = "";
        ck_assert_int_eq(api->dlpack_adopt(&foreign.versioned, &options[i], &view, &mi, &why),
                         MEMRT_EINVAL);
        ck_assert_ptr_nonnull(strstr(why, "options"));
    }
    view.struct_size = 8;
    ck_assert_int_eq(api->dlpack_adopt(&foreign.versioned, NULL, &view, &mi, NULL), MEMRT_EINVAL);
    ck_assert_ptr_null(mi);
    ck_assert_uint_eq(foreign.deleted, 0);
}

TEST(round_trip_calls_deleter_with_last_reference)
{
    foreign_t foreign;
    memrt_dlpack_view_t view, again = {.struct_size = sizeof(again)};
    memrt_meminfo_t *second;
    create_foreign_tensor(&foreign);
    memrt_meminfo_t *first = adopt_tensor(&foreign, &view);
    DLManagedTensorVersioned *tensor = export_tensor(first, &view);
    ck_assert_int_eq(api->dlpack_adopt(tensor, NULL, &again, &second, NULL), MEMRT_OK);
    ck_assert_mem_eq(again.shape, shape, sizeof(shape));
    ck_assert_mem_eq(again.strides, strides, sizeof(strides));
    ck_assert_ptr_eq(api->get_data(second), numbers);
    api->release(first);
    ck_assert_uint_eq(foreign.deleted, 0);
    api->release(second);
    ck_assert_uint_eq(foreign.deleted, 1);
}
