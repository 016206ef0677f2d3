#include "intake.h"

#include "argument.h"
#include "cuda.h"
#include "dlpack.h"
#include "errors.h"
#include "handler.h"
#include "layout.h"
#include "owner.h"
#include "tensor.h"

/* --- Tensors as MemInfos. --- */

static void delete_versioned(void *loan)
{
    DLManagedTensorVersioned *tensor = loan;
    if (tensor->deleter != NULL) {
        tensor->deleter(tensor);
    }
}

static void delete_unversioned(void *loan)
{
    DLManagedTensor *tensor = loan;
    if (tensor->deleter != NULL) {
        tensor->deleter(tensor);
    }
}

/// A tensor of either kind.
typedef struct taken {
    void *tensor;
    int versioned;
} taken_t;

static void (*deleter_of(taken_t taken))(void *loan)
{
    return taken.versioned ? delete_versioned : delete_unversioned;
}

/// For a tensor that cannot be used: its deleter is called, the exception stays.
static void give_back(taken_t taken)
{
    memrt_pending_t pending;
    memrt__pending_save(&pending);
    deleter_of(taken)(taken.tensor);
    memrt__pending_restore(&pending);
}

/// Where a tensor is; of another major version of DLPack nothing but its head may be read.
static DLDevice device_of_taken(taken_t taken)
{
    const DLManagedTensorVersioned *tensor = taken.tensor;
    if (!taken.versioned) {
        return ((const DLManagedTensor *)taken.tensor)->dl_tensor.device;
    }
    return tensor->version.major == DLPACK_MAJOR_VERSION ? tensor->dl_tensor.device
                                                         : (DLDevice){kDLCPU, 0};
}

static int is_on_device(taken_t taken)
{
    return device_of_taken(taken).device_type == kDLCUDA;
}

static memrt_status_t adopt(taken_t taken, const memrt_new_options_t *options,
                            memrt_dlpack_view_t *view, memrt_meminfo_t **out, const char **why)
{
    return taken.versioned
               ? memrt__api()->dlpack_adopt(taken.tensor, options, view, out, why)
               : memrt__api()->dlpack_adopt_unversioned(taken.tensor, options, view, out, why);
}

/// The driver may wait.
static memrt_status_t adopt_on_device(taken_t taken, const memrt_new_options_t *options,
                                      memrt_dlpack_view_t *view, memrt_meminfo_t **out,
                                      const char **why)
{
    memrt_status_t status;
    Py_BEGIN_ALLOW_THREADS;
    status = adopt(taken, options, view, out, why);
    Py_END_ALLOW_THREADS;
    return status;
}

/// Into a shell. NULL with an exception; then the tensor is the caller's as before.
static memrt_meminfo_object_t *adopt_into(memrt_meminfo_object_t *shell, taken_t taken,
                                          memrt_policy_t *policy, memrt_dlpack_view_t *view)
{
    memrt_meminfo_t *mi;
    const char *why = NULL;
    memrt_owner_t *owner = memrt__owner_of_loan(deleter_of(taken), taken.tensor);
    if (owner == NULL) {
        return NULL;
    }
    memrt_new_options_t options = memrt__owner_options(owner, policy);
    *view = (memrt_dlpack_view_t){.struct_size = sizeof(*view)};
    int is_device = is_on_device(taken);
    memrt_status_t status = is_device ? adopt_on_device(taken, &options, view, &mi, &why)
                                      : adopt(taken, &options, view, &mi, &why);
    if (status != MEMRT_OK) {
        memrt__owner_discard(owner);
        memrt__raise_refusal(status, "cannot take the memory of a DLPack tensor", why);
        return NULL;
    }
    return (memrt_meminfo_object_t *)(is_device ? memrt__meminfo_fill_waiting(shell, mi)
                                                : memrt__meminfo_fill(shell, mi));
}

