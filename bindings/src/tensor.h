#ifndef MEMRT_TENSOR_H
#define MEMRT_TENSOR_H

#include "meminfo.h"

#include <memrt/dlpack.h>

/// memrt.Tensor: a MemInfo and how elements lie over it, as libraries that speak DLPack take it.
typedef struct memrt_tensor_object {
    PyObject_VAR_HEAD memrt_meminfo_object_t *base;
    memrt_dlpack_view_t view;
    int64_t numbers[]; ///< shape and strides of the view
} memrt_tensor_object_t;

/// New Tensor; takes a reference to `base` and copies the view. NULL with MemoryError.
PyObject *memrt__tensor_new(memrt_meminfo_object_t *base, const memrt_dlpack_view_t *view);

int memrt__tensor_check(PyObject *object);

extern PyMethodDef memrt__tensor_methods[];

/// Make the type; once, at import. -1 with an exception.
int memrt__tensor_setup(PyObject *module);

#endif
