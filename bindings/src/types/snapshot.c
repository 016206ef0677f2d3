#include "types/snapshot.h"

#include "core/owner.h"
#include "support/errors.h"
#include "types/stats.h"

#define MORE 16u /* levels and threads that may start between two calls */

static void free_arrays(memrt_snapshot_t *snapshot)
{
    PyMem_Free(snapshot->levels);
    PyMem_Free(snapshot->threads);
}

/// Allocate arrays with room for all levels and threads. -1 with MemoryError.
static int alloc_arrays(memrt_snapshot_t *snapshot)
{
    (void)!memrt__api()->snapshot(snapshot); /* for the counts alone */
    snapshot->level_count += MORE;
    snapshot->thread_count += MORE;
    snapshot->levels = PyMem_Calloc(snapshot->level_count, sizeof(*snapshot->levels));
    snapshot->threads = PyMem_Calloc(snapshot->thread_count, sizeof(*snapshot->threads));
    if (snapshot->levels == NULL || snapshot->threads == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (size_t i = 0; i < snapshot->level_count; i++) {
        snapshot->levels[i].struct_size = sizeof(*snapshot->levels);
    }
    for (size_t i = 0; i < snapshot->thread_count; i++) {
        snapshot->threads[i].struct_size = sizeof(*snapshot->threads);
    }
    return 0;
}

/// Take a snapshot without the GIL, because another thread may wait for its end with the GIL.
static memrt_status_t take_snapshot(memrt_snapshot_t *snapshot)
{
    size_t levels = snapshot->level_count, threads = snapshot->thread_count;
    memrt_status_t status;
    Py_BEGIN_ALLOW_THREADS;
    status = memrt__api()->snapshot(snapshot);
    Py_END_ALLOW_THREADS;
    snapshot->level_count = Py_MIN(snapshot->level_count, levels);
    snapshot->thread_count = Py_MIN(snapshot->thread_count, threads);
    return status;
}

static PyObject *create_level(const memrt_level_stats_t *level)
{
    PyObject *stats = memrt__stats_tuple(&level->stats);
    return stats == NULL ? NULL
                         : Py_BuildValue("(KKKsN)", (unsigned long long)level->kind,
                                         (unsigned long long)level->id,
                                         (unsigned long long)level->parent, level->name, stats);
}

static PyObject *create_levels(const memrt_snapshot_t *snapshot)
{
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list != NULL && i < snapshot->level_count; i++) {
        PyObject *row = create_level(&snapshot->levels[i]);
        if (row == NULL || PyList_Append(list, row) < 0) {
            Py_CLEAR(list);
        }
        Py_XDECREF(row);
    }
    return list;
}

static PyObject *create_result(const memrt_snapshot_t *snapshot)
{
    PyObject *levels = create_levels(snapshot);
    PyObject *threads =
        levels == NULL ? NULL : memrt__threads_list(snapshot->threads, snapshot->thread_count);
    if (threads == NULL) {
        Py_XDECREF(levels);
        return NULL;
    }
    return Py_BuildValue("(NNKKK)", levels, threads, (unsigned long long)snapshot->readings,
                         (unsigned long long)snapshot->nanoseconds,
                         (unsigned long long)snapshot->generation);
}

static PyObject *read_snapshot(PyObject *module, PyObject *unused)
{
    memrt_snapshot_t snapshot = {.struct_size = sizeof(snapshot)};
    PyObject *result = NULL;
    (void)module;
    (void)unused;
    memrt__owner_drain();
    if (alloc_arrays(&snapshot) == 0) {
        memrt_status_t status = take_snapshot(&snapshot);
        result = status == MEMRT_EBUSY /* GCOV_EXCL_BR_LINE: frees for 50 ms are rare */
                     ? Py_NewRef(Py_None)
                     : create_result(&snapshot);
    }
    free_arrays(&snapshot);
    return result;
}

PyMethodDef memrt__snapshot_methods[] = {
    {"snapshot", read_snapshot, METH_NOARGS,
     "snapshot() -> (levels, threads, readings, nanoseconds, generation) or None\n\n"
     "Return the statistics of all levels and threads at one moment. None: other threads changed\n"
     "counters all the time. A level is (kind, id, parent, name, stats)."},
    {NULL, NULL, 0, NULL},
};
