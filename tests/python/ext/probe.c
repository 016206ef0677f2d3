/// An extension module as a user writes one: memrt/import.h and memrt/numpy.h, without linking
/// memrt.
///
/// No library replaces the module: the headers under test need a user without other code of memrt.

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <numpy/arrayobject.h>

#include <memrt/import.h>
#include <memrt/numpy.h>

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static const memrt_api_t *api;

/// malloced(nbytes) -> array that owns memory from malloc, without a handler
static PyObject *malloced(PyObject *module, PyObject *argument)
{
    (void)module;
    npy_intp size = PyLong_AsSsize_t(argument);
    if (size < 0) {
        return NULL;
    }
    void *data = calloc(1, size != 0 ? (size_t)size : 1);
    PyObject *array = data != NULL ? PyArray_SimpleNewFromData(1, &size, NPY_UINT8, data) : NULL;
    if (array == NULL) {
        free(data);
        return data != NULL ? NULL : PyErr_NoMemory();
    }
    PyArray_ENABLEFLAGS((PyArrayObject *)array, NPY_ARRAY_OWNDATA);
    return array;
}

/// unowned(array) -> array over the same memory, without a base and without ownership
static PyObject *unowned(PyObject *module, PyObject *source)
{
    PyArrayObject *array = (PyArrayObject *)source;
    (void)module;
    return PyArray_SimpleNewFromData(PyArray_NDIM(array), PyArray_DIMS(array), PyArray_TYPE(array),
                                     PyArray_DATA(array));
}

/// set_owndata(array): set OWNDATA, as a faulty extension does
static PyObject *set_owndata(PyObject *module, PyObject *array)
{
    (void)module;
    PyArray_ENABLEFLAGS((PyArrayObject *)array, NPY_ARRAY_OWNDATA);
    Py_RETURN_NONE;
}

/// clear_owndata(array)
static PyObject *clear_owndata(PyObject *module, PyObject *array)
{
    (void)module;
    PyArray_CLEARFLAGS((PyArrayObject *)array, NPY_ARRAY_OWNDATA);
    Py_RETURN_NONE;
}

static memrt_meminfo_t *meminfo_argument(PyObject *object)
{
    memrt_meminfo_t *mi;
    return memrt_array_meminfo(api, object, &mi) == 0 ? mi : NULL;
}

/// to_array(source, shape, dtype, strides or None, offset, flags) -> array over the MemInfo of
/// source
static PyObject *to_array(PyObject *module, PyObject *args)
{
    PyObject *source, *strides;
    PyArray_Dims shape = {NULL, 0}, steps = {NULL, 0};
    PyArray_Descr *descr = NULL;
    Py_ssize_t offset;
    int flags;
    PyObject *array = NULL;
    (void)module;
    if (!PyArg_ParseTuple(args, "OO&O&Oni", &source, PyArray_IntpConverter, &shape,
                          PyArray_DescrConverter, &descr, &strides, &offset, &flags)) {
        return NULL;
    }
    memrt_meminfo_t *mi = NULL;
    if ((strides == Py_None || PyArray_IntpConverter(strides, &steps)) &&
        (mi = meminfo_argument(source)) != NULL) {
        Py_INCREF(descr);
        array =
            memrt_meminfo_as_array(api, mi, descr, shape.len, shape.ptr, steps.ptr, offset, flags);
    }
    Py_XDECREF(descr);
    PyDimMem_FREE(shape.ptr);
    PyDimMem_FREE(steps.ptr);
    return array;
}

/// make_array(nbytes) -> uint8 array over a new MemInfo, base a capsule
static PyObject *make_array(PyObject *module, PyObject *argument)
{
    (void)module;
    npy_intp size = PyLong_AsSsize_t(argument);
    memrt_meminfo_t *mi = api->allocate((size_t)size);
    if (mi == NULL) {
        return PyErr_NoMemory();
    }
    return memrt_meminfo_as_array(api, mi, PyArray_DescrFromType(NPY_UINT8), 1, &size, NULL, 0,
                                  NPY_ARRAY_WRITEABLE);
}

/// make_capsule(nbytes) -> capsule "memrt.meminfo"
static PyObject *make_capsule(PyObject *module, PyObject *argument)
{
    (void)module;
    memrt_meminfo_t *mi = api->allocate((size_t)PyLong_AsSsize_t(argument));
    return mi != NULL ? memrt_meminfo_as_capsule(api, mi) : PyErr_NoMemory();
}

