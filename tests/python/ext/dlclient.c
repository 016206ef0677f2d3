/// Another DLPack library: imports tensors from capsules, calls deleters on its own threads, and
/// uses the table of functions that types offer to compiled code.
///
/// No library gives a test control over deleters and threads: NumPy, PyTorch and JAX call deleters
/// when they choose.

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <memrt/dlpack/dlpack.h>

#include <pthread.h>
#include <string.h>

#define VERSIONED "dltensor_versioned"
#define UNVERSIONED "dltensor"

/* --- Tensors of capsules. --- */

typedef struct taken {
    DLManagedTensorVersioned *versioned;
    DLManagedTensor *unversioned; ///< NULL if `versioned` is set
} taken_t;

static int take(PyObject *capsule, taken_t *out)
{
    int versioned = PyCapsule_IsValid(capsule, VERSIONED);
    void *tensor = PyCapsule_GetPointer(capsule, versioned ? VERSIONED : UNVERSIONED);
    if (tensor == NULL) {
        return -1;
    }
    *out = (taken_t){versioned ? tensor : NULL, versioned ? NULL : tensor};
    return PyCapsule_SetName(capsule, versioned ? "used_" VERSIONED : "used_" UNVERSIONED);
}

static void delete(taken_t taken)
{
    if (taken.versioned != NULL) {
        taken.versioned->deleter(taken.versioned);
    } else {
        taken.unversioned->deleter(taken.unversioned);
    }
}

static void *delete_body(void *taken)
{
    delete(*(taken_t *)taken);
    return NULL;
}

/// delete_on_a_thread(capsule): call the deleter on a thread unknown to Python
static PyObject *delete_on_a_thread(PyObject *module, PyObject *capsule)
{
    pthread_t thread;
    taken_t taken;
    (void)module;
    if (take(capsule, &taken) < 0) {
        return NULL;
    }
    if (pthread_create(&thread, NULL, delete_body, &taken) != 0) {
        return PyErr_NoMemory();
    }
    Py_BEGIN_ALLOW_THREADS pthread_join(thread, NULL);
    Py_END_ALLOW_THREADS Py_RETURN_NONE;
}

/// delete_while_raising(capsule): raise KeyError, unless the deleter loses the exception
static PyObject *delete_while_raising(PyObject *module, PyObject *capsule)
{
    taken_t taken;
    (void)module;
    if (take(capsule, &taken) < 0) {
        return NULL;
    }
    PyErr_SetString(PyExc_KeyError, "pending");
    delete(taken);
    return PyErr_Occurred() != NULL ? NULL : Py_NewRef(Py_None);
}

static taken_t late;

static void delete_late(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, delete_body, &late) == 0) {
        pthread_join(thread, NULL);
    }
}

/// delete_after_python(capsule): call the deleter after the interpreter has ended
static PyObject *delete_after_python(PyObject *module, PyObject *capsule)
{
    (void)module;
    if (take(capsule, &late) < 0 || Py_AtExit(delete_late) < 0) {
        return NULL;
    }
    Py_RETURN_NONE;
}

/* --- The table. --- */

static const DLPackExchangeAPI *table_of(PyObject *type)
{
    PyObject *capsule = PyObject_GetAttrString(type, "__dlpack_c_exchange_api__");
    const DLPackExchangeAPI *table =
        capsule != NULL ? PyCapsule_GetPointer(capsule, "dlpack_exchange_api") : NULL;
    Py_XDECREF(capsule);
    return table;
}

/// table(type) -> (address, major, minor, presence of each of the five functions)
static PyObject *table(PyObject *module, PyObject *type)
{
    (void)module;
    const DLPackExchangeAPI *api = table_of(type);
    if (api == NULL) {
        return NULL;
    }
    return Py_BuildValue("NIIi", PyLong_FromVoidPtr((void *)(uintptr_t)api),
                         api->header.version.major, api->header.version.minor,
                         (api->managed_tensor_allocator != NULL) +
                             (api->managed_tensor_from_py_object_no_sync != NULL) +
                             (api->managed_tensor_to_py_object_no_sync != NULL) +
                             (api->dltensor_from_py_object_no_sync != NULL) +
                             (api->current_work_stream != NULL));
}

static void destroy(PyObject *capsule)
{
    if (PyCapsule_IsValid(capsule, VERSIONED)) {
        DLManagedTensorVersioned *tensor = PyCapsule_GetPointer(capsule, VERSIONED);
        tensor->deleter(tensor);
    }
}

static PyObject *capsule_of(DLManagedTensorVersioned *tensor)
{
    return PyCapsule_New(tensor, VERSIONED, destroy);
}

/// The error of an allocator; any thread may report an error.
typedef struct failure {
    char kind[32];
    char message[200];
    int calls;
} failure_t;

static void set_error(void *context, const char *kind, const char *message)
{
    failure_t *failure = context;
    failure->calls++;
    snprintf(failure->kind, sizeof(failure->kind), "%s", kind);
    snprintf(failure->message, sizeof(failure->message), "%s", message);
}

typedef struct order {
    const DLPackExchangeAPI *api;
    DLTensor prototype;
    DLManagedTensorVersioned *made;
    failure_t failure;
    int result;
} order_t;

static void *allocate_body(void *argument)
{
    order_t *order = argument;
    order->result = order->api->managed_tensor_allocator(&order->prototype, &order->made,
                                                         &order->failure, set_error);
    return NULL;
}

static int allocate_on_a_thread(order_t *order)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, allocate_body, order) != 0) {
        return -1;
    }
    Py_BEGIN_ALLOW_THREADS pthread_join(thread, NULL);
    Py_END_ALLOW_THREADS return 0;
}

