#include "observe/event_trace.h"

#include <errno.h>
#include <stdbool.h>

#include "support/errors.h"

static PyObject *raise_start_error(memrt_status_t status, int error, PyObject *path)
{
    if (status == MEMRT_EBUSY) {
        PyErr_SetString(
            PyExc_RuntimeError,
            "an event trace is already running in the process: stop the event trace first");
        return NULL;
    }
    if (status != MEMRT_EIO) {
        return memrt__raise(status, "cannot start an event trace");
    }
    errno = error;
    return PyErr_SetFromErrnoWithFilenameObject(PyExc_OSError, path);
}

static PyObject *trace_start(PyObject *module, PyObject *args)
{
    memrt_trace_options_t options = {.struct_size = sizeof(options)};
    PyObject *path;
    unsigned long long last;
    int error = 0;
    (void)module;
    if (!PyArg_ParseTuple(args, "O&IIKp:trace_start", PyUnicode_FSConverter, &path, &options.frames,
                          &options.native, &last, &options.replace)) {
        return NULL;
    }
    options.path = PyBytes_AS_STRING(path);
    options.last = last;
    memrt_status_t status;
    Py_BEGIN_ALLOW_THREADS;
    status = memrt__api()->trace_start(&options, &error);
    Py_END_ALLOW_THREADS;
    PyObject *result = status == MEMRT_OK
                           ? Py_NewRef(Py_None)
                           : raise_start_error(status, error, PyTuple_GET_ITEM(args, 0));
    Py_DECREF(path);
    return result;
}

static PyObject *build_stats_tuple(const memrt_trace_stats_t *stats)
{
    return Py_BuildValue("(NKKKKi)", PyBool_FromLong(stats->on), (unsigned long long)stats->events,
                         (unsigned long long)stats->lost, (unsigned long long)stats->overwritten,
                         (unsigned long long)stats->bytes, stats->error);
}

static PyObject *trace_stop(PyObject *module, PyObject *unused)
{
    memrt_trace_stats_t stats = {.struct_size = sizeof(stats)};
    memrt_status_t status;
    (void)module;
    (void)unused;
    Py_BEGIN_ALLOW_THREADS;
    status = memrt__api()->trace_stop(&stats);
    Py_END_ALLOW_THREADS;
    if (status != MEMRT_OK) {
        Py_RETURN_NONE;
    }
    return build_stats_tuple(&stats);
}

static PyObject *get_trace_stats(PyObject *module, PyObject *unused)
{
    memrt_trace_stats_t stats = {.struct_size = sizeof(stats)};
    memrt_status_t status;
    (void)module;
    (void)unused;
    Py_BEGIN_ALLOW_THREADS;
    status = memrt__api()->trace_stats(&stats);
    Py_END_ALLOW_THREADS;
    /* GCOV_EXCL_BR_START: the struct has the size that libmemrt wants */
    return status != MEMRT_OK ? memrt__raise(status, "cannot read the state of the event trace")
                              : build_stats_tuple(&stats);
    /* GCOV_EXCL_BR_STOP */
}

static PyObject *trace_mark(PyObject *module, PyObject *name)
{
    (void)module;
    if (!PyUnicode_Check(name)) {
        return PyErr_Format(PyExc_TypeError, "the name of a mark must be a str, got %.200s",
                            Py_TYPE(name)->tp_name);
    }
    Py_ssize_t length;
    const char *text = PyUnicode_AsUTF8AndSize(name, &length);
    if (text == NULL) {
        return NULL;
    }
    bool is_text = memchr(text, 0, (size_t)length) == NULL;
    memrt_status_t status = is_text ? memrt__api()->trace_mark(text) : MEMRT_EINVAL;
    if (status == MEMRT_EINVAL) {
        return PyErr_Format(PyExc_ValueError,
                            "the name of a mark must have 1 to 1023 bytes in UTF-8 and no zero "
                            "byte, got %.100R",
                            name);
    }
    if (status != MEMRT_OK) {
        return memrt__raise(status, "cannot set a mark");
    }
    Py_RETURN_NONE;
}

PyMethodDef memrt__recording_methods[] = {
    {"trace_start", trace_start, METH_VARARGS,
     "trace_start(path, frames, native, last, replace)\n\nStart an event trace into a file."},
    {"trace_stop", trace_stop, METH_NOARGS,
     "trace_stop() -> tuple | None\n\n"
     "Stop the event trace and return the state; None: no event trace is running."},
    {"trace_stats", get_trace_stats, METH_NOARGS,
     "trace_stats() -> tuple\n\n"
     "Return the state of the event trace, or the final state of the last event trace: whether\n"
     "the event trace is running, events, lost, overwritten, bytes, errno."},
    {"trace_mark", trace_mark, METH_O, "trace_mark(name)\n\nWrite a mark into the event trace."},
    {NULL, NULL, 0, NULL},
};