/// make_resizable(nbytes) -> capsule over a resizable MemInfo; with nbytes 0, its data is freed
static PyObject *make_resizable(PyObject *module, PyObject *argument)
{
    memrt_meminfo_t *mi;
    (void)module;
    size_t size = (size_t)PyLong_AsSsize_t(argument);
    if (api->resizable_new(size, NULL, &mi) != MEMRT_OK) {
        return PyErr_NoMemory();
    }
    if (size == 0) {
        api->resizable_free(mi, api->get_data(mi));
    }
    return memrt_meminfo_as_capsule(api, mi);
}

/// register_in_tracemalloc(object): show the object's memory in tracemalloc
static PyObject *register_in_tracemalloc(PyObject *module, PyObject *object)
{
    (void)module;
    memrt_meminfo_t *mi = meminfo_argument(object);
    int result = mi != NULL ? memrt_tracemalloc_register(api, mi) : -1;
    if (mi != NULL) {
        api->release(mi);
    }
    return result == 0 ? Py_NewRef(Py_None) : NULL;
}

/// resize(object, nbytes, keep_gil): resize a resizable MemInfo
static PyObject *resize(PyObject *module, PyObject *args)
{
    PyObject *object;
    Py_ssize_t size;
    int keep_gil;
    (void)module;
    if (!PyArg_ParseTuple(args, "Onp", &object, &size, &keep_gil)) {
        return NULL;
    }
    memrt_meminfo_t *mi = meminfo_argument(object);
    if (mi == NULL) {
        return NULL;
    }
    PyThreadState *state = keep_gil ? NULL : PyEval_SaveThread();
    void *data = api->resizable_realloc(mi, (size_t)size);
    if (state != NULL) {
        PyEval_RestoreThread(state);
    }
    api->release(mi);
    return data != NULL ? Py_NewRef(Py_None) : PyErr_NoMemory();
}

/// foreign_capsule(name) -> a capsule unrelated to memrt
static PyObject *foreign_capsule(PyObject *module, PyObject *name)
{
    static char something;
    static char kept[64];
    (void)module;
    snprintf(kept, sizeof(kept), "%s", PyUnicode_AsUTF8(name));
    return PyCapsule_New(&something, kept, NULL);
}

/// set_base(array, object): PyArray_SetBaseObject with a new reference
static PyObject *set_base(PyObject *module, PyObject *args)
{
    PyObject *array, *base;
    (void)module;
    if (!PyArg_ParseTuple(args, "OO", &array, &base)) {
        return NULL;
    }
    Py_INCREF(base);
    if (PyArray_SetBaseObject((PyArrayObject *)array, base) < 0) {
        return NULL;
    }
    Py_RETURN_NONE;
}

/// address(object) -> address of the MemInfo that memrt_array_meminfo finds
static PyObject *address(PyObject *module, PyObject *object)
{
    (void)module;
    memrt_meminfo_t *mi = meminfo_argument(object);
    if (mi == NULL) {
        return NULL;
    }
    PyObject *result = PyLong_FromVoidPtr(mi);
    api->release(mi);
    return result;
}

/// hold(object) -> address; C code keeps a reference
static PyObject *hold(PyObject *module, PyObject *object)
{
    (void)module;
    memrt_meminfo_t *mi = meminfo_argument(object);
    return mi != NULL ? PyLong_FromVoidPtr(mi) : NULL;
}

/// fail_and_clear(list): set LookupError, clear the list, and raise the same exception
static PyObject *fail_and_clear(PyObject *module, PyObject *list)
{
    (void)module;
    PyErr_SetString(PyExc_LookupError, "pending");
    (void)PyList_SetSlice(list, 0, PyList_GET_SIZE(list), NULL);
    return NULL;
}

static void *release_body(void *mi)
{
    api->release(mi);
    return NULL;
}

/// release(address): release a held reference, on this thread
static PyObject *release(PyObject *module, PyObject *argument)
{
    (void)module;
    api->release(PyLong_AsVoidPtr(argument));
    Py_RETURN_NONE;
}

/// release_without_gil(address, keep_gil): release a reference on a thread unknown to Python
static PyObject *release_without_gil(PyObject *module, PyObject *args)
{
    unsigned long long mi;
    int keep_gil;
    pthread_t thread;
    (void)module;
    if (!PyArg_ParseTuple(args, "Kp", &mi, &keep_gil)) {
        return NULL;
    }
    if (pthread_create(&thread, NULL, release_body, (void *)(uintptr_t)mi) != 0) {
        return PyErr_NoMemory();
    }
    if (keep_gil) { /* a destructor that waits for the GIL would deadlock */
        pthread_join(thread, NULL);
    } else {
        Py_BEGIN_ALLOW_THREADS pthread_join(thread, NULL);
        Py_END_ALLOW_THREADS
    }
    Py_RETURN_NONE;
}

