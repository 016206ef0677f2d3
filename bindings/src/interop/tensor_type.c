#include "interop/tensor_type.h"

#include "core/base_lookup.h"
#include "interop/dlpack_export.h"
#include "interop/dlpack_layout.h"

int memrt__tensor_check(PyObject *object)
{
    return Py_IS_TYPE(object, memrt__binding.tensor_type);
}

PyObject *memrt__tensor_new(memrt_meminfo_object_t *base, const memrt_dlpack_view_t *view,
                            PyObject *keep)
{
    PyTypeObject *type = memrt__binding.tensor_type;
    memrt_tensor_object_t *self = (memrt_tensor_object_t *)type->tp_alloc(type, 2 * view->ndim);
    if (self == NULL) {
        return NULL;
    }
    int64_t *strides = self->numbers + view->ndim;
    self->view = *view;
    self->view.shape = memcpy(self->numbers, view->shape, (size_t)view->ndim * sizeof(int64_t));
    self->view.strides = strides;
    memrt_dlpack_strides(view, strides);
    self->base = (memrt_meminfo_object_t *)Py_NewRef(base);
    self->keep = Py_XNewRef(keep);
    return (PyObject *)self;
}

static PyObject *create_array_tensor(PyArrayObject *array)
{
    memrt_dlpack_view_t view;
    memrt_numbers_t numbers;
    memrt_meminfo_object_t *base = (memrt_meminfo_object_t *)memrt__lookup((PyObject *)array);
    memrt_meminfo_t *mi = base != NULL ? memrt__meminfo_get(base) : NULL;
    PyObject *self = mi != NULL && memrt__dlpack_layout_of_array(array, mi, &view, numbers) == 0
                         ? memrt__tensor_new(base, &view, NULL)
                         : NULL;
    Py_XDECREF(base);
    return self;
}

static PyObject *tensor_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *keywords[] = {"array", NULL};
    PyObject *array;
    (void)type;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!:Tensor", keywords, &PyArray_Type, &array)) {
        return NULL;
    }
    return create_array_tensor((PyArrayObject *)array);
}

static int tensor_traverse(memrt_tensor_object_t *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(self->base);
    Py_VISIT(self->keep);
    return 0;
}

