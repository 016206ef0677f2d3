/// Import DLPack tensors. Renaming a capsule moves the tensor to memrt.

#include "interop/dlpack_import.h"

#include "core/current_policy.h"
#include "core/mem_handler.h"
#include "interop/cuda_buffer.h"
#include "interop/dlpack_export.h"
#include "interop/dlpack_layout.h"
#include "interop/foreign_tensor.h"
#include "interop/tensor_type.h"
#include "support/arguments.h"
#include "support/errors.h"
#include "support/free_threading.h"

/* --- Capsules. --- */

/// Names of unused and used capsules: unversioned, then versioned.
static const char *const unused[] = {MEMRT_DLPACK_UNVERSIONED, MEMRT_DLPACK_VERSIONED};
static const char *const used[] = {"used_" MEMRT_DLPACK_UNVERSIONED,
                                   "used_" MEMRT_DLPACK_VERSIONED};

/// Take the tensor of an unused capsule, and mark the capsule as used. Returns 0 for other objects.
static int take_tensor(PyObject *capsule, memrt_foreign_tensor_t *out)
{
    out->versioned = PyCapsule_IsValid(capsule, MEMRT_DLPACK_VERSIONED);
    if (!PyCapsule_IsValid(capsule, unused[out->versioned])) {
        return 0;
    }
    out->tensor = PyCapsule_GetPointer(capsule, unused[out->versioned]);
    (void)PyCapsule_SetName(capsule, used[out->versioned]);
    return 1;
}

/// Take the tensor of a capsule, which one of several threads gets. -1 with an exception.
static int open_capsule(PyObject *capsule, memrt_foreign_tensor_t *out)
{
    static memrt_mutex_t mutex = MEMRT_MUTEX_INIT;
    MEMRT_MUTEX_LOCK(&mutex);
    int is_taken = take_tensor(capsule, out);
    MEMRT_MUTEX_UNLOCK(&mutex);
    if (is_taken) {
        return 0;
    }
    PyErr_Format(PyCapsule_CheckExact(capsule) ? PyExc_ValueError : PyExc_TypeError,
                 "__dlpack__() must return an unused capsule \"" MEMRT_DLPACK_UNVERSIONED
                 "\" or \"" MEMRT_DLPACK_VERSIONED "\", got %R",
                 capsule);
    return -1;
}

/// Return a Tensor over device memory, with the list of objects that live as long as the memory.
/// Steals the tensor, also on failure. NULL with an exception.
static PyObject *create_device_tensor(memrt_foreign_tensor_t foreign, memrt_policy_t *policy)
{
    memrt_dlpack_view_t view;
    PyObject *keep = PyList_New(0);
    if (keep == NULL) {
        memrt__foreign_tensor_delete(foreign);
        return NULL;
    }
    memrt_meminfo_object_t *base = memrt__foreign_tensor_adopt(foreign, keep, policy, &view);
    PyObject *tensor = base != NULL ? memrt__tensor_new(base, &view, keep) : NULL;
    Py_XDECREF(base);
    Py_DECREF(keep);
    return tensor;
}

/// Return an ndarray over a tensor, or a Tensor for memory that the host cannot read. Steals the
/// tensor, also on failure. NULL with an exception.
static PyObject *create_view(memrt_foreign_tensor_t foreign, memrt_policy_t *policy)
{
    memrt_dlpack_view_t view;
    if (memrt__foreign_tensor_is_on_device(foreign)) {
        return create_device_tensor(foreign, policy);
    }
    memrt_meminfo_object_t *base = memrt__foreign_tensor_adopt(foreign, NULL, policy, &view);
    PyObject *array = base != NULL ? memrt__dlpack_layout_as_array(base, &view) : NULL;
    Py_XDECREF(base);
    return array;
}

/// Return the handler for the account of a tensor. Device memory without an explicit policy is
/// accounted as foreign CUDA memory. NULL with an exception.
static PyObject *get_tensor_handler(memrt_foreign_tensor_t foreign, PyObject *policy)
{
    return policy == Py_None && memrt__foreign_tensor_is_on_device(foreign)
               ? memrt__cuda_buffer_foreign_handler()
               : memrt__current_handler_for(policy);
}

