#include "exchange.h"

#include "dlpack.h"
#include "handler.h"
#include "intake.h"
#include "layout.h"
#include "owner.h"
#include "tensor.h"

#define CAPSULE "dlpack_exchange_api"

typedef void (*set_error_fn)(void *error_ctx, const char *kind, const char *message);

/// What `prototype` says of a tensor that is to be made.
static memrt_dlpack_view_t view_like(const DLTensor *prototype)
{
    return (memrt_dlpack_view_t){.struct_size = sizeof(memrt_dlpack_view_t),
                                 .dtype = prototype->dtype,
                                 .device = prototype->device,
                                 .ndim = prototype->ndim,
                                 .shape = prototype->shape};
}

/// Called with the GIL or without. With it, memory of the CPU is the policy's that is in force.
static int allocate(DLTensor *prototype, DLManagedTensorVersioned **out, void *error_ctx,
                    set_error_fn set_error)
{
    memrt_dlpack_view_t view = view_like(prototype);
    memrt_policy_t *policy = view.device.device_type == kDLCPU && memrt__holds_python()
                                 ? memrt__handler_policy_in_force()
                                 : NULL;
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

/// The memory behind an object of either type, and how it is viewed. NULL with an exception.
static memrt_meminfo_t *view_object(PyObject *object, memrt_dlpack_view_t *out)
{
    int is_tensor = memrt__tensor_check(object);
    if (!is_tensor && !memrt__meminfo_check(object)) {
        PyErr_Format(PyExc_TypeError, "expected a memrt.Tensor or a memrt.MemInfo, got %.200s",
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

static int import_tensor(DLManagedTensorVersioned *tensor, void **out)
{
    memrt_dlpack_view_t view;
    memrt_meminfo_object_t *base =
        memrt__intake_adopt(tensor, memrt__handler_policy_in_force(), &view);
    if (base == NULL) {
        return -1;
    }
    *out = memrt__tensor_new(base, &view);
    Py_DECREF(base);
    return *out != NULL ? 0 : -1;
}

/// A DLTensor cannot say that it is read-only: such memory has to be exported.
static int borrow_object(void *object, DLTensor *out)
{
    static int64_t one = 1;
    memrt_dlpack_view_t view;
    memrt_meminfo_t *mi = view_object(object, &view);
    if (mi == NULL) {
        return -1;
    }
    if (memrt__api()->readonly(mi) || (view.flags & DLPACK_FLAG_BITMASK_READ_ONLY) != 0) {
        PyErr_SetString(PyExc_BufferError,
                        "the memory is read-only, which a DLTensor cannot say: export it");
        return -1;
    }
    char *data = memrt__api()->get_data(mi);
    *out = (DLTensor){.data = memrt__layout_nbytes(&view) != 0 ? data + view.offset : NULL,
                      .device = view.device,
                      .ndim = view.ndim,
                      .dtype = view.dtype,
                      .shape = (int64_t *)(uintptr_t)view.shape,
                      .strides = view.strides != NULL ? (int64_t *)(uintptr_t)view.strides : &one};
    return 0;
}

/// memrt queues no work anywhere.
static int current_stream(DLDeviceType device_type, int32_t device_id, void **out)
{
    (void)device_type;
    (void)device_id;
    *out = NULL;
    return 0;
}

static const DLPackExchangeAPI table = {
    .header = {.version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION}},
    .managed_tensor_allocator = allocate,
    .managed_tensor_from_py_object_no_sync = export_object,
    .managed_tensor_to_py_object_no_sync = import_tensor,
    .dltensor_from_py_object_no_sync = borrow_object,
    .current_work_stream = current_stream,
};

int memrt__exchange_offer(PyTypeObject *type)
{
    PyObject *capsule = PyCapsule_New((void *)(uintptr_t)&table, CAPSULE, NULL);
    /* Not by setattr, for to everybody else the type is immutable. */
    int result = capsule != NULL
                     ? PyDict_SetItemString(type->tp_dict, "__dlpack_c_exchange_api__", capsule)
                     : -1;
    Py_XDECREF(capsule);
    PyType_Modified(type);
    return result;
}
