#include "access/cold.h"

#include <memrt/allocator/file.h>

#include "support/byte_ranges.h"

/// Advise for the whole pages inside of an array or memoryview, gaps of a view included. Pages that
/// the array shares with other memory are left out.
static PyObject *pages_cold(PyObject *module, PyObject *args)
{
    PyObject *object;
    int pageout;
    memrt_extent_t extent;
    (void)module;
    if (!PyArg_ParseTuple(args, "Op:pages_cold", &object, &pageout)) {
        return NULL;
    }
    if (!memrt__byte_ranges_of(object, &extent)) {
        return PyErr_Format(PyExc_TypeError,
                            "array must be a numpy.ndarray or a memoryview, got %.100s",
                            Py_TYPE(object)->tp_name);
    }
    size_t size = extent.run == 0 ? 0 : memrt__byte_ranges_span(&extent), bytes;
    memrt_status_t status;
    Py_BEGIN_ALLOW_THREADS;
    status = memrt__api()->pages_cold((const void *)extent.start, size, pageout, &bytes);
    Py_END_ALLOW_THREADS;
    if (status != MEMRT_OK) {
        PyErr_SetString(PyExc_OSError, "array must not be locked in memory, and pages need Linux "
                                       "5.4 to be cold");
        return NULL;
    }
    return PyLong_FromSize_t(bytes);
}

PyMethodDef memrt__cold_methods[] = {
    {"pages_cold", pages_cold, METH_VARARGS,
     "pages_cold(array, pageout, /) -> bytes\n\n"
     "Advise the system that the pages of an array are not needed soon. Returns their bytes."},
    {NULL, NULL, 0, NULL},
};