/// Check that a driver exists for a tensor in device memory. -1 with BufferError.
static int check_driver(memrt_foreign_tensor_t foreign)
{
    char why[MEMRT__WHY_MAX];
    if (memrt__foreign_tensor_is_on_device(foreign) &&
        memrt__api()->cuda_why_not(why, sizeof(why)) != 0) {
        PyErr_Format(PyExc_BufferError,
                     "the tensor is on a CUDA device, and memrt cannot use CUDA: %s", why);
        return -1;
    }
    return 0;
}

/// Check that a tensor is not in device memory if memory of the CPU is requested. A library that
/// knows no versions of DLPack receives no device. -1 with BufferError.
static int check_device(memrt_foreign_tensor_t foreign, int cpu)
{
    if (cpu && memrt__foreign_tensor_is_on_device(foreign)) {
        PyErr_SetString(PyExc_BufferError,
                        "the tensor is on a CUDA device, but the CPU was requested and the library "
                        "made no copy: copy the array to the CPU first");
        return -1;
    }
    return 0;
}

/// Take the tensor of a capsule. `cpu` non-zero: refuse device memory. NULL with an exception.
static PyObject *import_capsule(PyObject *capsule, PyObject *policy, int cpu)
{
    memrt_foreign_tensor_t foreign;
    if (open_capsule(capsule, &foreign) < 0) {
        return NULL;
    }
    if (check_device(foreign, cpu) < 0 || check_driver(foreign) < 0) {
        memrt__foreign_tensor_delete(foreign);
        return NULL;
    }
    PyObject *handler = get_tensor_handler(foreign, policy);
    if (handler == NULL) {
        (void)PyCapsule_SetName(capsule, unused[foreign.versioned]); /* gives the tensor back */
        return NULL;
    }
    PyObject *view = create_view(foreign, memrt__handler_policy(handler));
    Py_DECREF(handler);
    return view;
}

static PyObject *import_tensor_capsule(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    if (count != 2) {
        return PyErr_Format(PyExc_TypeError, "take_capsule() takes 2 arguments (%zd given)", count);
    }
    return import_capsule(args[0], args[1], 0);
}

/* --- Getting the capsule of an object. --- */

/// Python objects used by each call of `__dlpack__`.
static struct {
    PyObject *method;  ///< name of the method
    PyObject *finish;  ///< name of the function that finishes rarer results
    PyObject *version; ///< newest version that memrt supports
    PyObject *cpu;
    PyObject *names[4]; ///< keyword names: index 1 adds dl_device, 2 adds copy
} constants;

/// Arguments of from_dlpack(); borrowed.
typedef struct import_request {
    PyObject *object;
    int cpu;          ///< non-zero: memory of the CPU is requested
    PyObject *copy;   ///< True, False or None
    PyObject *policy; ///< or None
} import_request_t;

/// Create a tuple of keyword names, interned as callees expect. NULL with an exception.
static PyObject *create_keyword_names(int with_device, int with_copy)
{
    const char *const texts[] = {"max_version", with_device ? "dl_device" : "copy", "copy"};
    PyObject *names = PyTuple_New(1 + with_device + with_copy);
    for (int i = 0; names != NULL && i < 1 + with_device + with_copy; i++) {
        PyObject *name = PyUnicode_InternFromString(texts[i]);
        if (name == NULL) {
            Py_CLEAR(names);
        } else {
            PyTuple_SET_ITEM(names, i, name);
        }
    }
    return names;
}

/// Call `__dlpack__` with the keyword arguments of version 1.
static PyObject *call_dlpack(const import_request_t *request)
{
    PyObject *args[4] = {request->object, constants.version};
    int refuses_copy = request->copy == Py_False, arg_count = 2;
    if (request->cpu) {
        args[arg_count++] = constants.cpu;
    }
    args[arg_count] = Py_False;
    return PyObject_VectorcallMethod(
        constants.method, args, 1,
        constants.names[(request->cpu ? 1 : 0) + (refuses_copy ? 2 : 0)]);
}