static void tensor_dealloc(memrt_tensor_object_t *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    Py_XDECREF(self->base);
    Py_XDECREF(self->keep);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyObject *get_meminfo(memrt_tensor_object_t *self, void *unused)
{
    (void)unused;
    return Py_NewRef(self->base);
}

static PyObject *get_array(memrt_tensor_object_t *self, void *unused)
{
    (void)unused;
    return memrt__meminfo_get(self->base) != NULL
               ? memrt__dlpack_layout_as_array(self->base, &self->view)
               : NULL;
}

/// Return the numbers multiplied by `factor`, as a tuple; a product may wrap.
static PyObject *build_tuple(const int64_t *numbers, int32_t count, size_t factor)
{
    PyObject *tuple = PyTuple_New(count);
    for (int32_t i = 0; tuple != NULL && i < count; i++) {
        PyObject *number = PyLong_FromSsize_t((Py_ssize_t)((size_t)numbers[i] * factor));
        if (number == NULL) {
            Py_CLEAR(tuple);
        } else {
            PyTuple_SET_ITEM(tuple, i, number);
        }
    }
    return tuple;
}

static PyObject *get_shape(memrt_tensor_object_t *self, void *unused)
{
    (void)unused;
    return build_tuple(self->view.shape, self->view.ndim, 1);
}

static PyObject *tensor_repr(memrt_tensor_object_t *self)
{
    PyObject *shape = get_shape(self, NULL);
    PyObject *text = shape != NULL
                         ? PyUnicode_FromFormat("<memrt.types.Tensor of shape %R over %R>", shape,
                                                (PyObject *)self->base)
                         : NULL;
    Py_XDECREF(shape);
    return text;
}

static PyObject *tensor_dlpack(memrt_tensor_object_t *self, PyObject *const *args, Py_ssize_t count,
                               PyObject *names)
{
    return memrt__meminfo_get(self->base) != NULL
               ? memrt__dlpack_produce(self->base, &self->view, args, count, names)
               : NULL;
}

static PyObject *tensor_dlpack_device(memrt_tensor_object_t *self, PyObject *unused)
{
    (void)unused;
    memrt_meminfo_t *mi = memrt__meminfo_get(self->base);
    return mi != NULL ? memrt__dlpack_device_tuple(mi) : NULL;
}

static PyMethodDef methods[] = {
    {"__dlpack__", MEMRT_FAST_KEYWORDS(tensor_dlpack), MEMRT_DLPACK_DOC},
    {"__dlpack_device__", (PyCFunction)(void (*)(void))tensor_dlpack_device, METH_NOARGS,
     MEMRT_DLPACK_DEVICE_DOC},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef attributes[] = {
    {"array", (getter)(void (*)(void))get_array, NULL,
     "New numpy.ndarray over the memory. BufferError: NumPy does not support the elements.", NULL},
    {"meminfo", (getter)(void (*)(void))get_meminfo, NULL, "MemInfo of the memory.", NULL},
    {"shape", (getter)(void (*)(void))get_shape, NULL, "Elements along each axis, a tuple of int.",
     NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

PyDoc_STRVAR(
    type_doc,
    "Tensor(array)\n"
    "--\n"
    "\n"
    "Export of an array in memory of memrt to libraries that support DLPack.\n"
    "\n"
    "Pass the Tensor to ``from_dlpack()`` of another library. :func:`memrt.holders` lists the\n"
    "reference of the library until the library releases the memory. An array exports itself\n"
    "through NumPy, and memrt does not see references of that export.\n"
    "\n"
    "Parameters\n"
    "----------\n"
    "array : numpy.ndarray\n"
    "    Array in memory of memrt. The Tensor keeps the present layout of the array.\n"
    "\n"
    "Raises\n"
    "------\n"
    "ValueError\n"
    "    memrt does not manage the memory. :func:`memrt.adopt` puts such memory under memrt.\n"
    "BufferError\n"
    "    DLPack does not support the dtype, the byte order or the strides.\n"
    "\n"
    "Notes\n"
    "-----\n"
    "Ownership: the Tensor holds a reference to the MemInfo, not to the array.\n"
    "\n"
    "Examples\n"
    "--------\n"
    ">>> import memrt\n"
    ">>> import numpy as np\n"
    ">>> tensor = memrt.types.Tensor(memrt.zeros((2, 3)))\n"
    ">>> np.from_dlpack(tensor)\n"
    "array([[0., 0., 0.],\n"
    "       [0., 0., 0.]])");

static PyType_Slot slots[] = {
    {Py_tp_doc, (void *)type_doc},   {Py_tp_new, tensor_new},
    {Py_tp_dealloc, tensor_dealloc}, {Py_tp_traverse, tensor_traverse},
    {Py_tp_repr, tensor_repr},       {Py_tp_methods, methods},
    {Py_tp_getset, attributes},      {0, NULL},
};

static PyType_Spec spec = {
    .name = "memrt.types.Tensor",
    .basicsize = sizeof(memrt_tensor_object_t),
    .itemsize = sizeof(int64_t),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};

/* --- Arrays of other types than numpy.ndarray. --- */

/// Create an ndarray that only describes the layout of elements. Its bytes may be in device memory
/// and must not be accessed.
static PyArrayObject *create_shadow_array(memrt_meminfo_t *mi, PyArray_Descr *descr,
                                          PyArray_Dims *shape, PyArray_Dims *strides, size_t offset,
                                          int readonly)
{
    static char nothing;
    char *data = memrt__api()->get_data(mi);
    Py_INCREF(descr);
    return (PyArrayObject *)PyArray_NewFromDescr(
        &PyArray_Type, descr, shape->len, shape->ptr, strides->ptr,
        data != NULL ? data + offset : &nothing, readonly ? 0 : NPY_ARRAY_WRITEABLE, NULL);
}

static PyObject *create_meminfo_tensor(PyObject *module, PyObject *args)
{
    memrt_meminfo_object_t *base;
    PyArray_Descr *descr;
    PyArray_Dims shape = {NULL, 0}, strides = {NULL, 0};
    memrt_numbers_t numbers;
    memrt_dlpack_view_t view;
    Py_ssize_t offset;
    int readonly;
    PyObject *tensor = NULL;
    (void)module;
    if (!PyArg_ParseTuple(args, "O!O!O&O&np:tensor_over", memrt__binding.meminfo_type, &base,
                          &PyArrayDescr_Type, &descr, PyArray_IntpConverter, &shape,
                          PyArray_IntpConverter, &strides, &offset, &readonly)) {
        goto free_shape;
    }
    memrt_meminfo_t *mi = memrt__meminfo_get(base);
    PyArrayObject *shadow =
        mi != NULL ? create_shadow_array(mi, descr, &shape, &strides, (size_t)offset, readonly)
                   : NULL;
    if (shadow != NULL && memrt__dlpack_layout_of_array(shadow, mi, &view, numbers) == 0) {
        tensor = memrt__tensor_new(base, &view, NULL);
    }
    Py_XDECREF(shadow);
free_shape:
    PyDimMem_FREE(shape.ptr);
    PyDimMem_FREE(strides.ptr);
    return tensor;
}

static PyObject *get_tensor_layout(PyObject *module, PyObject *object)
{
    (void)module;
    if (!memrt__tensor_check(object)) {
        PyErr_Format(PyExc_TypeError, "expected a memrt.types.Tensor, got %.200s",
                     Py_TYPE(object)->tp_name);
        return NULL;
    }
    memrt_tensor_object_t *tensor = (memrt_tensor_object_t *)object;
    int readonly = (tensor->view.flags & DLPACK_FLAG_BITMASK_READ_ONLY) != 0;
    PyArray_Descr *descr = memrt__dlpack_layout_descr(&tensor->view);
    PyObject *shape = descr != NULL ? get_shape(tensor, NULL) : NULL;
    PyObject *strides = shape != NULL ? build_tuple(tensor->view.strides, tensor->view.ndim,
                                                    tensor->view.dtype.bits / 8u)
                                      : NULL;
    if (strides == NULL) {
        Py_XDECREF(shape);
        Py_XDECREF(descr);
        return NULL;
    }
    return Py_BuildValue("(ONNNKNO)", tensor->base, descr, shape, strides,
                         (unsigned long long)tensor->view.offset, PyBool_FromLong(readonly),
                         tensor->keep != NULL ? tensor->keep : Py_None);
}

PyMethodDef memrt__tensor_methods[] = {
    {"tensor_over", create_meminfo_tensor, METH_VARARGS,
     "tensor_over(mi, dtype, shape, strides, offset, readonly) -> Tensor\n\n"
     "Create a Tensor of elements over a MemInfo, also over memory that the host cannot read.\n"
     "strides and offset in bytes.\n"
     "Raises BufferError for a layout that DLPack does not support, TypeError, MemoryError."},
    {"tensor_layout", get_tensor_layout, METH_O,
     "tensor_layout(tensor) -> tuple\n\n"
     "Return the arguments of tensor_over(): MemInfo, dtype, shape, strides, offset and\n"
     "read-only flag. Then a list of objects that imported device memory keeps alive, else\n"
     "None.\n"
     "Raises BufferError for a type that NumPy does not support, TypeError, MemoryError."},
    {NULL, NULL, 0, NULL},
};

int memrt__tensor_setup(PyObject *module)
{
    if (memrt__binding.tensor_type == NULL) {
        PyObject *type = PyType_FromSpec(&spec);
        if (type == NULL) {
            return -1;
        }
        memrt__binding.tensor_type = (PyTypeObject *)type;
    }
    return PyModule_AddObjectRef(module, "Tensor", (PyObject *)memrt__binding.tensor_type);
}
