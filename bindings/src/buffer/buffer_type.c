#include "buffer/buffer_type.h"

#include "buffer/buffer_creation.h"
#include "buffer/buffer_items.h"
#include "buffer/buffer_values.h"
#include "core/meminfo_object.h"
#include "support/arguments.h"
#include "support/free_threading.h"

static PyObject *buffer_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *keywords[] = {"capacity", "dtype", "reserve", "policy", NULL};
    size_t capacity = 0;
    PyObject *dtype = NULL, *reserve = NULL, *policy = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O&$OOO:Buffer", keywords, memrt__size_argument,
                                     &capacity, &dtype, &reserve, &policy)) {
        return NULL;
    }
    memrt_buffer_object_t *self = (memrt_buffer_object_t *)type->tp_alloc(type, 0);
    if (self != NULL && memrt__buffer_fill(self, capacity, dtype, reserve, policy) < 0) {
        Py_CLEAR(self);
    }
    return (PyObject *)self;
}

static void buffer_dealloc(memrt_buffer_object_t *self)
{
    PyTypeObject *type = Py_TYPE(self);
    if (self->mi != NULL) {
        memrt__api()->release(self->mi);
    }
    Py_XDECREF(self->descr);
    type->tp_free((PyObject *)self);
    Py_DECREF(type);
}

/// Append the items of an array, or fail as its conversion did for NULL. Steals the reference.
static PyObject *add_array(memrt_buffer_object_t *self, PyArrayObject *array)
{
    int result = array == NULL
                     ? -1
                     : memrt__buffer_add(self, PyArray_DATA(array), (size_t)PyArray_SIZE(array));
    Py_XDECREF(array);
    return result < 0 ? NULL : Py_NewRef(Py_None);
}

static PyObject *buffer_append(memrt_buffer_object_t *self, PyObject *value)
{
    char item[MEMRT_NUMBER_BYTES];
    if (memrt__buffer_store(self, value, item)) {
        return memrt__buffer_add(self, item, 1) < 0 ? NULL : Py_NewRef(Py_None);
    }
    return add_array(self, memrt__buffer_value(self, value));
}

static PyObject *buffer_extend(memrt_buffer_object_t *self, PyObject *values)
{
    return add_array(self, memrt__buffer_values(self, values));
}

