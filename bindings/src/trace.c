#include "trace.h"

static void on_death(void *data)
{
    (void)PyTraceMalloc_Untrack(MEMRT_TRACEMALLOC_DOMAIN, (uintptr_t)data);
}

/// Shown anew, on the line that resizes, where that takes no waiting for the GIL.
static void on_resize(void *old_data, void *new_data, size_t new_size)
{
    on_death(old_data);
    if (PyGILState_Check()) { /* without room it is not shown any more */
        (void)PyTraceMalloc_Track(MEMRT_TRACEMALLOC_DOMAIN, (uintptr_t)new_data, new_size);
    }
}

void memrt__trace_setup(void)
{
    static const memrt_watcher_t watcher = {sizeof(watcher), on_resize, on_death};
    memrt__api()->set_watcher(&watcher);
}

/// Asks without the GIL: nothing is known of no address.
static int is_tracing(void)
{
    return PyTraceMalloc_Untrack(MEMRT_TRACEMALLOC_DOMAIN, 0) != MEMRT__TRACING_IS_OFF;
}

int memrt__trace_compiled(memrt_meminfo_t *mi)
{
    if (!is_tracing() || !PyGILState_Check()) {
        return 1;
    }
    if (memrt_trace(memrt__api(), mi) < 0) {
        PyErr_Clear();
        return 0;
    }
    return 1;
}

void memrt__trace_adopted(memrt_meminfo_t *mi)
{
    if (memrt_trace(memrt__api(), mi) < 0) {
        PyErr_Clear();
    }
}