static PyObject *result_of(const order_t *order)
{
    if (order->result == 0) {
        return order->failure.calls == 0 ? capsule_of(order->made)
                                         : PyErr_Format(PyExc_AssertionError, "an error was set");
    }
    if (order->failure.calls != 1 || order->made != NULL) {
        return PyErr_Format(PyExc_AssertionError, "%d errors were set", order->failure.calls);
    }
    return Py_BuildValue("(ss)", order->failure.kind, order->failure.message);
}

/// allocate(type, (code, bits, lanes), shape, device type, on a thread) -> capsule or (kind, text)
static PyObject *allocate(PyObject *module, PyObject *args)
{
    PyObject *type, *extents;
    int64_t shape[70];
    int code, bits, lanes, device, on_a_thread;
    (void)module;
    if (!PyArg_ParseTuple(args, "O(iii)O!ip", &type, &code, &bits, &lanes, &PyTuple_Type, &extents,
                          &device, &on_a_thread)) {
        return NULL;
    }
    order_t order = {.api = table_of(type), .made = (DLManagedTensorVersioned *)&order};
    if (order.api == NULL) {
        return NULL;
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(extents); i++) {
        shape[i] = PyLong_AsLongLong(PyTuple_GET_ITEM(extents, i));
    }
    order.prototype = (DLTensor){.device = {(DLDeviceType)device, 0},
                                 .ndim = (int32_t)PyTuple_GET_SIZE(extents),
                                 .dtype = {(uint8_t)code, (uint8_t)bits, (uint16_t)lanes},
                                 .shape = shape};
    if (!on_a_thread) {
        allocate_body(&order);
    } else if (allocate_on_a_thread(&order) < 0) {
        return PyErr_NoMemory();
    }
    return result_of(&order);
}

/// export(type, object) -> capsule
static PyObject *export(PyObject *module, PyObject *args)
{
    PyObject *type, *object;
    DLManagedTensorVersioned *tensor;
    (void)module;
    if (!PyArg_ParseTuple(args, "OO", &type, &object)) {
        return NULL;
    }
    const DLPackExchangeAPI *api = table_of(type);
    return api != NULL && api->managed_tensor_from_py_object_no_sync(object, &tensor) == 0
               ? capsule_of(tensor)
               : NULL;
}

/// import_(type, capsule) -> object of the table's library
static PyObject *import_(PyObject *module, PyObject *args)
{
    PyObject *type, *capsule;
    taken_t taken;
    void *object;
    (void)module;
    if (!PyArg_ParseTuple(args, "OO", &type, &capsule)) {
        return NULL;
    }
    const DLPackExchangeAPI *api = table_of(type);
    if (api == NULL || take(capsule, &taken) < 0) {
        return NULL;
    }
    return api->managed_tensor_to_py_object_no_sync(taken.versioned, &object) == 0 ? object : NULL;
}

static PyObject *tuple_of(const int64_t *numbers, int32_t count)
{
    PyObject *tuple = PyTuple_New(count);
    for (int32_t i = 0; tuple != NULL && i < count; i++) {
        PyTuple_SET_ITEM(tuple, i, PyLong_FromLongLong(numbers[i]));
    }
    return tuple;
}

/// borrow(type, object) -> (data or None, device, dtype, shape, strides, byte_offset)
static PyObject *borrow(PyObject *module, PyObject *args)
{
    PyObject *type, *object;
    DLTensor tensor;
    (void)module;
    if (!PyArg_ParseTuple(args, "OO", &type, &object)) {
        return NULL;
    }
    const DLPackExchangeAPI *api = table_of(type);
    if (api == NULL || api->dltensor_from_py_object_no_sync(object, &tensor) < 0) {
        return NULL;
    }
    return Py_BuildValue(
        "N(ii)(iii)NNK", tensor.data != NULL ? PyLong_FromVoidPtr(tensor.data) : Py_NewRef(Py_None),
        (int)tensor.device.device_type, (int)tensor.device.device_id, tensor.dtype.code,
        tensor.dtype.bits, tensor.dtype.lanes, tuple_of(tensor.shape, tensor.ndim),
        tuple_of(tensor.strides, tensor.ndim), (unsigned long long)tensor.byte_offset);
}

/// stream(type) -> the current work stream as an address, or None
static PyObject *stream(PyObject *module, PyObject *type)
{
    void *current = &current;
    (void)module;
    const DLPackExchangeAPI *api = table_of(type);
    if (api == NULL || api->current_work_stream(kDLCPU, 0, &current) < 0) {
        return NULL;
    }
    return current != NULL ? PyLong_FromVoidPtr(current) : Py_NewRef(Py_None);
}

static PyMethodDef methods[] = {
    {"delete_on_a_thread", delete_on_a_thread, METH_O, NULL},
    {"delete_while_raising", delete_while_raising, METH_O, NULL},
    {"delete_after_python", delete_after_python, METH_O, NULL},
    {"table", table, METH_O, NULL},
    {"allocate", allocate, METH_VARARGS, NULL},
    {"export", export, METH_VARARGS, NULL},
    {"import_", import_, METH_VARARGS, NULL},
    {"borrow", borrow, METH_VARARGS, NULL},
    {"stream", stream, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef definition = {PyModuleDef_HEAD_INIT, .m_name = "dlclient", .m_size = -1,
                                 .m_methods = methods};

PyMODINIT_FUNC PyInit_dlclient(void)
{
    return PyModule_Create(&definition);
}