/// Steals the tensor, also on failure.
static memrt_meminfo_object_t *adopt_taken(taken_t taken, memrt_policy_t *policy,
                                           memrt_dlpack_view_t *view)
{
    memrt__owner_drain();
    memrt_meminfo_object_t *shell = memrt__meminfo_shell();
    memrt_meminfo_object_t *base = shell != NULL ? adopt_into(shell, taken, policy, view) : NULL;
    if (base == NULL) {
        Py_XDECREF(shell);
        give_back(taken);
    }
    return base;
}

memrt_meminfo_object_t *memrt__intake_adopt(DLManagedTensorVersioned *tensor,
                                            memrt_policy_t *policy, memrt_dlpack_view_t *view)
{
    return adopt_taken((taken_t){tensor, 1}, policy, view);
}

const DLTensor *memrt__tensor_behind(const memrt_meminfo_t *mi)
{
    DLManagedTensorVersioned *versioned = memrt__owner_loan(mi, delete_versioned);
    DLManagedTensor *unversioned = memrt__owner_loan(mi, delete_unversioned);
    return versioned != NULL     ? &versioned->dl_tensor
           : unversioned != NULL ? &unversioned->dl_tensor
                                 : NULL;
}

/* --- Capsules. --- */

/// The tensor in a capsule that nobody has used yet. -1 with an exception.
static int open_capsule(PyObject *capsule, taken_t *out)
{
    out->versioned = PyCapsule_IsValid(capsule, MEMRT_DLPACK_VERSIONED);
    if (!out->versioned && !PyCapsule_IsValid(capsule, MEMRT_DLPACK_UNVERSIONED)) {
        PyErr_Format(PyCapsule_CheckExact(capsule) ? PyExc_ValueError : PyExc_TypeError,
                     "__dlpack__() has to return a capsule \"" MEMRT_DLPACK_UNVERSIONED
                     "\" or \"" MEMRT_DLPACK_VERSIONED "\" that nobody has used yet, got %R",
                     capsule);
        return -1;
    }
    out->tensor = PyCapsule_GetPointer(capsule, out->versioned ? MEMRT_DLPACK_VERSIONED
                                                               : MEMRT_DLPACK_UNVERSIONED);
    return 0;
}

/// From here on the tensor is memrt's to give back. Cannot fail on a capsule that was opened.
static void use_up(PyObject *capsule, taken_t taken)
{
    (void)PyCapsule_SetName(capsule, taken.versioned ? "used_" MEMRT_DLPACK_VERSIONED
                                                     : "used_" MEMRT_DLPACK_UNVERSIONED);
}

/// An array, of memory that the host cannot read a Tensor.
static PyObject *view_taken(taken_t taken, memrt_policy_t *policy)
{
    memrt_dlpack_view_t view;
    memrt_meminfo_object_t *base = adopt_taken(taken, policy, &view);
    if (base == NULL) {
        return NULL;
    }
    PyObject *taken_over = view.device.device_type == kDLCUDA ? memrt__tensor_new(base, &view)
                                                              : memrt__layout_as_array(base, &view);
    Py_DECREF(base);
    return taken_over;
}

/// Memory of a device is on the account of what CUDA gave to others, unless a policy is named.
static PyObject *handler_for(taken_t taken, PyObject *policy)
{
    return policy == Py_None && is_on_device(taken) ? memrt__cuda_foreign_handler()
                                                    : memrt__handler_for(policy);
}

/// -1 with BufferError where there is no driver for memory of a device.
static int need_driver(taken_t taken)
{
    char why[MEMRT__WHY_MAX];
    if (is_on_device(taken) && memrt__api()->cuda_why_not(why, sizeof(why)) != 0) {
        PyErr_Format(PyExc_BufferError,
                     "the tensor is on a CUDA device, which memrt cannot use: %s", why);
        return -1;
    }
    return 0;
}

static PyObject *take(PyObject *capsule, PyObject *policy)
{
    taken_t taken;
    if (open_capsule(capsule, &taken) < 0) {
        return NULL;
    }
    if (need_driver(taken) < 0) {
        use_up(capsule, taken);
        give_back(taken);
        return NULL;
    }
    PyObject *handler = handler_for(taken, policy);
    if (handler == NULL) {
        return NULL;
    }
    use_up(capsule, taken);
    PyObject *view = view_taken(taken, memrt__handler_policy(handler));
    Py_DECREF(handler);
    return view;
}

