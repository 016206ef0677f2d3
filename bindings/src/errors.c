#include "errors.h"

#include <stdarg.h>
#include <stdio.h>

#include "shortage.h"

static PyObject *exception_of(memrt_status_t status)
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
        char text[256];
        vsnprintf(text, sizeof(text), what, arguments);
        va_end(arguments);
        return memrt__raise_shortage(NULL, 0, text);
    }
    PyObject *subject = PyUnicode_FromFormatV(what, arguments);
    va_end(arguments);
    if (subject == NULL) {
        return NULL;
    }
    PyErr_Format(exception_of(status), "%U: %s", subject, memrt__api()->status_text(status));
    Py_DECREF(subject);
    return NULL;
}

PyObject *memrt__raise_why(memrt_status_t status, const char *why)
{
    PyObject *text = PyUnicode_DecodeUTF8(why, (Py_ssize_t)strlen(why), "replace"); /* it is cut */
    if (text != NULL) {
        PyErr_SetObject(exception_of(status), text);
        Py_DECREF(text);
    }
    return NULL;
}

#if PY_VERSION_HEX >= 0x030C0000

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

#else

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

#endif