/// Call `__dlpack__` without arguments, for a library that knows no versions. Memory on another
/// device than requested, and memory that memrt cannot use, is refused later, by import_capsule().
static PyObject *call_dlpack_unversioned(const import_request_t *request)
{
    PyErr_Clear();
    return request->copy != Py_False
               ? PyObject_CallMethodNoArgs(request->object, constants.method)
               : PyErr_Format(
                     PyExc_BufferError,
                     "%.200s must support DLPack 1.0 or later for copy=False: pass copy=None",
                     Py_TYPE(request->object)->tp_name);
}

/// Replace an AttributeError by a TypeError if the object has no method `__dlpack__`.
static void explain_missing_method(PyObject *object)
{
    memrt_pending_t pending;
    memrt__pending_save(&pending);
    int is_tensor = PyObject_HasAttr(object, constants.method);
    memrt__pending_restore(&pending);
    if (!is_tensor) {
        PyErr_Format(PyExc_TypeError, "x must be an object with __dlpack__, got %.200s",
                     Py_TYPE(object)->tp_name);
    }
}

/// Return the capsule of an object, in the newest version that its library supports.
static PyObject *get_capsule(const import_request_t *request)
{
    PyObject *capsule = call_dlpack(request);
    if (capsule == NULL && PyErr_ExceptionMatches(PyExc_TypeError)) {
        return call_dlpack_unversioned(request);
    }
    if (capsule == NULL && PyErr_ExceptionMatches(PyExc_AttributeError)) {
        explain_missing_method(request->object);
    }
    return capsule;
}

/// Finish in Python the rarer results: copies, and arrays of a device.
static PyObject *finish_import(PyObject *view, const import_request_t *request)
{
    PyObject *module = view != NULL ? PyImport_ImportModule("memrt._interop.dlpack") : NULL;
    PyObject *result = module != NULL
                           ? PyObject_CallMethodObjArgs(module, constants.finish, view,
                                                        request->copy, request->policy, NULL)
                           : NULL;
    Py_XDECREF(module);
    Py_XDECREF(view);
    return result;
}

static PyObject *import_object(const import_request_t *request)
{
    PyObject *capsule = get_capsule(request);
    if (capsule == NULL) {
        return NULL;
    }
    PyObject *result = import_capsule(capsule, request->policy, request->cpu);
    Py_DECREF(capsule);
    return request->copy == Py_True || (result != NULL && memrt__tensor_check(result))
               ? finish_import(result, request)
               : result;
}

/// Read the device argument: None, "cpu" or (1, 0). -1 with an exception.
static int read_device(PyObject *device, int *cpu)
{
    *cpu = device != Py_None;
    if (!*cpu ||
        (PyUnicode_Check(device) && PyUnicode_CompareWithASCIIString(device, "cpu") == 0)) {
        return 0;
    }
    int same = PyTuple_Check(device) ? PyObject_RichCompareBool(device, constants.cpu, Py_EQ) : 0;
    if (same == 0) {
        PyErr_Format(PyExc_ValueError, "device must be None, 'cpu' or (1, 0), got %R", device);
    }
    return same == 1 ? 0 : -1;
}

static int read_copy(PyObject *copy, PyObject **out)
{
    if (copy != Py_None && !PyBool_Check(copy)) {
        PyErr_Format(PyExc_ValueError, "copy must be None, True or False, got %R", copy);
        return -1;
    }
    *out = copy;
    return 0;
}

static PyObject *import_dlpack(PyObject *module, PyObject *const *args, Py_ssize_t count,
                               PyObject *names)
{
    static const char *const keywords[] = {"device", "copy", "policy"};
    static memrt_signature_t signature = {
        .function = "from_dlpack", .keywords = keywords, .total = 3};
    enum { DEVICE, COPY, POLICY, TOTAL };
    PyObject *values[TOTAL];
    import_request_t request;
    (void)module;
    if (count != 1) {
        return PyErr_Format(PyExc_TypeError,
                            "from_dlpack() takes 1 positional argument (%zd given)", count);
    }
    if (memrt__arguments(&signature, args + 1, 0, names, values) < 0) {
        return NULL;
    }
    request.object = args[0];
    request.policy = values[POLICY] != NULL ? values[POLICY] : Py_None;
    return read_device(values[DEVICE] != NULL ? values[DEVICE] : Py_None, &request.cpu) < 0 ||
                   read_copy(values[COPY] != NULL ? values[COPY] : Py_None, &request.copy) < 0
               ? NULL
               : import_object(&request);
}

