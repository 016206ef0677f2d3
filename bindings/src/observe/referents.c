#include "observe/referents.h"

#include "core/meminfo_object.h"
#include "core/owner.h"
#include "observe/frame_locals.h"
#include "support/ndarray.h"

static int visit_elements(PyArrayObject *array, visitproc visit, void *arg)
{
    PyObject **elements = PyArray_DATA(array);
    npy_intp count = PyArray_SIZE(array);
    for (npy_intp i = 0; i < count; i++) {
        Py_VISIT(elements[i]);
    }
    return 0;
}

static int visit_array(PyArrayObject *array, visitproc visit, void *arg)
{
    Py_VISIT(PyArray_BASE(array));
    /* The elements of an array that owns its data are contiguous. */
    if (PyArray_TYPE(array) == NPY_OBJECT && PyArray_CHKFLAGS(array, NPY_ARRAY_OWNDATA)) {
        return visit_elements(array, visit, arg);
    }
    return 0;
}

int memrt__referents_visit(PyObject *object, memrt_node_kind_t kind, visitproc visit, void *arg)
{
    if (kind == MEMRT_NODE_OWN) {
        return 0;
    }
    if (kind == MEMRT_NODE_OWNER) {
        return memrt__owner_visit((memrt_owner_t *)object, visit, arg);
    }
    if (kind == MEMRT_NODE_FRAME) {
        return memrt__frame_visit((PyFrameObject *)object, visit, arg);
    }
    if (memrt__meminfo_check(object)) {
        return 0; /* the owner of the memory is a separate node */
    }
    if (PyArray_Check(object)) {
        int result = visit_array((PyArrayObject *)object, visit, arg);
        if (result != 0) {
            return result;
        }
    }
    return memrt__referents_can_traverse(object) ? memrt__object_traverse(object, visit, arg) : 0;
}