static memrt_meminfo_t *late;

static void release_late(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, release_body, late) == 0) {
        pthread_join(thread, NULL);
    }
}

/// release_after_python(object): release on another thread, after the interpreter is deleted
static PyObject *release_after_python(PyObject *module, PyObject *object)
{
    (void)module;
    late = meminfo_argument(object);
    if (late == NULL || Py_AtExit(release_late) < 0) {
        return NULL;
    }
    Py_RETURN_NONE;
}

static atomic_ullong rounds;

static void *churn_body(void *unused)
{
    (void)unused;
    for (;;) {
        memrt_meminfo_t *mi = api->allocate(1000);
        if (mi != NULL) {
            api->release(mi);
        }
        atomic_fetch_add(&rounds, 1);
    }
    return NULL;
}

/// churn(): start a C thread that allocates and releases until the process ends, and wait for its
/// first rounds
static PyObject *churn(PyObject *module, PyObject *unused)
{
    pthread_t thread;
    (void)module;
    (void)unused;
    if (pthread_create(&thread, NULL, churn_body, NULL) != 0) {
        return PyErr_NoMemory();
    }
    pthread_detach(thread);
    while (atomic_load(&rounds) < 100) {
        sched_yield();
    }
    Py_RETURN_NONE;
}

static PyObject *kept;

/// name_by_bytes(object, name): name a buffer in any encoding, as C code may
static PyObject *name_by_bytes(PyObject *module, PyObject *args)
{
    PyObject *object;
    const char *name;
    (void)module;
    if (!PyArg_ParseTuple(args, "Oy", &object, &name)) {
        return NULL;
    }
    memrt_meminfo_t *mi = meminfo_argument(object);
    if (mi == NULL) {
        return NULL;
    }
    memrt_status_t status = api->set_name(mi, name);
    api->release(mi);
    return PyLong_FromLong(status);
}

/// hold_as(object, name, kind) -> address; C code keeps a reference under a name
static PyObject *hold_as(PyObject *module, PyObject *args)
{
    PyObject *object;
    const char *name;
    int kind;
    (void)module;
    if (!PyArg_ParseTuple(args, "Osi", &object, &name, &kind)) {
        return NULL;
    }
    memrt_meminfo_t *mi = meminfo_argument(object);
    if (mi == NULL) {
        return NULL;
    }
    memrt_status_t status = api->acquire_as(mi, (memrt_holder_kind_t)kind, name);
    api->release(mi);
    return status == MEMRT_OK ? PyLong_FromVoidPtr(mi) : PyErr_NoMemory();
}

/// release_as(address, name, kind)
static PyObject *release_as(PyObject *module, PyObject *args)
{
    PyObject *address;
    const char *name;
    int kind;
    (void)module;
    if (!PyArg_ParseTuple(args, "Osi", &address, &name, &kind)) {
        return NULL;
    }
    api->release_as(PyLong_AsVoidPtr(address), (memrt_holder_kind_t)kind, name);
    Py_RETURN_NONE;
}

/// keep(object): keep a reference in a static C variable until the next call
static PyObject *keep(PyObject *module, PyObject *object)
{
    (void)module;
    Py_XDECREF(kept);
    kept = Py_NewRef(object);
    Py_RETURN_NONE;
}

static void count_dtor(void *data, size_t size, void *info)
{
    (void)data;
    (void)size;
    ++*(int *)info;
}

/// adopt_counting() -> (True if adoption and array succeed, or None; calls of the destructor)
static PyObject *adopt_counting(PyObject *module, PyObject *unused)
{
    static char buffer[64];
    static int calls;
    memrt_meminfo_t *mi;
    (void)module;
    (void)unused;
    memrt_new_options_t options = {
        .struct_size = sizeof(options), .dtor = count_dtor, .dtor_info = &calls};
    npy_intp size = sizeof(buffer);
    calls = 0;
    if (api->meminfo_adopt(buffer, sizeof(buffer), &options, &mi) != MEMRT_OK) {
        return Py_BuildValue("(Oi)", Py_None, calls);
    }
    PyObject *array = memrt_meminfo_as_array(api, mi, PyArray_DescrFromType(NPY_UINT8), 1, &size,
                                             NULL, 0, NPY_ARRAY_WRITEABLE);
    if (array == NULL) {
        PyErr_Clear();
        return Py_BuildValue("(Oi)", Py_None, calls);
    }
    Py_DECREF(array);
    return Py_BuildValue("(Oi)", Py_True, calls);
}

