#include "support/errors.h"

#include <stdarg.h>
#include <stdio.h>

#include "support/oom_error.h"

#define OOM_SUBJECT_MAX 256 /* bytes of the subject in the text of an OutOfMemoryError */

/// Return the class of the exception for a failed call of the function table.
static PyObject *get_exception_type(memrt_status_t status)
{
    switch (status) {
    case MEMRT_ENOMEM:
        return PyExc_MemoryError;
    case MEMRT_EINVAL:
        return PyExc_ValueError;
    case MEMRT_ENOENT:
        return PyExc_LookupError;
    case MEMRT_EBUSY:
        return PyExc_BufferError;
    case MEMRT_ENOTSUP:
        return PyExc_TypeError;
    case MEMRT_EDEVICE:
        return memrt__binding.cuda_error;
    case MEMRT_EIO:
        return PyExc_OSError;
    case MEMRT_ELIMIT:
    case MEMRT_OK:
        break;
    }
    return PyExc_RuntimeError;
}

PyObject *memrt__raise(memrt_status_t status, const char *what, ...)
{
    va_list arguments;
    va_start(arguments, what);
    if (status == MEMRT_ENOMEM) {
        char text[OOM_SUBJECT_MAX];
        vsnprintf(text, sizeof(text), what, arguments);
        va_end(arguments);
        return memrt__raise_out_of_memory(NULL, 0, text);
    }
    PyObject *subject = PyUnicode_FromFormatV(what, arguments);
    va_end(arguments);
    if (subject == NULL) {
        return NULL;
    }
    PyErr_Format(get_exception_type(status), "%U: %s", subject, memrt__api()->status_text(status));
    Py_DECREF(subject);
    return NULL;
}

PyObject *memrt__raise_why(memrt_status_t status, const char *why)
{
    /* The text may be cut within a character. */
    PyObject *text = PyUnicode_DecodeUTF8(why, (Py_ssize_t)strlen(why), "replace");
    if (text != NULL) {
        PyErr_SetObject(get_exception_type(status), text);
        Py_DECREF(text);
    }
    return NULL;
}

PyObject *memrt__raise_refusal(memrt_status_t status, const char *what, const char *why)
{
    return status == MEMRT_ENOMEM ? memrt__raise(status, "%s", what)
                                  : PyErr_Format(PyExc_BufferError, "%s: %s", what, why);
}

int memrt__need_cuda(void)
{
    char why[MEMRT__WHY_MAX];
    if (memrt__api()->cuda_why_not(why, sizeof(why)) == 0) {
        return 0;
    }
    (void)memrt__raise_why(MEMRT_EDEVICE, why);
    return -1;
}

/// Raise MemoryError with the bytes in use and the limit of a CUDA memory kind. A call that
/// requested no memory shows the figures of device memory.
static PyObject *raise_cuda_shortage(uint32_t memory, size_t size)
{
    memrt_cuda_stats_t stats = {.struct_size = sizeof(stats)};
    memory = memory == MEMRT_MEMORY_HOST ? MEMRT_MEMORY_DEVICE : memory;
    (void)!memrt__api()->cuda_stats((memrt_memory_t)memory, &stats); /* on failure: zeros */
    return PyErr_Format(
        PyExc_MemoryError,
        "no CUDA memory for %zu bytes: %llu bytes are in use, and the limit is %llu bytes", size,
        (unsigned long long)stats.live, (unsigned long long)stats.limit);
}

PyObject *memrt__raise_cuda(memrt_status_t status, uint32_t memory, size_t size)
{
    char text[MEMRT__WHY_MAX];
    switch (status) {
    case MEMRT_ENOMEM:
        return raise_cuda_shortage(memory, size);
    case MEMRT_EDEVICE:
        (void)memrt__api()->cuda_error(text, sizeof(text));
        return memrt__raise_why(status, text);
    case MEMRT_ENOTSUP:
        return memrt__need_cuda() < 0 ? NULL
                                      : memrt__raise(status, "the buffer is not in CUDA memory");
    default:
        return memrt__raise(status, "cannot complete the CUDA request");
    }
}

PyDoc_STRVAR(
    cuda_error_doc,
    "Exception for a failed call of the CUDA driver, or for a missing driver.\n"
    "\n"
    "The text names the call and the error, or the reason. If the driver is out of memory,\n"
    "memrt raises MemoryError instead.\n"
    "\n"
    "Examples\n"
    "--------\n"
    ">>> import memrt\n"
    ">>> issubclass(memrt.cuda.CudaError, RuntimeError)\n"
    "True");

int memrt__errors_setup(PyObject *module)
{
    /* A second module object, after a repeated import, gets the same class. */
    if (memrt__binding.cuda_error == NULL) {
        memrt__binding.cuda_error = PyErr_NewExceptionWithDoc(
            "memrt.cuda.CudaError", cuda_error_doc, PyExc_RuntimeError, NULL);
    }
    return memrt__binding.cuda_error == NULL
               ? -1
               : PyModule_AddObjectRef(module, "CudaError", memrt__binding.cuda_error);
}

#if PY_VERSION_HEX >= 0x030C0000 /* one object: CPython normalizes exceptions at once */

void memrt__pending_save(memrt_pending_t *pending)
{
    pending->type = NULL;
    pending->traceback = NULL;
    pending->value = PyErr_GetRaisedException();
}

void memrt__pending_restore(memrt_pending_t *pending)
{
    if (pending->value != NULL) {
        PyErr_SetRaisedException(pending->value);
    }
}

PyObject *memrt__pending_exception(void)
{
    PyObject *exception = PyErr_GetRaisedException();
    PyErr_SetRaisedException(Py_XNewRef(exception));
    return exception;
}

#else /* three objects */

void memrt__pending_save(memrt_pending_t *pending)
{
    PyErr_Fetch(&pending->type, &pending->value, &pending->traceback);
}

void memrt__pending_restore(memrt_pending_t *pending)
{
    if (pending->type != NULL) {
        PyErr_Restore(pending->type, pending->value, pending->traceback);
    }
}

PyObject *memrt__pending_exception(void)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    if (traceback != NULL) {
        (void)PyException_SetTraceback(value, traceback); /* cannot fail for a traceback */
    }
    PyObject *exception = Py_XNewRef(value);
    PyErr_Restore(type, value, traceback);
    return exception;
}

#endif
