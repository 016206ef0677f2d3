#ifndef MEMRT_CAPSULE_H
#define MEMRT_CAPSULE_H

/// Capsules that hold MemInfos, as base objects of arrays and for exchange between extension
/// modules, and the name of capsules with allocators. Include Python.h first; NumPy is not needed.
///
/// `api` is the result of memrt_import().
/// Threads: every function here needs the GIL.

#include <memrt/import.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Name of a capsule that holds one reference to a MemInfo. The capsule never holds the data
/// pointer, because a resizable MemInfo may have NULL data. The capsule's context is the table.
#define MEMRT_MEMINFO_CAPSULE "memrt.meminfo"

/// Name of a capsule whose pointer is a `const memrt_allocator_t *`, for
/// `memrt.Policy(allocator=)`. The policy holds the capsule until the last block of the policy is
/// freed, so the destructor of the capsule may free table and context. If the table has a
/// `destroy`, the policy calls `destroy` once, and the capsule serves a single policy.
#define MEMRT_ALLOCATOR_CAPSULE "memrt.allocator"

static inline void memrt__capsule_destroy(PyObject *capsule)
{
    const memrt_api_t *api = (const memrt_api_t *)PyCapsule_GetContext(capsule);
    void *mi = PyCapsule_GetPointer(capsule, MEMRT_MEMINFO_CAPSULE);
    api->release((memrt_meminfo_t *)mi);
}

/// Register a MemInfo that C code hands to Python in tracemalloc, see memrt_tracemalloc_register().
/// Adopted memory is skipped: only the code that adopted the buffer knows whether it is registered
/// already.
static inline int memrt__tracemalloc_register_allocated(const memrt_api_t *api, memrt_meminfo_t *mi)
{
    return mi->kind == MEMRT_KIND_ADOPTED ? 0 : memrt_tracemalloc_register(api, mi);
}

/// Return a new capsule that holds `mi`. The capsule's destructor releases `mi`. tracemalloc shows
/// the data from now on, except for adopted memory.
///
/// Ownership: steals the caller's reference to `mi`, also on failure.
/// Failure:   returns NULL with an exception set.
static inline PyObject *memrt_meminfo_as_capsule(const memrt_api_t *api, memrt_meminfo_t *mi)
{
    PyObject *capsule = memrt__tracemalloc_register_allocated(api, mi) == 0
                            ? PyCapsule_New(mi, MEMRT_MEMINFO_CAPSULE, NULL)
                            : NULL;
    if (capsule == NULL) {
        api->release(mi);
        return NULL;
    }
    /* Set the destructor last: on an earlier failure this function alone releases `mi`. */
    if (PyCapsule_SetContext(capsule, (void *)(uintptr_t)api) < 0 ||
        PyCapsule_SetDestructor(capsule, memrt__capsule_destroy) < 0) {
        api->release(mi);
        Py_DECREF(capsule);
        return NULL;
    }
    return capsule;
}

/// Store a new reference to the MemInfo of a capsule `memrt.meminfo` in `*out` and return 0.
/// Failure: -1 with an exception set for any other object.
static inline int memrt_capsule_meminfo(const memrt_api_t *api, PyObject *capsule,
                                        memrt_meminfo_t **out)
{
    memrt_meminfo_t *mi = (memrt_meminfo_t *)PyCapsule_GetPointer(capsule, MEMRT_MEMINFO_CAPSULE);
    if (mi == NULL) {
        return -1;
    }
    api->acquire(mi);
    *out = mi;
    return 0;
}

#ifdef __cplusplus
}
#endif

#endif
