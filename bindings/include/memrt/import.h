#ifndef MEMRT_IMPORT_H
#define MEMRT_IMPORT_H

/// Import the memrt function table into an extension module. The header is self-contained: nothing
/// has to be linked. Include Python.h first.

#include <memrt/external.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Name of the capsule that holds the function table.
#define MEMRT_API_CAPSULE "memrt._memrt.api"

/// Import the memrt package and return its function table, valid until the process ends.
///
/// A table with fewer or more slots than this header declares is accepted. Check MEMRT_HAS before
/// using a slot that an older memrt may lack.
/// Threads: call with the GIL, in the main interpreter, from the init function of the module.
/// Failure: returns NULL with ImportError set when memrt is missing or has another ABI major
///          version, and NULL with MemoryError when out of memory.
static inline const memrt_api_t *memrt_import(void)
{
    const memrt_api_t *api = (const memrt_api_t *)PyCapsule_Import(MEMRT_API_CAPSULE, 0);
    if (api == NULL) {
        if (!PyErr_ExceptionMatches(PyExc_ImportError) &&
            !PyErr_ExceptionMatches(PyExc_MemoryError)) {
            PyErr_Format(PyExc_ImportError,
                         "memrt has no capsule %s: install a complete memrt package",
                         MEMRT_API_CAPSULE);
        }
        return NULL;
    }
    if (api->abi_major != MEMRT_ABI_MAJOR) {
        PyErr_Format(PyExc_ImportError,
                     "the module was built for ABI %u of memrt, but the installed memrt %s has ABI "
                     "%u: install a memrt with ABI %u, or rebuild the module",
                     (unsigned)MEMRT_ABI_MAJOR, api->version, (unsigned)api->abi_major,
                     (unsigned)MEMRT_ABI_MAJOR);
        return NULL;
    }
    return api;
}

/// tracemalloc domain of the memory that memrt registers itself; equals
/// memrt.debug.tracemalloc_domain. NumPy registers the memory that it allocates through memrt
/// handlers in NumPy's own domain.
#define MEMRT_TRACEMALLOC_DOMAIN 7172724u

/// Return value of PyTraceMalloc_Track while tracemalloc is off.
#define MEMRT__TRACEMALLOC_IS_OFF (-2)

#ifndef Py_LIMITED_API
/// Alias of PyTraceMalloc_Track, because Python.h declares that function without C linkage in C++.
int memrt__tracemalloc_track(unsigned domain, uintptr_t address,
                             size_t size) __asm__("PyTraceMalloc_Track");
#endif

/// Register the data of `mi` in tracemalloc, at the Python line running now, until `mi` is freed.
/// Does nothing while tracemalloc is off, for a MemInfo without data, and for a MemInfo that is
/// registered already. Blocks of NumPy handlers are skipped, because NumPy registers them itself.
///
/// memrt registers each MemInfo that it allocates for Python. memrt_meminfo_as_capsule() and
/// memrt_meminfo_as_array() register MemInfos allocated by C code. Call
/// memrt_tracemalloc_register() earlier to record the line of the allocation. Adopted memory needs
/// an explicit call: only the code that adopts a buffer knows whether another library has
/// registered the buffer already.
///
/// Threads: call with the GIL. tracemalloc would wait for the GIL otherwise.
/// Failure: returns -1 with MemoryError set when tracemalloc has no memory; `mi` is unchanged.
static inline int memrt_tracemalloc_register(const memrt_api_t *api, memrt_meminfo_t *mi)
{
#ifdef Py_LIMITED_API /* the limited API does not declare PyTraceMalloc_Track */
    (void)api;
    (void)mi;
#else
    unsigned flags = __atomic_load_n(&mi->flags, __ATOMIC_RELAXED);
    if (mi->kind == MEMRT_KIND_BLOCK || mi->data == NULL || (flags & MEMRT_FLAG_OBSERVED) != 0) {
        return 0;
    }
    int result = memrt__tracemalloc_track(MEMRT_TRACEMALLOC_DOMAIN, (uintptr_t)mi->data, mi->size);
    if (result == MEMRT__TRACEMALLOC_IS_OFF) {
        return 0;
    }
    if (result < 0) {
        PyErr_NoMemory();
        return -1;
    }
    api->observe(mi);
#endif
    return 0;
}

#ifdef __cplusplus
}
#endif

#endif