static PyObject *take_capsule(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    if (count != 2) {
        return PyErr_Format(PyExc_TypeError, "take_capsule() takes 2 arguments (%zd given)", count);
    }
    return take(args[0], args[1]);
}

/* --- Asking an object for its capsule. --- */

/// Objects that every call of `__dlpack__` uses.
static struct {
    PyObject *method;  ///< its name
    PyObject *version; ///< the newest that memrt knows
    PyObject *cpu;
    PyObject *names[4]; ///< of keywords: 1 with dl_device, 2 with copy
} known;

/// What from_dlpack() was asked for; borrowed.
typedef struct wish {
    PyObject *object;
    int cpu;          ///< in memory of the CPU
    PyObject *copy;   ///< True, False or None
    PyObject *policy; ///< or None
} wish_t;

/// Interned, as callees expect of keywords.
static PyObject *names_of(int with_device, int with_copy)
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

static PyObject *call(const wish_t *wish)
{
    PyObject *args[4] = {wish->object, known.version};
    int never = wish->copy == Py_False, given = 2;
    if (wish->cpu) {
        args[given++] = known.cpu;
    }
    args[given] = Py_False;
    return PyObject_VectorcallMethod(known.method, args, 1,
                                     known.names[(wish->cpu ? 1 : 0) + (never ? 2 : 0)]);
}

/// The library knows no versions. Of memory elsewhere its tensor is refused.
static PyObject *call_without(const wish_t *wish)
{
    PyErr_Clear();
    return wish->copy != Py_False
               ? PyObject_CallMethodNoArgs(wish->object, known.method)
               : PyErr_Format(PyExc_BufferError,
                              "%.200s is of an older DLPack, where nobody can ask not to be copied",
                              Py_TYPE(wish->object)->tp_name);
}

/// Say of an AttributeError that what has no such method is no tensor.
static void explain(PyObject *object)
{
    memrt_pending_t pending;
    memrt__pending_save(&pending);
    int is_tensor = PyObject_HasAttr(object, known.method);
    memrt__pending_restore(&pending);
    if (!is_tensor) {
        PyErr_Format(PyExc_TypeError, "%.200s has no __dlpack__: it is no tensor of DLPack's",
                     Py_TYPE(object)->tp_name);
    }
}

/// The capsule of an object, by the newest way that its library knows.
static PyObject *ask(const wish_t *wish)
{
    PyObject *capsule = call(wish);
    if (capsule == NULL && PyErr_ExceptionMatches(PyExc_TypeError)) {
        return call_without(wish);
    }
    if (capsule == NULL && PyErr_ExceptionMatches(PyExc_AttributeError)) {
        explain(wish->object);
    }
    return capsule;
}

/// What is done more rarely is done in Python: a copy, and an array of a device.
static PyObject *finish(PyObject *taken, const wish_t *wish)
{
    PyObject *module = taken != NULL ? PyImport_ImportModule("memrt._dlpack") : NULL;
    PyObject *result = module != NULL ? PyObject_CallMethod(module, "finish", "OOO", taken,
                                                            wish->copy, wish->policy)
                                      : NULL;
    Py_XDECREF(module);
    Py_XDECREF(taken);
    return result;
}

static PyObject *take_from(const wish_t *wish)
{
    PyObject *capsule = ask(wish);
    if (capsule == NULL) {
        return NULL;
    }
    PyObject *taken = take(capsule, wish->policy);
    Py_DECREF(capsule);
    return wish->copy == Py_True || (taken != NULL && memrt__tensor_check(taken))
               ? finish(taken, wish)
               : taken;
}

