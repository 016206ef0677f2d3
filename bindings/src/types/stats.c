#include "types/stats.h"

#include "core/current_policy.h"
#include "core/mem_handler.h"
#include "core/owner.h"
#include "support/errors.h"

/// Convert a policy argument. `*handler` gets a new reference to the handler, which keeps `*policy`
/// alive. Both are NULL if the argument is None for the whole process. -1 with an exception.
static int read_account_argument(PyObject *object, PyObject **handler, memrt_policy_t **policy)
{
    *handler = NULL;
    *policy = NULL;
    if (object == Py_None) {
        return 0;
    }
    *handler = memrt__current_handler_for(object);
    *policy = *handler != NULL ? memrt__handler_policy(*handler) : NULL;
    return *handler != NULL ? 0 : -1;
}

static PyObject *create_tuple(const uint64_t *numbers, Py_ssize_t count)
{
    PyObject *tuple = PyTuple_New(count);
    for (Py_ssize_t i = 0; tuple != NULL && i < count; i++) {
        PyObject *number = PyLong_FromUnsignedLongLong(numbers[i]);
        if (number == NULL) {
            Py_CLEAR(tuple);
        } else {
            PyTuple_SET_ITEM(tuple, i, number);
        }
    }
    return tuple;
}

PyObject *memrt__stats_tuple(const memrt_stats_t *stats)
{
    Py_ssize_t count = (Py_ssize_t)((sizeof(*stats) - offsetof(memrt_stats_t, alloc)) / 8);
    return create_tuple(&stats->alloc, count);
}

PyObject *memrt__sizes_tuple(const memrt_sizes_t *sizes)
{
    PyObject *allocated = create_tuple(sizes->allocated, MEMRT_SIZE_BINS);
    PyObject *live = allocated == NULL ? NULL : create_tuple(sizes->live, MEMRT_SIZE_BINS);
    PyObject *both = live == NULL ? NULL : PyTuple_Pack(2, allocated, live);
    Py_XDECREF(allocated);
    Py_XDECREF(live);
    return both;
}

static PyObject *stats_read(PyObject *module, PyObject *object)
{
    memrt_stats_t stats = {.struct_size = sizeof(stats)};
    PyObject *handler;
    memrt_policy_t *policy;
    (void)module;
    memrt__owner_drain();
    if (read_account_argument(object, &handler, &policy) < 0) {
        return NULL;
    }
    memrt_status_t status = memrt__api()->stats_read(policy, &stats);
    Py_XDECREF(handler);
    /* GCOV_EXCL_BR_START: struct_size is valid */
    return status == MEMRT_OK ? memrt__stats_tuple(&stats)
                              : memrt__raise(status, "cannot read statistics");
    /* GCOV_EXCL_BR_STOP */
}

static PyObject *stats_sizes(PyObject *module, PyObject *object)
{
    memrt_sizes_t sizes = {.struct_size = sizeof(sizes)};
    PyObject *handler;
    memrt_policy_t *policy;
    (void)module;
    memrt__owner_drain();
    if (read_account_argument(object, &handler, &policy) < 0) {
        return NULL;
    }
    memrt_status_t status = memrt__api()->stats_sizes(policy, &sizes);
    Py_XDECREF(handler);
    /* GCOV_EXCL_BR_START: struct_size is valid */
    return status == MEMRT_OK ? memrt__sizes_tuple(&sizes)
                              : memrt__raise(status, "cannot read sizes");
    /* GCOV_EXCL_BR_STOP */
}

static PyObject *stats_reset_peak(PyObject *module, PyObject *object)
{
    PyObject *handler;
    memrt_policy_t *policy;
    (void)module;
    if (read_account_argument(object, &handler, &policy) < 0) {
        return NULL;
    }
    memrt__api()->stats_reset_peak(policy);
    Py_XDECREF(handler);
    Py_RETURN_NONE;
}

/// Return the times of a path as (count, nanoseconds, bins).
static PyObject *read_path(memrt_latency_path_t path)
{
    memrt_latency_t latency = {.struct_size = sizeof(latency)};
    (void)!memrt__api()->latency(path, &latency); /* the arguments are valid */
    PyObject *bins = create_tuple(latency.bins, MEMRT_LATENCY_BINS);
    return bins == NULL ? NULL
                        : Py_BuildValue("(KKN)", (unsigned long long)latency.count,
                                        (unsigned long long)latency.nanoseconds, bins);
}

static PyObject *read_latency(PyObject *module, PyObject *unused)
{
    PyObject *list = PyList_New(0);
    (void)module;
    (void)unused;
    for (unsigned path = 1; list != NULL && path <= MEMRT_LATENCY_PATHS; path++) {
        PyObject *row = read_path((memrt_latency_path_t)path);
        if (row == NULL || PyList_Append(list, row) < 0) {
            Py_CLEAR(list);
        }
        Py_XDECREF(row);
    }
    return list;
}

