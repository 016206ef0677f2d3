#include "trace.h"

/// numpy.lib.tracemalloc_domain
#define NUMPY_DOMAIN 389047u

/// What PyTraceMalloc_Track answers while tracemalloc is off.
#define TRACING_IS_OFF (-2)

static void on_death(void *data)
{
    (void)PyTraceMalloc_Untrack(NUMPY_DOMAIN, (uintptr_t)data);
}

/// The new block is not shown: that needs the GIL, which a resizing thread may not have.
static void on_resize(void *old_data, void *new_data, size_t new_size)
{
    (void)new_data;
    (void)new_size;
    on_death(old_data);
}

int memrt__trace_birth(memrt_meminfo_t *mi)
{
    static const memrt_watcher_t watcher = {sizeof(watcher), on_resize, on_death};
    static int watching;
    const memrt_api_t *api = memrt__api();
    int result = PyTraceMalloc_Track(NUMPY_DOMAIN, (uintptr_t)mi->data, mi->size);
    if (result == TRACING_IS_OFF) {
        return 0;
    }
    if (result < 0) {
        PyErr_NoMemory();
        return -1;
    }
    if (!watching) {
        api->set_watcher(&watcher);
        watching = 1;
    }
    api->watch(mi);
    return 0;
}

int memrt__trace_compiled(memrt_meminfo_t *mi)
{
    int known = PyTraceMalloc_Untrack(NUMPY_DOMAIN, (uintptr_t)mi->data);
    if (known == TRACING_IS_OFF || !PyGILState_Check()) {
        return 1;
    }
    if (memrt__trace_birth(mi) < 0) {
        PyErr_Clear();
        return 0;
    }
    return 1;
}