int memrt__dlpack_import_setup(void)
{
    constants.method = PyUnicode_InternFromString("__dlpack__");
    constants.finish = PyUnicode_InternFromString("finish");
    constants.version = Py_BuildValue("(ii)", DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION);
    constants.cpu = Py_BuildValue("(ii)", kDLCPU, 0);
    for (int i = 0; i < 4; i++) {
        constants.names[i] = create_keyword_names(i % 2, i / 2);
        if (constants.names[i] == NULL) {
            return -1;
        }
    }
    return constants.method != NULL && constants.finish != NULL && constants.version != NULL &&
                   constants.cpu != NULL
               ? 0
               : -1;
}

PyDoc_STRVAR(
    from_dlpack_doc,
    "from_dlpack(x, /, *, device=None, copy=None, policy=None)\n"
    "--\n"
    "\n"
    "Import a tensor of another library as an array, without a copy where possible.\n"
    "\n"
    "Parameters\n"
    "----------\n"
    "x : object\n"
    "    Tensor of another library: an object with ``__dlpack__``.\n"
    "device : {None, 'cpu'} or tuple, optional\n"
    "    None: the device of the memory. 'cpu' or (1, 0): the library may copy to the CPU.\n"
    "copy : bool, optional\n"
    "    None: copies if the library must. False: never. True: always, into memory of memrt.\n"
    "policy : Policy, optional\n"
    "    Policy that accounts for the memory and allocates a copy. None: as in :func:`empty`;\n"
    "    for memory of a device, the policy 'cuda foreign'.\n"
    "\n"
    "Returns\n"
    "-------\n"
    "numpy.ndarray or memrt.cuda.Array\n"
    "    An ndarray over memory that the CPU reads (CPU, pinned and managed memory). Memory\n"
    "    of a CUDA device gives a :class:`memrt.cuda.Array`, in the order of the legacy\n"
    "    stream.\n"
    "\n"
    "Raises\n"
    "------\n"
    "BufferError\n"
    "    The tensor cannot be used, is on another device, or needs a copy.\n"
    "TypeError\n"
    "    `x` has no ``__dlpack__``.\n"
    "ValueError\n"
    "    A device or copy is unknown, or the capsule is invalid or used already.\n"
    "MemoryError\n"
    "    The allocation of the MemInfo or the copy failed.\n"
    "\n"
    "Notes\n"
    "-----\n"
    "Ownership: a MemInfo of kind 'adopted' holds the tensor; :func:`meminfo` returns the\n"
    "MemInfo. The last release gives the tensor back to the library. After an exception the\n"
    "library has the tensor back, too.\n"
    "\n"
    "Threads: the library gets the tensor at once if the releasing thread holds the GIL,\n"
    "otherwise soon, on the main thread. After the end of Python the tensor is not given\n"
    "back.\n"
    "\n"
    "The array is read-only if the library marks the tensor as read-only, or has a DLPack\n"
    "before version 1.0, which lacks the mark.\n"
    "\n"
    "Examples\n"
    "--------\n"
    ">>> import memrt\n"
    ">>> import numpy as np\n"
    ">>> theirs = np.arange(3.0)\n"
    ">>> ours = memrt.from_dlpack(theirs)\n"
    ">>> ours, np.shares_memory(ours, theirs), memrt.meminfo(ours).kind\n"
    "(array([0., 1., 2.]), True, 'adopted')");

PyMethodDef memrt__dlpack_import_methods[] = {
    {"from_dlpack", MEMRT_FAST_KEYWORDS(import_dlpack), from_dlpack_doc},
    {"take_capsule", (PyCFunction)(void (*)(void))import_tensor_capsule, METH_FASTCALL,
     "take_capsule(capsule, policy) -> ndarray or Tensor\n\n"
     "Create an array over the tensor in a capsule from __dlpack__(), or a Tensor for memory\n"
     "of a CUDA device. The capsule becomes used. policy: as in memrt.empty().\n"
     "Raises BufferError when memrt cannot use the tensor, after a call of the deleter;\n"
     "ValueError for another capsule, TypeError for an object that is not a capsule."},
    {NULL, NULL, 0, NULL},
};
