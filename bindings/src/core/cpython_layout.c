#if MEMRT_CPYTHON_INTERNALS
#define Py_BUILD_CORE 1 /* must precede Python.h */
#endif

#include "core/cpython_layout.h"

static const int unknown_switch = 1;
const int *memrt__tracemalloc_switch = &unknown_switch;
size_t memrt__variable_cache_offset;

#if !MEMRT_CPYTHON_INTERNALS

void memrt__cpython_layout_setup(void)
{
}

#else

#include <internal/pycore_context.h>

#if PY_VERSION_HEX < 0x030C0000 /* 3.10 and 3.11: frozen, a symbol of its own */
#include <internal/pycore_pymem.h>
#define IS_KNOWN_LAYOUT 1
#define TRACEMALLOC_SWITCH (&_Py_tracemalloc_config.tracing)
#else /* the offset in the runtime state may differ between patch releases */
#include <internal/pycore_runtime.h>
#define IS_KNOWN_LAYOUT (Py_Version == PY_VERSION_HEX)
#define TRACEMALLOC_SWITCH (&_PyRuntime.tracemalloc.config.tracing)
#endif

#ifdef Py_GIL_DISABLED
#define VARIABLE_CACHE_OFFSET 0
#else
#define VARIABLE_CACHE_OFFSET offsetof(struct _pycontextvarobject, var_cached)

#define HAS_SAME_OFFSET(THEIRS, OURS)                                                              \
    (offsetof(struct _pycontextvarobject, THEIRS) ==                                               \
     VARIABLE_CACHE_OFFSET + offsetof(memrt_variable_cache_t, OURS))
_Static_assert(HAS_SAME_OFFSET(var_cached_tsid, thread_id), "CPython's cache of a variable");
_Static_assert(HAS_SAME_OFFSET(var_cached_tsver, context_version), "CPython's cache of a variable");
#endif

void memrt__cpython_layout_setup(void)
{
    if (IS_KNOWN_LAYOUT) {
        memrt__tracemalloc_switch = TRACEMALLOC_SWITCH;
        memrt__variable_cache_offset = VARIABLE_CACHE_OFFSET;
    }
}

#endif
