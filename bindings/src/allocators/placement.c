#include "allocators/placement.h"

#include <memrt/allocator/placement.h>

#include "allocators/allocator_capsule.h"
#include "support/byte_ranges.h"
#include "support/errors.h"

static PyObject *allocator_placed(PyObject *module, PyObject *args)
{
    memrt_placement_options_t options = {.struct_size = sizeof(options)};
    memrt_allocator_t made;
    char why[240] = "";
    int lock;
    unsigned prefault;
    (void)module;
    if (!PyArg_ParseTuple(args, "zziI:allocator_placed", &options.pages, &options.node, &lock,
                          &prefault)) {
        return NULL;
    }
    options.lock = (uint32_t)lock;
    options.prefault = prefault;
    memrt_status_t status = memrt__api()->allocator_placed(&options, &made, why, sizeof(why));
    if (status == MEMRT_OK) {
        return memrt__allocator_as_capsule(&made, 0);
    }
    return why[0] != '\0' ? memrt__raise_why(status, why)
                          : memrt__raise(status, "cannot create a placed allocator");
}

/// Return (node, bytes) for each node with pages, or None where the system knows no nodes.
static PyObject *build_nodes(const memrt_placement_t *placement)
{
    if (placement->by_node[0] == MEMRT_PLACEMENT_UNKNOWN) {
        Py_RETURN_NONE;
    }
    PyObject *list = PyList_New(0);
    for (unsigned node = 0; list != NULL && node < MEMRT_NODES; node++) {
        unsigned long long bytes = placement->by_node[node];
        PyObject *pair = bytes == 0 ? NULL : Py_BuildValue("(IK)", node, bytes);
        if (bytes != 0 && (pair == NULL || PyList_Append(list, pair) < 0)) {
            Py_CLEAR(list);
        }
        Py_XDECREF(pair);
    }
    PyObject *tuple = list != NULL ? PyList_AsTuple(list) : NULL;
    Py_XDECREF(list);
    return tuple;
}

/// Return the requests of a buffer's policy, or None for other memory.
static PyObject *build_asked(const void *address)
{
    const memrt_api_t *api = memrt__api();
    memrt_location_t found = {.struct_size = sizeof(found)};
    memrt_placement_asked_t asked = {.struct_size = sizeof(asked)};
    memrt_policy_t *policy =
        api->locate(address, &found) == MEMRT_OK ? api->policy_at(found.policy) : NULL;
    if (policy == NULL) {
        Py_RETURN_NONE;
    }
    PyObject *result = Py_None;
    if (api->policy_placement(policy, &asked) == MEMRT_OK) {
        result = Py_BuildValue("(zzIIiiiiii)", asked.pages, asked.node, asked.lock, asked.prefault,
                               asked.pool_1g_refused, asked.pool_2m_refused, asked.thp_refused,
                               asked.node_refused, asked.home_refused, asked.lock_refused);
    } else {
        Py_INCREF(result);
    }
    api->policy_release(policy);
    return result;
}

static PyObject *build_placement(const memrt_placement_t *placement, const void *address)
{
    int knows_huge = placement->huge != MEMRT_PLACEMENT_UNKNOWN;
    PyObject *huge = knows_huge ? PyLong_FromUnsignedLongLong(placement->huge) : Py_NewRef(Py_None);
    PyObject *nodes = huge != NULL ? build_nodes(placement) : NULL;
    PyObject *asked = nodes != NULL ? build_asked(address) : NULL;
    PyObject *result = asked != NULL
                           ? Py_BuildValue("(KKOKKOO)", (unsigned long long)placement->bytes,
                                           (unsigned long long)placement->resident, huge,
                                           (unsigned long long)placement->locked,
                                           (unsigned long long)placement->swapped, nodes, asked)
                           : NULL;
    Py_XDECREF(huge);
    Py_XDECREF(nodes);
    Py_XDECREF(asked);
    return result;
}

static PyObject *placement_read(PyObject *module, PyObject *object)
{
    memrt_extent_t extent;
    memrt_placement_t placement = {.struct_size = sizeof(placement)};
    (void)module;
    if (!memrt__byte_ranges_of(object, &extent)) {
        PyErr_Format(PyExc_TypeError, "array must be a numpy.ndarray or a memoryview, got %.100s",
                     Py_TYPE(object)->tp_name);
        return NULL;
    }
    const void *start = (const void *)extent.start;
    size_t size = extent.run != 0 ? memrt__byte_ranges_span(&extent) : 0;
    memrt_status_t status;
    Py_BEGIN_ALLOW_THREADS;
    status = memrt__api()->placement_read(start, size, &placement);
    Py_END_ALLOW_THREADS;
    if (status != MEMRT_OK) { /* the range exists */
        PyErr_SetString(PyExc_OSError,
                        "/proc/self/pagemap must be readable to find the place of memory");
        return NULL;
    }
    return build_placement(&placement, start);
}

PyMethodDef memrt__placement_methods[] = {
    {"allocator_placed", allocator_placed, METH_VARARGS,
     "allocator_placed(pages, node, lock, prefault, /) -> capsule\n\n"
     "Create a placed allocator. pages and node are texts or None, lock is a memrt_lock_t."},
    {"placement_read", placement_read, METH_O,
     "placement_read(array, /) -> (bytes, resident, huge, locked, swapped, nodes, asked)"
     "\n\nReturn the place of memory. huge and nodes are None where the system does not know "
     "them.\n"
     "asked: (pages, node, lock, prefault, six error numbers) of the buffer's policy, or None."},
    {NULL, NULL, 0, NULL},
};
