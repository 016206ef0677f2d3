#include "recording.h"

#include <errno.h>

#include "errors.h"

static PyObject *raise_start(memrt_status_t status, int error, PyObject *path)
{
    if (status == MEMRT_EBUSY) {
        PyErr_SetString(PyExc_RuntimeError,
                        "a trace is recorded already: a process has one at a time");
        return NULL;
    }
    if (status != MEMRT_EIO) {
        return memrt__raise(status, "cannot start a trace");
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
    PyObject *result = status == MEMRT_OK ? Py_NewRef(Py_None)
                                          : raise_start(status, error, PyTuple_GET_ITEM(args, 0));
    Py_DECREF(path);
    return result;
}

static PyObject *stats_tuple(const memrt_trace_stats_t *stats)
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
    return stats_tuple(&stats);
}

static PyObject *trace_stats(PyObject *module, PyObject *unused)
{
    memrt_trace_stats_t stats = {.struct_size = sizeof(stats)};
    memrt_status_t status;
    (void)module;
    (void)unused;
    Py_BEGIN_ALLOW_THREADS;
    status = memrt__api()->trace_stats(&stats);
    Py_END_ALLOW_THREADS;
    return status != MEMRT_OK ? memrt__raise(status, "cannot read how far the trace is")
                              : stats_tuple(&stats);
}

static PyObject *trace_mark(PyObject *module, PyObject *name)
{
    (void)module;
    const char *text = PyUnicode_AsUTF8(name);
    if (text == NULL) {
        return NULL;
    }
    memrt_status_t status = memrt__api()->trace_mark(text);
    if (status == MEMRT_EINVAL) {
        PyErr_SetString(PyExc_ValueError, "the name of a mark has 1 to 1023 bytes");
        return NULL;
    }
    if (status != MEMRT_OK) {
        return memrt__raise(status, "cannot set a mark");
    }
    Py_RETURN_NONE;
}

PyMethodDef memrt__recording_methods[] = {
    {"trace_start", trace_start, METH_VARARGS,
     "trace_start(path, frames, native, last, replace)\n\nRecord events into a file."},
    {"trace_stop", trace_stop, METH_NOARGS,
     "trace_stop() -> tuple | None\n\nEnd the trace; None: none is recorded."},
    {"trace_stats", trace_stats, METH_NOARGS,
     "trace_stats() -> tuple\n\nHow far the trace is, or how far the last one came: whether it is\n"
     "on, events, lost, overwritten, bytes, errno."},
    {"trace_mark", trace_mark, METH_O, "trace_mark(name)\n\nPut a mark into the trace."},
    {NULL, NULL, 0, NULL},
};
