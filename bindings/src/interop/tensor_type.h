#ifndef MEMRT_BINDINGS_INTEROP_TENSOR_TYPE_H
#define MEMRT_BINDINGS_INTEROP_TENSOR_TYPE_H

#include "core/meminfo_object.h"

#include <memrt/dlpack.h>

/// Python object memrt.types.Tensor: a MemInfo with a layout of elements, for libraries that use
/// DLPack.
typedef struct memrt_tensor_object {
    PyObject_VAR_HEAD memrt_meminfo_object_t *base;
    PyObject *keep; ///< list of objects that live as long as imported device memory, or NULL
    memrt_dlpack_view_t view;
    int64_t numbers[]; ///< shape and strides of the view
} memrt_tensor_object_t;

/// Create a Tensor. Takes new references to `base` and `keep` (may be NULL), and copies the view.
/// NULL with MemoryError.
PyObject *memrt__tensor_new(memrt_meminfo_object_t *base, const memrt_dlpack_view_t *view,
                            PyObject *keep);

/// Return whether an object is a memrt.types.Tensor.
int memrt__tensor_check(PyObject *object);

extern PyMethodDef memrt__tensor_methods[];

/// Create the type. Call once, at import. -1 with an exception.
int memrt__tensor_setup(PyObject *module);

#endif