/// import_again() -> whether memrt_import() returns this module's table
static PyObject *import_again(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    const memrt_api_t *again = memrt_import();
    return again != NULL ? PyBool_FromLong(again == api) : NULL;
}

/// fake_table(major, bytes) -> capsule like memrt's, whose table has the given version and size
static PyObject *fake_table(PyObject *module, PyObject *args)
{
    static memrt_api_t table;
    unsigned major;
    Py_ssize_t bytes;
    (void)module;
    if (!PyArg_ParseTuple(args, "In", &major, &bytes)) {
        return NULL;
    }
    table = *api;
    table.abi_major = major;
    table.struct_size = (size_t)bytes;
    return PyCapsule_New(&table, MEMRT_API_CAPSULE, NULL);
}

/// has_last_slot() -> whether the imported table has its last slot, by MEMRT_HAS
static PyObject *has_last_slot(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    const memrt_api_t *table = memrt_import();
    return table != NULL ? PyBool_FromLong(MEMRT_HAS(table, policy_reset)) : NULL;
}

static int can_allocate(size_t nbytes)
{
    void *data = api->block_alloc(NULL, nbytes);
    api->block_free(NULL, data, nbytes);
    return data != NULL;
}

/// allocates(nbytes, how) -> whether an allocation succeeds "with the GIL", "without the GIL", or
/// "with an exception" pending
static PyObject *allocates(PyObject *module, PyObject *args)
{
    Py_ssize_t nbytes;
    const char *how;
    int done;
    (void)module;
    if (!PyArg_ParseTuple(args, "ns", &nbytes, &how)) {
        return NULL;
    }
    if (strcmp(how, "without the GIL") == 0) {
        Py_BEGIN_ALLOW_THREADS done = can_allocate((size_t)nbytes);
        Py_END_ALLOW_THREADS
    } else if (strcmp(how, "with an exception") == 0) {
        PyErr_SetString(PyExc_KeyError, "pending");
        done = can_allocate((size_t)nbytes);
        done = PyErr_ExceptionMatches(PyExc_KeyError) ? done : -1;
        PyErr_Clear();
    } else {
        done = can_allocate((size_t)nbytes);
    }
    return PyLong_FromLong(done);
}

static PyMethodDef methods[] = {
    {"malloced", malloced, METH_O, NULL},
    {"unowned", unowned, METH_O, NULL},
    {"set_owndata", set_owndata, METH_O, NULL},
    {"clear_owndata", clear_owndata, METH_O, NULL},
    {"to_array", to_array, METH_VARARGS, NULL},
    {"make_array", make_array, METH_O, NULL},
    {"make_capsule", make_capsule, METH_O, NULL},
    {"make_resizable", make_resizable, METH_O, NULL},
    {"register_in_tracemalloc", register_in_tracemalloc, METH_O, NULL},
    {"resize", resize, METH_VARARGS, NULL},
    {"foreign_capsule", foreign_capsule, METH_O, NULL},
    {"set_base", set_base, METH_VARARGS, NULL},
    {"address", address, METH_O, NULL},
    {"hold", hold, METH_O, NULL},
    {"release", release, METH_O, NULL},
    {"name_by_bytes", name_by_bytes, METH_VARARGS, NULL},
    {"hold_as", hold_as, METH_VARARGS, NULL},
    {"release_as", release_as, METH_VARARGS, NULL},
    {"fail_and_clear", fail_and_clear, METH_O, NULL},
    {"release_without_gil", release_without_gil, METH_VARARGS, NULL},
    {"release_after_python", release_after_python, METH_O, NULL},
    {"churn", churn, METH_NOARGS, NULL},
    {"keep", keep, METH_O, NULL},
    {"adopt_counting", adopt_counting, METH_NOARGS, NULL},
    {"import_again", import_again, METH_NOARGS, NULL},
    {"fake_table", fake_table, METH_VARARGS, NULL},
    {"allocates", allocates, METH_VARARGS, NULL},
    {"has_last_slot", has_last_slot, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef definition = {PyModuleDef_HEAD_INIT, .m_name = "probe", .m_size = -1,
                                 .m_methods = methods};

PyMODINIT_FUNC PyInit_probe(void)
{
    import_array();
    api = memrt_import();
    return api != NULL ? PyModule_Create(&definition) : NULL;
}
