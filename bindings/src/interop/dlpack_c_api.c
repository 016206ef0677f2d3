#include "interop/dlpack_c_api.h"

#include "core/current_policy.h"
#include "core/interpreter.h"
#include "interop/dlpack_export.h"
#include "interop/dlpack_layout.h"
#include "interop/foreign_tensor.h"
#include "interop/tensor_type.h"

#define CAPSULE "dlpack_exchange_api"

typedef void (*set_error_fn)(void *error_ctx, const char *kind, const char *message);

/// Return the view of a new tensor like `prototype`.
static memrt_dlpack_view_t describe_prototype(const DLTensor *prototype)
{
    return (memrt_dlpack_view_t){.struct_size = sizeof(memrt_dlpack_view_t),
                                 .dtype = prototype->dtype,
                                 .device = prototype->device,
                                 .ndim = prototype->ndim,
                                 .shape = prototype->shape};
}

/// Allocate a tensor. With the GIL, CPU memory comes from the policy in force; without, from the
/// default policy. Threads: with or without the GIL.
static int allocate_tensor(DLTensor *prototype, DLManagedTensorVersioned **out, void *error_ctx,
                           set_error_fn set_error)
{
    memrt_dlpack_view_t view = describe_prototype(prototype);
    memrt_policy_t *policy =
        view.device.device_type == kDLCPU && memrt__holds_python() ? memrt__current_policy() : NULL;
    memrt_new_options_t options = {.struct_size = sizeof(options), .policy = policy};
    const char *why = NULL;
    memrt_status_t status = memrt__api()->dlpack_new(&view, &options, out, &why);
    if (status == MEMRT_OK) {
        return 0;
    }
    *out = NULL;
    set_error(error_ctx, status == MEMRT_ENOMEM ? "MemoryError" : "BufferError",
              status == MEMRT_ENOMEM ? memrt__api()->status_text(status) : why);
    return -1;
}

/// Return the memory behind a Tensor or MemInfo, borrowed, and its view. NULL with an exception.
static memrt_meminfo_t *view_object(PyObject *object, memrt_dlpack_view_t *out)
{
    int is_tensor = memrt__tensor_check(object);
    if (!is_tensor && !memrt__meminfo_check(object)) {
        PyErr_Format(PyExc_TypeError,
                     "expected a memrt.types.Tensor or a memrt.MemInfo, got %.200s",
                     Py_TYPE(object)->tp_name);
        return NULL;
    }
    memrt_tensor_object_t *tensor = (memrt_tensor_object_t *)object;
    memrt_meminfo_t *mi =
        memrt__meminfo_get(is_tensor ? tensor->base : (memrt_meminfo_object_t *)object);
    if (mi != NULL) {
        *out = is_tensor ? tensor->view : memrt__dlpack_bytes(mi);
        out->device = memrt__dlpack_device(mi);
    }
    return mi;
}

static int export_object(void *object, DLManagedTensorVersioned **out)
{
    memrt_dlpack_view_t view;
    memrt_meminfo_t *mi = view_object(object, &view);
    return mi != NULL ? memrt__dlpack_export(mi, &view, out) : -1;
}

/// Import a tensor as a new memrt.types.Tensor. Steals the tensor, also on failure. -1 with an
/// exception.
static int import_tensor(DLManagedTensorVersioned *tensor, void **out)
{
    memrt_dlpack_view_t view;
    memrt_meminfo_object_t *base = memrt__foreign_tensor_adopt(
        (memrt_foreign_tensor_t){tensor, 1}, NULL, memrt__current_policy(), &view);
    if (base == NULL) {
        return -1;
    }
    *out = memrt__tensor_new(base, &view, NULL);
    Py_DECREF(base);
    return *out != NULL ? 0 : -1;
}

/// Describe the memory of an object without a new reference. Read-only memory must be exported,
/// because a DLTensor has no read-only flag.
static int borrow_object(void *object, DLTensor *out)
{
    static int64_t one = 1;
    memrt_dlpack_view_t view;
    memrt_meminfo_t *mi = view_object(object, &view);
    if (mi == NULL) {
        return -1;
    }
    if (memrt__api()->readonly(mi) || (view.flags & DLPACK_FLAG_BITMASK_READ_ONLY) != 0) {
        PyErr_SetString(
            PyExc_BufferError,
            "the memory is read-only, and a DLTensor has no read-only flag: export the memory");
        return -1;
    }
    char *data = memrt__api()->get_data(mi);
    *out = (DLTensor){.data = memrt__dlpack_layout_nbytes(&view) != 0 ? data + view.offset : NULL,
                      .device = view.device,
                      .ndim = view.ndim,
                      .dtype = view.dtype,
                      .shape = (int64_t *)(uintptr_t)view.shape,
                      .strides = view.strides != NULL ? (int64_t *)(uintptr_t)view.strides : &one};
    return 0;
}

/// Return no stream: memrt queues no work on any device.
static int get_current_stream(DLDeviceType device_type, int32_t device_id, void **out)
{
    (void)device_type;
    (void)device_id;
    *out = NULL;
    return 0;
}

static const DLPackExchangeAPI table = {
    .header = {.version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION}},
    .managed_tensor_allocator = allocate_tensor,
    .managed_tensor_from_py_object_no_sync = export_object,
    .managed_tensor_to_py_object_no_sync = import_tensor,
    .dltensor_from_py_object_no_sync = borrow_object,
    .current_work_stream = get_current_stream,
};

/// Add the table to a type as `__dlpack_c_exchange_api__`. -1 with an exception.
static int add_table(PyTypeObject *type)
{
    PyObject *capsule = PyCapsule_New((void *)(uintptr_t)&table, CAPSULE, NULL);
    /* setattr fails: the type is immutable. */
    int result = capsule != NULL
                     ? PyDict_SetItemString(type->tp_dict, "__dlpack_c_exchange_api__", capsule)
                     : -1;
    Py_XDECREF(capsule);
    PyType_Modified(type);
    return result;
}

int memrt__dlpack_c_api_setup(void)
{
    return add_table(memrt__binding.tensor_type) < 0 ? -1 : add_table(memrt__binding.meminfo_type);
}
