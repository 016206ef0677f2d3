#include "allocators/file.h"

#include <memrt/allocator/file.h>

#include "allocators/allocator_capsule.h"
#include "support/errors.h"

static PyObject *allocator_file(PyObject *module, PyObject *folder)
{
    memrt_allocator_t made;
    PyObject *path = NULL; /* bytes: names need not be UTF-8 */
    (void)module;
    if (folder != Py_None && !PyUnicode_FSConverter(folder, &path)) {
        return NULL;
    }
    const char *name = path == NULL ? NULL : PyBytes_AS_STRING(path);
    memrt_status_t status;
    Py_BEGIN_ALLOW_THREADS;
    status = memrt__api()->allocator_file(name, &made);
    Py_END_ALLOW_THREADS;
    Py_XDECREF(path);
    return status == MEMRT_OK
               ? memrt__allocator_as_capsule(&made, 0)
               : memrt__raise(status, "file must be a folder in which files can be made, got %R",
                              folder);
}

PyMethodDef memrt__file_methods[] = {
    {"allocator_file", allocator_file, METH_O,
     "allocator_file(folder, /) -> capsule\n\n"
     "Create an allocator of files in a folder, or of files in memory for None."},
    {NULL, NULL, 0, NULL},
};