static PyObject *buffer_resize(memrt_buffer_object_t *self, PyObject *argument)
{
    size_t length;
    if (!memrt__size_argument(argument, &length) || memrt__buffer_resize(self, length) < 0) {
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *buffer_shrink_to_fit(memrt_buffer_object_t *self, PyObject *unused)
{
    (void)unused;
    return memrt__buffer_fit(self) < 0 ? NULL : Py_NewRef(Py_None);
}

/* --- Attributes and protocols. --- */

static PyObject *get_array(memrt_buffer_object_t *self, void *unused)
{
    (void)unused;
    memrt_meminfo_object_t *base = memrt__meminfo_shell();
    if (base == NULL) {
        return NULL;
    }
    npy_intp length;
    MEMRT_BEGIN_CRITICAL_SECTION(self);
    memrt__api()->acquire(self->mi);
    length = (npy_intp)self->length;
    MEMRT_END_CRITICAL_SECTION();
    PyObject *object = memrt__meminfo_hand_out(base, self->mi);
    Py_INCREF(self->descr);
    return memrt__array_over(memrt__api(), self->mi, object, self->descr, 1, &length, NULL, 0,
                             NPY_ARRAY_WRITEABLE);
}

static PyObject *get_dtype(memrt_buffer_object_t *self, void *unused)
{
    (void)unused;
    return Py_NewRef((PyObject *)self->descr);
}

static size_t read_length(memrt_buffer_object_t *self)
{
    size_t length;
    MEMRT_BEGIN_CRITICAL_SECTION(self);
    length = self->length;
    MEMRT_END_CRITICAL_SECTION();
    return length;
}

static PyObject *get_nbytes(memrt_buffer_object_t *self, void *unused)
{
    (void)unused;
    return PyLong_FromSize_t(read_length(self) * self->itemsize);
}

static PyObject *get_capacity(memrt_buffer_object_t *self, void *unused)
{
    (void)unused;
    return PyLong_FromSize_t(memrt__api()->size(self->mi) / self->itemsize);
}

static PyObject *get_reserve(memrt_buffer_object_t *self, void *unused)
{
    (void)unused;
    return PyLong_FromSize_t(self->reserve);
}

static Py_ssize_t buffer_length(memrt_buffer_object_t *self)
{
    return (Py_ssize_t)read_length(self);
}

static PyObject *buffer_repr(memrt_buffer_object_t *self)
{
    return PyUnicode_FromFormat("<memrt.types.Buffer %S, %zu items, capacity %zu>", self->descr,
                                read_length(self), memrt__api()->size(self->mi) / self->itemsize);
}

/// Export the current items, by a new array. The export keeps the memory, not this object.
static int buffer_getbuffer(memrt_buffer_object_t *self, Py_buffer *view, int flags)
{
    PyObject *array = get_array(self, NULL);
    view->obj = NULL;
    int result = array == NULL ? -1 : PyObject_GetBuffer(array, view, flags);
    Py_XDECREF(array);
    return result;
}

PyDoc_STRVAR(append_doc, "append($self, value, /)\n"
                         "--\n"
                         "\n"
                         "Append one item.\n"
                         "\n"
                         "Parameters\n"
                         "----------\n"
                         "value : object\n"
                         "    Item, converted as by ``numpy.asarray(value, dtype)``.\n"
                         "\n"
                         "Raises\n"
                         "------\n"
                         "ValueError\n"
                         "    The value is not one item.\n"
                         "MemoryError\n"
                         "    Memory, a limit or the reserve is exhausted.\n"
                         "\n"
                         "Examples\n"
                         "--------\n"
                         ">>> import memrt\n"
                         ">>> found = memrt.types.Buffer(dtype=\"f8\")\n"
                         ">>> found.append(1.5)\n"
                         ">>> found.array\n"
                         "array([1.5])");

PyDoc_STRVAR(extend_doc,
             "extend($self, values, /)\n"
             "--\n"
             "\n"
             "Append all items of an array, a sequence or an iterator.\n"
             "\n"
             "Parameters\n"
             "----------\n"
             "values : array_like or iterator\n"
             "    One dimension. An array must be of the same kind as the dtype. On an error\n"
             "    nothing is appended.\n"
             "\n"
             "Raises\n"
             "------\n"
             "ValueError\n"
             "    The values have no or several dimensions.\n"
             "TypeError\n"
             "    The array has a dtype of another kind.\n"
             "MemoryError\n"
             "    Memory, a limit or the reserve is exhausted.\n"
             "\n"
             "Examples\n"
             "--------\n"
             ">>> import memrt\n"
             ">>> found = memrt.types.Buffer(dtype=\"i4\")\n"
             ">>> found.extend(range(3))\n"
             ">>> found.extend(number * 10 for number in (1, 2))\n"
             ">>> found.array\n"
             "array([ 0,  1,  2, 10, 20], dtype=int32)");

PyDoc_STRVAR(resize_doc, "resize($self, length, /)\n"
                         "--\n"
                         "\n"
                         "Set the number of items. New items are zero.\n"
                         "\n"
                         "Parameters\n"
                         "----------\n"
                         "length : int\n"
                         "    New number of items. The capacity never becomes smaller.\n"
                         "\n"
                         "Raises\n"
                         "------\n"
                         "BufferError\n"
                         "    The length becomes smaller, and views exist.\n"
                         "MemoryError\n"
                         "    Memory, a limit or the reserve is exhausted.\n"
                         "\n"
                         "Examples\n"
                         "--------\n"
                         ">>> import memrt\n"
                         ">>> found = memrt.types.Buffer()\n"
                         ">>> found.extend([97, 98, 99])\n"
                         ">>> found.resize(2)\n"
                         ">>> found.resize(4)\n"
                         ">>> bytes(found)\n"
                         "b'ab\\x00\\x00'");

PyDoc_STRVAR(shrink_doc, "shrink_to_fit($self, /)\n"
                         "--\n"
                         "\n"
                         "Return the memory behind the last item to the system.\n"
                         "\n"
                         "Raises\n"
                         "------\n"
                         "BufferError\n"
                         "    Views exist.\n"
                         "\n"
                         "Examples\n"
                         "--------\n"
                         ">>> import memrt\n"
                         ">>> found = memrt.types.Buffer(1_000_000, dtype=\"f8\")\n"
                         ">>> found.extend([1.0, 2.0])\n"
                         ">>> found.shrink_to_fit()\n"
                         ">>> found\n"
                         "<memrt.types.Buffer float64, 2 items, capacity 2>");

static PyMethodDef methods[] = {
    {"append", (PyCFunction)(void (*)(void))buffer_append, METH_O, append_doc},
    {"extend", (PyCFunction)(void (*)(void))buffer_extend, METH_O, extend_doc},
    {"resize", (PyCFunction)(void (*)(void))buffer_resize, METH_O, resize_doc},
    {"shrink_to_fit", (PyCFunction)(void (*)(void))buffer_shrink_to_fit, METH_NOARGS, shrink_doc},
    {NULL, NULL, 0, NULL},
};

#define ATTRIBUTE(NAME, DOC) {#NAME, (getter)(void (*)(void))get_##NAME, NULL, DOC, NULL}

static PyGetSetDef attributes[] = {
    ATTRIBUTE(array, "Writable array over the present items. Stays valid while the buffer grows, "
                     "and after the end of the buffer."),
    ATTRIBUTE(capacity, "Items for which memory is accessible and counted."),
    ATTRIBUTE(dtype, "Data type of the items."),
    ATTRIBUTE(nbytes, "Bytes of the items."),
    ATTRIBUTE(reserve, "Bytes of reserved addresses: the maximum size."),
    {NULL, NULL, NULL, NULL, NULL},
};

PyDoc_STRVAR(
    type_doc,
    "Buffer(capacity=0, *, dtype='u1', reserve='8 GiB', policy=None)\n"
    "--\n"
    "\n"
    "Collect items of one dtype in memory that grows and never moves.\n"
    "\n"
    "Parameters\n"
    "----------\n"
    "capacity : int, default 0\n"
    "    Items to allocate memory for at once.\n"
    "dtype : dtype_like, default uint8\n"
    "    Data type of the items.\n"
    "reserve : int or str, default '8 GiB'\n"
    "    Maximum size in bytes, as a number or a text. Only addresses are reserved.\n"
    "policy : Policy, optional\n"
    "    Policy that accounts for the memory. None: the policy in force in this context, else\n"
    "    the default policy.\n"
    "\n"
    "Raises\n"
    "------\n"
    "ValueError\n"
    "    The capacity is negative or exceeds the reserve, or the text is no size.\n"
    "TypeError\n"
    "    The dtype holds Python objects or has a shape.\n"
    "OutOfMemoryError\n"
    "    Memory, addresses or a limit are exhausted.\n"
    "\n"
    "Notes\n"
    "-----\n"
    "A growth adds half of the capacity, or exactly the needed bytes where a limit leaves no\n"
    "room for more. A failed growth leaves the buffer unchanged. The capacity counts as live\n"
    "in the policy and scope of the creation. The system gives memory to a page at the first\n"
    "write. The memory comes from the system: the allocator of the policy is not called.\n"
    "\n"
    "Ownership: arrays and buffers over the items keep the memory, not the object. While such\n"
    "views exist, the buffer grows but does not shrink.\n"
    "\n"
    "Threads: several threads may use a buffer at once. A forked child has a copy.\n"
    "\n"
    "Examples\n"
    "--------\n"
    ">>> import memrt\n"
    ">>> import numpy as np\n"
    ">>> found = memrt.types.Buffer(dtype=\"f8\")\n"
    ">>> found.append(0.5)\n"
    ">>> first = found.array\n"
    ">>> found.extend(np.ones(1_000_000))\n"
    ">>> first[0] = 2.5  # the same memory as before the growth\n"
    ">>> len(found), float(found.array.sum())\n"
    "(1000001, 1000002.5)");

static PyType_Slot slots[] = {
    {Py_tp_doc, (void *)type_doc},
    {Py_tp_new, buffer_new},
    {Py_tp_dealloc, buffer_dealloc},
    {Py_tp_repr, buffer_repr},
    {Py_tp_methods, methods},
    {Py_tp_getset, attributes},
    {Py_sq_length, buffer_length},
    {Py_bf_getbuffer, buffer_getbuffer},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "memrt.types.Buffer",
    .basicsize = sizeof(memrt_buffer_object_t),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};

int memrt__buffer_setup(PyObject *module)
{
    PyObject *type = PyType_FromSpec(&spec);
    int result = type == NULL ? -1 : PyModule_AddObjectRef(module, "Buffer", type);
    Py_XDECREF(type);
    return result;
}
