#ifndef MEMRT_MEMINFO_TYPE_H
#define MEMRT_MEMINFO_TYPE_H

#include "binding.h"

/// memrt.MemInfo: a Python object that holds one reference to a MemInfo. Several may hold the same.
typedef struct memrt_meminfo_object {
    PyObject ob_base;
    /* One reference; NULL before it is filled and after the cycle collector cleared it. */
    memrt_meminfo_t *mi;
    PyObject *weakrefs;
    Py_ssize_t exports; /* buffers that consumers hold now */
    char handed_out;    /* C code was given the MemInfo: it may take references without the GIL */
    char waits;         /* its end may wait for a device, and whoever holds that up for the GIL */
} memrt_meminfo_object_t;

/// New object without a MemInfo, to be filled by memrt__meminfo_fill, which cannot fail.
memrt_meminfo_object_t *memrt__meminfo_shell(void);

/// Put `mi` into a shell; steals the reference. Returns the shell.
PyObject *memrt__meminfo_fill(memrt_meminfo_object_t *shell, memrt_meminfo_t *mi);

/// The same for a buffer of CUDA.
PyObject *memrt__meminfo_fill_waiting(memrt_meminfo_object_t *shell, memrt_meminfo_t *mi);

/// The same for a MemInfo that C code may know, or Python by another object.
PyObject *memrt__meminfo_hand_out(memrt_meminfo_object_t *shell, memrt_meminfo_t *mi);

/// New memory: policy NULL for the one in force, alignment 0 for the policy's. Returns a MemInfo
/// object, shown in tracemalloc, or NULL with an exception.
PyObject *memrt__meminfo_allocate(size_t size, memrt_new_options_t *options);

/// The MemInfo object behind `object`: itself, or one made from its `__memrt_meminfo__()` or from a
/// capsule. New reference, or NULL with TypeError.
memrt_meminfo_object_t *memrt__meminfo_from(PyObject *object);

/// The MemInfo inside; borrowed. NULL with ReferenceError when it was cleared.
memrt_meminfo_t *memrt__meminfo_get(memrt_meminfo_object_t *self);

/// Where the bytes of a MemInfo are, for who reads or writes them.
typedef struct memrt_bytes {
    void *data; ///< never NULL: some address where there are none
    size_t size;
    int readonly;
} memrt_bytes_t;

/// Also waits until all work on them is done. -1 with ReferenceError when it was cleared, with
/// BufferError for a device's memory, and with CudaError.
int memrt__meminfo_bytes(memrt_meminfo_object_t *self, memrt_bytes_t *out);

static inline int memrt__meminfo_check(PyObject *object)
{
    return Py_IS_TYPE(object, memrt__binding.meminfo_type);
}

/// Make the type; once, at import. -1 with an exception.
int memrt__meminfo_setup(PyObject *module);

#endif
