#include "interface.h"

#include "ndarray.h"

PyObject *memrt__interface_dict(memrt_meminfo_object_t *self, void *unused)
{
    memrt_bytes_t bytes;
    (void)unused;
    if (memrt__meminfo_bytes(self, &bytes) < 0) {
        return NULL;
    }
    return Py_BuildValue("{s(n)sss(NN)sOsi}", "shape", (Py_ssize_t)bytes.size, "typestr", "|u1",
                         "data", PyLong_FromVoidPtr(bytes.data), PyBool_FromLong(bytes.readonly),
                         "strides", Py_None, "version", 3);
}

/// A PyArrayInterface with the numbers that it points to.
typedef struct room {
    PyArrayInterface interface;
    npy_intp shape, stride;
} room_t;

static void end_struct(PyObject *capsule)
{
    PyObject *self = PyCapsule_GetContext(capsule);
    PyMem_Free(PyCapsule_GetPointer(capsule, NULL));
    Py_XDECREF(self);
}

static void fill(room_t *room, const memrt_bytes_t *bytes)
{
    int flags = NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_F_CONTIGUOUS | NPY_ARRAY_ALIGNED |
                NPY_ARRAY_NOTSWAPPED | (bytes->readonly ? 0 : NPY_ARRAY_WRITEABLE);
    *room = (room_t){.interface = {.two = 2,
                                   .nd = 1,
                                   .typekind = 'u',
                                   .itemsize = 1,
                                   .flags = flags,
                                   .shape = &room->shape,
                                   .strides = &room->stride,
                                   .data = bytes->data},
                     .shape = (npy_intp)bytes->size,
                     .stride = 1};
}

PyObject *memrt__interface_struct(memrt_meminfo_object_t *self, void *unused)
{
    memrt_bytes_t bytes;
    (void)unused;
    if (memrt__meminfo_bytes(self, &bytes) < 0) {
        return NULL;
    }
    room_t *room = PyMem_Malloc(sizeof(*room));
    if (room == NULL) {
        return PyErr_NoMemory();
    }
    fill(room, &bytes);
    PyObject *capsule = PyCapsule_New(room, NULL, end_struct);
    if (capsule == NULL) {
        PyMem_Free(room);
        return NULL;
    }
    PyCapsule_SetContext(capsule, Py_NewRef(self)); /* cannot fail on a capsule */
    return capsule;
}
