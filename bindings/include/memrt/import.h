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

#ifdef __cplusplus
}
#endif

#endif
