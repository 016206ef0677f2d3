#include "allocators/block_result.h"

#include "support/ndarray.h"

/// Return whether a result is a number: an int of Python or NumPy. Arrays and scalars of NumPy also
/// export buffers, so the type decides.
static int is_number(PyObject *result)
{
    return PyLong_Check(result) || PyArray_IsScalar(result, Integer);
}

static int read_address(PyObject *result, size_t nbytes, int has_free, uintptr_t *out)
{
    if (!has_free) {
        PyErr_SetString(PyExc_TypeError, "result of allocate must be a buffer, got an address: "
                                         "pass a free function for addresses");
        return -1;
    }
    PyObject *number = PyNumber_Index(result);
    size_t address = number != NULL ? PyLong_AsSize_t(number) : 0;
    if (PyErr_Occurred() != NULL || address == 0 || address > UINTPTR_MAX - nbytes) {
        if (number != NULL) {
            PyErr_Format(PyExc_ValueError,
                         "result of allocate must be the address of %zu bytes, got %R", nbytes,
                         number);
        }
        Py_XDECREF(number);
        return -1;
    }
    Py_DECREF(number);
    *out = address;
    return 0;
}

static int check_buffer(const Py_buffer *view, size_t nbytes)
{
    if (view->readonly) {
        PyErr_SetString(PyExc_ValueError,
                        "result of allocate must be a writable buffer, got a read-only buffer");
        return -1;
    }
    if (!PyBuffer_IsContiguous(view, 'C')) {
        PyErr_SetString(PyExc_ValueError,
                        "result of allocate must be a contiguous buffer, got one with gaps");
        return -1;
    }
    if ((size_t)view->len < nbytes) {
        PyErr_Format(PyExc_ValueError,
                     "result of allocate must be a buffer of at least %zu bytes, got %zd bytes",
                     nbytes, view->len);
        return -1;
    }
    return 0;
}

static int read_buffer(PyObject *result, size_t nbytes, memrt_block_result_t *out)
{
    PyObject *buffer = PyMemoryView_FromObject(result);
    if (buffer == NULL) {
        return -1;
    }
    const Py_buffer *view = PyMemoryView_GET_BUFFER(buffer);
    if (check_buffer(view, nbytes) < 0) {
        Py_DECREF(buffer);
        return -1;
    }
    *out = (memrt_block_result_t){(uintptr_t)view->buf, buffer};
    return 0;
}

int memrt__block_result_read(PyObject *result, size_t nbytes, int has_free,
                             memrt_block_result_t *out)
{
    if (is_number(result)) {
        out->buffer = NULL;
        return read_address(result, nbytes, has_free, &out->address);
    }
    if (PyObject_CheckBuffer(result)) {
        return read_buffer(result, nbytes, out);
    }
    PyErr_Format(PyExc_TypeError,
                 "result of allocate must be a buffer or an address, got %.200s: raise MemoryError "
                 "to refuse a request",
                 Py_TYPE(result)->tp_name);
    return -1;
}

int memrt__block_result_check_alignment(const memrt_block_result_t *block, size_t align)
{
    if ((block->address & (align - 1)) == 0) {
        return 0;
    }
    PyErr_Format(PyExc_ValueError,
                 "result of allocate must be aligned to %zu bytes, got address %p", align,
                 (void *)block->address);
    return -1;
}
