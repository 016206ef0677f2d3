#if MEMRT_CPYTHON_INTERNALS
#define Py_BUILD_CORE 1 /* must precede Python.h */
#endif

#include "core/cpython_layout.h"

/* Until setup, and for an unknown layout, each pointer leads to a constant of the safe answer:
   tracemalloc may be on, and no thread state is known to hold the GIL. */
static const int unknown_switch = 1;
const int *memrt__tracemalloc_switch = &unknown_switch;
int memrt__context_is_known;

#if PY_VERSION_HEX < 0x030C0000
static const uintptr_t unknown_state = 0;
const uintptr_t *memrt__attached_state = &unknown_state;
#endif

#if !MEMRT_CPYTHON_INTERNALS /* a build without the internal headers of CPython */

void memrt__cpython_layout_setup(void)
{
}

#else

#include <internal/pycore_context.h>
#include <internal/pycore_runtime.h>

#ifdef Py_GIL_DISABLED
#define CONTEXT_IS_KNOWN 0 /* another thread may change the members at any time */
#else
#define CONTEXT_IS_KNOWN                                                                           \
    (offsetof(struct _pycontextobject, ctx_vars) == offsetof(memrt_context_t, variables))
#endif

#if PY_VERSION_HEX < 0x030C0000 /* 3.10 and 3.11: no further change; the switch is a symbol */
#include <internal/pycore_pymem.h>

void memrt__cpython_layout_setup(void)
{
    memrt__tracemalloc_switch = &_Py_tracemalloc_config.tracing;
    memrt__attached_state = (const uintptr_t *)&_PyRuntime.gilstate.tstate_current;
    memrt__context_is_known = CONTEXT_IS_KNOWN;
}

#else /* 3.12 and later: the offset of the switch may differ between patch releases */

void memrt__cpython_layout_setup(void)
{
    if (Py_Version == PY_VERSION_HEX) {
        memrt__tracemalloc_switch = &_PyRuntime.tracemalloc.config.tracing;
        memrt__context_is_known = CONTEXT_IS_KNOWN;
    }
}

#endif
#endif
