#include "buffer/buffer_creation.h"

#include "core/current_policy.h"
#include "core/mem_handler.h"
#include "core/owner.h"
#include "support/arguments.h"
#include "support/oom_error.h"

#include <memrt/import.h>

#define DEFAULT_RESERVE ((size_t)8 << 30)

static int read_dtype(PyObject *dtype, PyArray_Descr **out)
{
    PyArray_Descr *descr = NULL;
    if (dtype == NULL) {
        descr = PyArray_DescrFromType(NPY_UINT8);
    } else if (!PyArray_DescrConverter(dtype, &descr)) {
        return -1;
    }
    if (memrt_descr_has_references(descr) || PyDataType_ELSIZE(descr) == 0 ||
        PyDataType_HASSUBARRAY(descr)) {
        PyErr_Format(PyExc_TypeError,
                     "dtype must have a size, and neither Python objects nor a shape, got %R",
                     descr);
        Py_DECREF(descr);
        return -1;
    }
    *out = descr;
    return 0;
}

/// Read a reserve: bytes, or a text like "8 GiB". -1 with an exception.
static int read_reserve(PyObject *object, size_t *out)
{
    *out = DEFAULT_RESERVE;
    if (object == NULL) {
        return 0;
    }
    PyObject *module = PyImport_ImportModule("memrt._policy.limit_amount");
    PyObject *bytes = module == NULL
                          ? NULL
                          : PyObject_CallMethod(module, "parse_amount", "Os", object, "reserve");
    int result = bytes != NULL && memrt__size_argument(bytes, out) ? 0 : -1;
    Py_XDECREF(bytes);
    Py_XDECREF(module);
    return result;
}

static int allocate_data(memrt_buffer_object_t *self, size_t size, memrt_policy_t *policy)
{
    const memrt_api_t *api = memrt__api();
    memrt_new_options_t options = {.struct_size = sizeof(options), .policy = policy};
    memrt__owner_drain();
    memrt_status_t status = api->resizable_new_reserved(size, self->reserve, &options, &self->mi);
    if (status == MEMRT_ENOMEM) {
        memrt__raise_out_of_memory(policy, size, NULL);
        return -1;
    }
    if (status != MEMRT_OK) {
        PyErr_Format(PyExc_ValueError,
                     "reserve must be at least 1 byte and hold the capacity of %zu bytes, got %zu "
                     "bytes",
                     size, self->reserve);
        return -1;
    }
    self->data = api->get_data(self->mi);
    return memrt_tracemalloc_register(api, self->mi);
}

int memrt__buffer_fill(memrt_buffer_object_t *self, size_t capacity, PyObject *dtype,
                       PyObject *reserve, PyObject *policy)
{
    size_t size;
    if (read_dtype(dtype, &self->descr) < 0 || read_reserve(reserve, &self->reserve) < 0) {
        return -1;
    }
    self->itemsize = (size_t)PyDataType_ELSIZE(self->descr);
    if (__builtin_mul_overflow(capacity, self->itemsize, &size)) {
        PyErr_NoMemory();
        return -1;
    }
    PyObject *handler = memrt__current_handler_for(policy);
    if (handler == NULL) {
        return -1;
    }
    int result = allocate_data(self, size, memrt__handler_policy(handler));
    Py_DECREF(handler);
    return result;
}
