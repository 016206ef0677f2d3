#ifndef MEMRT_BINDINGS_CORE_MEMINFO_OBJECT_H
#define MEMRT_BINDINGS_CORE_MEMINFO_OBJECT_H

#include "support/binding.h"

/// Python object memrt.MemInfo, which holds one reference to a MemInfo. Several objects may hold
/// the same MemInfo.
typedef struct memrt_meminfo_object {
    PyObject ob_base;
    /* One reference. NULL before the shell is filled and after the cycle collector cleared the
       object. */
    memrt_meminfo_t *mi;
    PyObject *weakrefs;
    Py_ssize_t exports; /* buffer protocol exports in use; shared */
    char handed_out; /* C code has the MemInfo, and may take references without the GIL; shared */
    char waits;      /* release may block on a device, whose pending work may need the GIL */
} memrt_meminfo_object_t;

/// Create an object without a MemInfo, for memrt__meminfo_fill, which cannot fail. NULL with
/// MemoryError.
memrt_meminfo_object_t *memrt__meminfo_shell(void);

/// Store `mi` in a shell and return the shell. Steals the reference to `mi`.
PyObject *memrt__meminfo_fill(memrt_meminfo_object_t *shell, memrt_meminfo_t *mi);

/// Store a CUDA buffer in a shell, as memrt__meminfo_fill. The release may block, so the object
/// releases the GIL for it.
PyObject *memrt__meminfo_fill_waiting(memrt_meminfo_object_t *shell, memrt_meminfo_t *mi);

/// Store a MemInfo that C code or another Python object may also know, as memrt__meminfo_fill.
PyObject *memrt__meminfo_hand_out(memrt_meminfo_object_t *shell, memrt_meminfo_t *mi);

/// Allocate memory. A NULL policy in `options` means the default policy, and alignment 0 the
/// policy's alignment. Returns a MemInfo object that tracemalloc shows, or NULL with an exception.
PyObject *memrt__meminfo_allocate(size_t size, memrt_new_options_t *options);

/// Return the MemInfo object behind `object`: `object` itself, or a new MemInfo object from its
/// `__memrt_meminfo__()` or from a capsule. New reference, or NULL with TypeError.
memrt_meminfo_object_t *memrt__meminfo_from(PyObject *object);

/// Return the MemInfo of an object, borrowed. NULL with ReferenceError if the cycle collector
/// cleared the object.
memrt_meminfo_t *memrt__meminfo_get(memrt_meminfo_object_t *self);

/// Return whether an object is exactly a memrt.MemInfo.
static inline int memrt__meminfo_check(PyObject *object)
{
    return Py_IS_TYPE(object, memrt__binding.meminfo_type);
}

/// Functions of the type's slots, which types/meminfo_type.c puts into the type.

/// Visit the references of the type and of an owner that the object alone keeps alive.
int memrt__meminfo_traverse(memrt_meminfo_object_t *self, visitproc visit, void *arg);

/// Release the MemInfo if its owner has a destructor and the object alone keeps the owner alive.
void memrt__meminfo_finalize(memrt_meminfo_object_t *self);

/// Release the MemInfo if the object alone keeps its owner alive.
int memrt__meminfo_clear(memrt_meminfo_object_t *self);

/// Release the MemInfo and recycle the object.
void memrt__meminfo_dealloc(memrt_meminfo_object_t *self);

#endif
