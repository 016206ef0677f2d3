#include "access/cold.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "support/byte_ranges.h"

#ifndef MADV_COLD
#define MADV_COLD 20 /* headers before Linux 5.4 */
#define MADV_PAGEOUT 21
#endif

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
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t start = (extent.start + page - 1) / page * page;
    uintptr_t end = extent.run == 0 ? 0 : extent.start + memrt__byte_ranges_span(&extent);
    end = end / page * page;
    if (extent.run == 0 || start >= end) {
        return PyLong_FromLong(0);
    }
    int status;
    Py_BEGIN_ALLOW_THREADS;
    status = madvise((void *)start, end - start, pageout ? MADV_PAGEOUT : MADV_COLD);
    Py_END_ALLOW_THREADS;
    if (status != 0) { /* GCOV_EXCL_BR_LINE: kernels before 5.4, and locked memory */
        return PyErr_SetFromErrno(PyExc_OSError);
    }
    return PyLong_FromSize_t(end - start);
}

PyMethodDef memrt__cold_methods[] = {
    {"pages_cold", pages_cold, METH_VARARGS,
     "pages_cold(array, pageout, /) -> bytes\n\n"
     "Advise the system that the pages of an array are not needed soon. Returns their bytes."},
    {NULL, NULL, 0, NULL},
};