/// None, "cpu" or (1, 0).
static int read_device(PyObject *device, int *cpu)
{
    *cpu = device != Py_None;
    if (!*cpu ||
        (PyUnicode_Check(device) && PyUnicode_CompareWithASCIIString(device, "cpu") == 0)) {
        return 0;
    }
    int same = PyTuple_Check(device) ? PyObject_RichCompareBool(device, known.cpu, Py_EQ) : 0;
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

static PyObject *from_dlpack(PyObject *module, PyObject *const *args, Py_ssize_t count,
                             PyObject *names)
{
    static const char *const keywords[] = {"device", "copy", "policy"};
    static memrt_signature_t signature = {
        .function = "from_dlpack", .keywords = keywords, .total = 3};
    enum { DEVICE, COPY, POLICY, TOTAL };
    PyObject *values[TOTAL];
    wish_t wish;
    (void)module;
    if (count != 1) {
        return PyErr_Format(PyExc_TypeError,
                            "from_dlpack() takes 1 positional argument (%zd given)", count);
    }
    if (memrt__arguments(&signature, args + 1, 0, names, values) < 0) {
        return NULL;
    }
    wish.object = args[0];
    wish.policy = values[POLICY] != NULL ? values[POLICY] : Py_None;
    return read_device(values[DEVICE] != NULL ? values[DEVICE] : Py_None, &wish.cpu) < 0 ||
                   read_copy(values[COPY] != NULL ? values[COPY] : Py_None, &wish.copy) < 0
               ? NULL
               : take_from(&wish);
}

int memrt__intake_setup(void)
{
    known.method = PyUnicode_InternFromString("__dlpack__");
    known.version = Py_BuildValue("(ii)", DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION);
    known.cpu = Py_BuildValue("(ii)", kDLCPU, 0);
    for (int i = 0; i < 4; i++) {
        known.names[i] = names_of(i % 2, i / 2);
        if (known.names[i] == NULL) {
            return -1;
        }
    }
    return known.method != NULL && known.version != NULL && known.cpu != NULL ? 0 : -1;
}

PyDoc_STRVAR(
    from_dlpack_doc,
    "from_dlpack(x, /, *, device=None, copy=None, policy=None) -> ndarray or memrt.cuda.Array\n\n"
    "An array over the memory of a tensor of another library, which is on memrt's books.\n\n"
    "The memory is that of the other library, without a copy. A MemInfo of kind 'adopted', which\n"
    "meminfo() gives, holds it; with the last reference the library gets it back, at once where\n"
    "the GIL is held, soon on the main thread otherwise, never after Python has ended.\n"
    "What the other library marks as read-only is read-only, and so is what comes from a library\n"
    "that knows DLPack from before version 1.0, where nobody can say that.\n"
    "x: an object with __dlpack__. Of memory that the CPU reads, its own, pinned or managed, "
    "comes\n"
    "a numpy.ndarray; of a CUDA device's a memrt.cuda.Array, used in the order of the legacy "
    "stream.\n"
    "device: None: where the memory is. 'cpu' or (1, 0): the library may copy it there.\n"
    "copy: None: where the library has to. False: never. True: always, into memrt's memory.\n"
    "policy: whose account it goes on, and whose memory a copy takes; None as in empty(), of a\n"
    "device's memory the policy 'cuda foreign'.\n"
    "Raises BufferError when the tensor cannot be used, is on another device, or would be copied;\n"
    "TypeError when x has no __dlpack__; ValueError when device or copy is unknown, or the\n"
    "library's capsule is none or was used already; MemoryError. In all cases the library has got\n"
    "its tensor back.");

PyMethodDef memrt__intake_methods[] = {
    {"from_dlpack", MEMRT_FAST_KEYWORDS(from_dlpack), from_dlpack_doc},
    {"take_capsule", (PyCFunction)(void (*)(void))take_capsule, METH_FASTCALL,
     "take_capsule(capsule, policy) -> ndarray or Tensor\n\n"
     "An array over the memory of the tensor in a capsule that __dlpack__() returned, which is\n"
     "used up; a Tensor over that of a CUDA device. policy: as in memrt.empty().\n"
     "Raises BufferError when memrt cannot use the tensor, whose deleter was then called,\n"
     "ValueError for another capsule, TypeError for what is none."},
    {NULL, NULL, 0, NULL},
};
