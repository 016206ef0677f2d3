#include "interop/array_interface.h"

#include "core/device_sync.h"
#include "support/ndarray.h"

/* NumPy's array interface has two forms: the dict __array_interface__, whose consumer keeps the
   MemInfo alive, and the capsule __array_struct__, which holds a reference to the MemInfo. Both
   describe a one-dimensional array of uint8. */

PyObject *memrt__array_interface_dict(memrt_meminfo_object_t *self, void *unused)
{
    memrt_bytes_t bytes;
    (void)unused;
    if (memrt__device_get_host_bytes(self, &bytes) < 0) {
        return NULL;
    }
    return Py_BuildValue("{s(n)sss(NN)sOsi}", "shape", (Py_ssize_t)bytes.size, "typestr", "|u1",
                         "data", PyLong_FromVoidPtr(bytes.data), PyBool_FromLong(bytes.readonly),
                         "strides", Py_None, "version", 3);
}

/// Contents of a capsule: the PyArrayInterface, and the shape and stride to which the
/// PyArrayInterface points.
typedef struct storage {
    PyArrayInterface interface;
    npy_intp shape, stride;
} storage_t;

/// Free the contents of a capsule, and release the MemInfo in the context of the capsule.
static void destroy_struct_capsule(PyObject *capsule)
{
    PyObject *self = PyCapsule_GetContext(capsule);
    PyMem_Free(PyCapsule_GetPointer(capsule, NULL));
    Py_XDECREF(self);
}

/// Describe the bytes as a one-dimensional array. `storage` must not move afterwards.
static void fill_interface(storage_t *storage, const memrt_bytes_t *bytes)
{
    int flags = NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_F_CONTIGUOUS | NPY_ARRAY_ALIGNED |
                NPY_ARRAY_NOTSWAPPED | (bytes->readonly ? 0 : NPY_ARRAY_WRITEABLE);
    *storage = (storage_t){.interface = {.two = 2,
                                         .nd = 1,
                                         .typekind = 'u',
                                         .itemsize = 1,
                                         .flags = flags,
                                         .shape = &storage->shape,
                                         .strides = &storage->stride,
                                         .data = bytes->data},
                           .shape = (npy_intp)bytes->size,
                           .stride = 1};
}

PyObject *memrt__array_interface_struct(memrt_meminfo_object_t *self, void *unused)
{
    memrt_bytes_t bytes;
    (void)unused;
    if (memrt__device_get_host_bytes(self, &bytes) < 0) {
        return NULL;
    }
    storage_t *storage = PyMem_Malloc(sizeof(*storage));
    if (storage == NULL) {
        return PyErr_NoMemory();
    }
    fill_interface(storage, &bytes);
    PyObject *capsule = PyCapsule_New(storage, NULL, destroy_struct_capsule);
    if (capsule == NULL) {
        PyMem_Free(storage);
        return NULL;
    }
    PyCapsule_SetContext(capsule, Py_NewRef(self)); /* cannot fail on a valid capsule */
    return capsule;
}
