#ifndef MEMRT_IMPORT_H
#define MEMRT_IMPORT_H

/// The function table for extension modules: one header, nothing to link. Include Python.h first.

#include <memrt/external.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Name of the capsule that holds the table.
#define MEMRT_API_CAPSULE "memrt._memrt.api"

/// The table of the installed memrt package, which gets imported; valid for good.
///
/// A table with fewer or more slots than this header knows is fine: ask with MEMRT_HAS before using
/// a slot that an older memrt may lack.
/// Threads: with the GIL, in the main interpreter; for the module's init function.
/// Failure: NULL with ImportError set, when memrt is missing or its ABI major is another one;
///          MemoryError.
static inline const memrt_api_t *memrt_import(void)
{
    const memrt_api_t *api = (const memrt_api_t *)PyCapsule_Import(MEMRT_API_CAPSULE, 0);
    if (api == NULL) {
        if (!PyErr_ExceptionMatches(PyExc_ImportError) &&
            !PyErr_ExceptionMatches(PyExc_MemoryError)) {
            PyErr_Format(PyExc_ImportError,
                         "memrt offers no capsule %s: install a complete memrt package",
                         MEMRT_API_CAPSULE);
        }
        return NULL;
    }
    if (api->abi_major != MEMRT_ABI_MAJOR) {
        PyErr_Format(
            PyExc_ImportError,
            "this module was built for ABI %u of memrt, the installed memrt %s has ABI %u: "
            "install a memrt with ABI %u, or build the module again",
            (unsigned)MEMRT_ABI_MAJOR, api->version, (unsigned)api->abi_major,
            (unsigned)MEMRT_ABI_MAJOR);
        return NULL;
    }
    return api;
}

/// The domain of tracemalloc in which memrt's own memory is shown; memrt.tracemalloc_domain. NumPy
/// shows what it asked memrt's handlers for in its own.
#define MEMRT_TRACEMALLOC_DOMAIN 7172724u

/// What PyTraceMalloc_Track answers while tracemalloc is off.
#define MEMRT__TRACING_IS_OFF (-2)

#ifndef Py_LIMITED_API
/// PyTraceMalloc_Track by another name: Python.h gives it no C linkage in C++.
int memrt__tracemalloc_track(unsigned domain, uintptr_t address,
                             size_t size) __asm__("PyTraceMalloc_Track");
#endif

/// Show the data of `mi` in tracemalloc, on the line that runs now, until it dies. Nothing while
/// tracemalloc is off, and for a MemInfo that was shown before or whose memory NumPy asked for.
///
/// memrt does this by itself where it makes a MemInfo for Python, and memrt_meminfo_as_capsule()
/// and memrt_meminfo_as_array() do it for what C code made. Call it earlier to have the line of
/// birth shown, and for adopted memory, of which only its maker knows that nobody else shows it.
///
/// Threads: with the GIL; tracemalloc would wait for it.
/// Failure: -1 with MemoryError, when tracemalloc has no room; `mi` is as it was.
static inline int memrt_trace(const memrt_api_t *api, memrt_meminfo_t *mi)
{
#ifdef Py_LIMITED_API /* which has no way to tell tracemalloc */
    (void)api;
    (void)mi;
#else
    unsigned flags = __atomic_load_n(&mi->flags, __ATOMIC_RELAXED);
    if (mi->kind == MEMRT_KIND_BLOCK || mi->data == NULL || (flags & MEMRT_FLAG_WATCHED) != 0) {
        return 0;
    }
    int result = memrt__tracemalloc_track(MEMRT_TRACEMALLOC_DOMAIN, (uintptr_t)mi->data, mi->size);
    if (result == MEMRT__TRACING_IS_OFF) {
        return 0;
    }
    if (result < 0) {
        PyErr_NoMemory();
        return -1;
    }
    api->watch(mi);
#endif
    return 0;
}

#ifdef __cplusplus
}
#endif

#endif