static PyObject *read_reference_counts(PyObject *module, PyObject *object)
{
    memrt_reference_counts_t counts = {.struct_size = sizeof(counts)};
    PyObject *handler;
    memrt_policy_t *policy;
    (void)module;
    memrt__owner_drain();
    if (read_account_argument(object, &handler, &policy) < 0) {
        return NULL;
    }
    (void)!memrt__api()->reference_counts(policy, &counts); /* struct_size is valid */
    Py_XDECREF(handler);
    if (!counts.counting) {
        Py_RETURN_NONE;
    }
    return create_tuple(&counts.acquired, 2);
}

static PyObject *read_memory_stats(PyObject *module, PyObject *unused)
{
    memrt_memory_stats_t stats = {.struct_size = sizeof(stats)};
    (void)module;
    (void)unused;
    memrt__owner_drain();
    (void)!memrt__api()->memory_stats(&stats); /* struct_size is valid */
    Py_ssize_t count =
        (Py_ssize_t)((sizeof(stats) - offsetof(memrt_memory_stats_t, requested)) / 8);
    return create_tuple(&stats.requested, count);
}

#define MORE_THREADS 8u /* threads that may start between two calls */

/// Read the statistics of all threads into new memory. `*count` is the number of threads. NULL with
/// MemoryError. The calls cannot fail, since all arguments are valid.
static memrt_thread_stats_t *read_threads(size_t *count)
{
    size_t threads = 0;
    (void)!memrt__api()->threads(NULL, &threads);
    size_t room = threads + MORE_THREADS;
    memrt_thread_stats_t *all = PyMem_Calloc(room, sizeof(*all));
    if (all == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    for (size_t i = 0; i < room; i++) {
        all[i].struct_size = sizeof(*all);
    }
    *count = room;
    (void)!memrt__api()->threads(all, count);
    *count = Py_MIN(*count, room); /* GCOV_EXCL_BR_LINE: fewer threads start meanwhile */
    return all;
}

PyObject *memrt__threads_list(const memrt_thread_stats_t *all, size_t count)
{
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list != NULL && i < count; i++) {
        const memrt_thread_stats_t *each = &all[i];
        PyObject *row = Py_BuildValue(
            "(KKKKKK)", (unsigned long long)each->id, (unsigned long long)each->started,
            (unsigned long long)each->alloc, (unsigned long long)each->free,
            (unsigned long long)each->allocated, (unsigned long long)each->freed);
        if (row == NULL || PyList_Append(list, row) < 0) {
            Py_CLEAR(list);
        }
        Py_XDECREF(row);
    }
    return list;
}

static PyObject *read_thread_stats(PyObject *module, PyObject *unused)
{
    size_t count;
    (void)module;
    (void)unused;
    memrt__owner_drain();
    memrt_thread_stats_t *all = read_threads(&count);
    PyObject *list = all == NULL ? NULL : memrt__threads_list(all, count);
    PyMem_Free(all);
    return list;
}

PyMethodDef memrt__stats_methods[] = {
    {"stats_read", stats_read, METH_O,
     "stats_read(policy) -> tuple of int\n\n"
     "Return the account of a policy, or of the process for None, in the order of memrt_stats_t."},
    {"stats_sizes", stats_sizes, METH_O,
     "stats_sizes(policy) -> (allocated, live)\n\n"
     "Return the blocks of a policy, or of the process for None, by size. Each tuple has a\n"
     "count for each doubling of the size."},
    {"stats_reset_peak", stats_reset_peak, METH_O,
     "stats_reset_peak(policy)\n\nReset the peak to the live bytes."},
    {"memory_stats", read_memory_stats, METH_NOARGS,
     "memory_stats() -> tuple of int\n\n"
     "Return the memory behind all blocks, in the order of memrt_memory_stats_t."},
    {"latency", read_latency, METH_NOARGS,
     "latency() -> list of (count, nanoseconds, bins)\n\n"
     "Return the times of slow paths, in the order of memrt_latency_path_t."},
    {"reference_counts", read_reference_counts, METH_O,
     "reference_counts(policy) -> (acquired, released) or None\n\n"
     "Return the reference operations through the table for a policy, or for the process for\n"
     "None. The result is None if MEMRT_REFERENCES is 0."},
    {"threads", read_thread_stats, METH_NOARGS,
     "threads() -> list of tuple of int\n\n"
     "Return id, start in nanoseconds, alloc, free, allocated and freed of each thread."},
    {NULL, NULL, 0, NULL},
};
