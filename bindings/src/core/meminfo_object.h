#ifndef MEMRT_BINDINGS_CORE_MEMINFO_OBJECT_H
#define MEMRT_BINDINGS_CORE_MEMINFO_OBJECT_H

#include "support/binding.h"

/// Python object memrt.MemInfo. Several objects may exist for the same MemInfo.
///
/// Invariant: an object holds exactly one reference to its MemInfo, from the fill of the shell
/// until the cycle collector clears the object or the object ends. "Shared" marks members that
/// several threads use at once in CPython without a GIL.
typedef struct memrt_meminfo_object {
    PyObject ob_base;
    memrt_meminfo_t *mi; /* one reference; NULL: a shell, or cleared by the cycle collector */
    PyObject *weakrefs;
    Py_ssize_t exports; /* shared; exports of the buffer protocol that are not released */
    char handed_out; /* shared; C code has the MemInfo, and may take references without the GIL */
    char waits;      /* a release may block on a device, whose pending work may need the GIL */
} memrt_meminfo_object_t;

/// Create a shell: an object without a MemInfo. A caller creates the shell before the MemInfo,
/// because the fill of a shell cannot fail. NULL with MemoryError.
memrt_meminfo_object_t *memrt__meminfo_shell(void);

/// Store `mi` in a shell and return the shell. Steals the reference to `mi`.
PyObject *memrt__meminfo_fill(memrt_meminfo_object_t *shell, memrt_meminfo_t *mi);

/// Store a CUDA buffer in a shell, as memrt__meminfo_fill. The release of the buffer may block, so
/// the object gives up the GIL for the release.
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

/* --- Functions for the slots of the type, which types/meminfo_type.c defines. --- */

/// Visit the references of the type and of an owner that the object alone keeps alive.
int memrt__meminfo_traverse(memrt_meminfo_object_t *self, visitproc visit, void *arg);

/// Release the MemInfo if its owner has a destructor and the object alone keeps the owner alive.
void memrt__meminfo_finalize(memrt_meminfo_object_t *self);

/// Release the MemInfo if the object alone keeps its owner alive.
int memrt__meminfo_clear(memrt_meminfo_object_t *self);

/// Release the MemInfo and recycle the object.
void memrt__meminfo_dealloc(memrt_meminfo_object_t *self);

#endif
