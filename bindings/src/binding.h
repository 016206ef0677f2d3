#ifndef MEMRT_BINDING_H
#define MEMRT_BINDING_H

#ifndef PY_SSIZE_T_CLEAN
#define PY_SSIZE_T_CLEAN
#endif
#include <Python.h>

#include <memrt/external.h>

/// What the extension keeps for the life of the process. The module lives in the main interpreter
/// only, and NumPy cannot be loaded twice, so there is exactly one of these; all is set before the
/// first function of the module can be called, and nothing is ever taken away.
typedef struct memrt_binding {
    const memrt_api_t *api;
    PyTypeObject *meminfo_type;
    PyObject *default_handler; ///< capsule of the default policy's handler
    PyObject *cuda_error;      ///< the class memrt.cuda.CudaError
} memrt_binding_t;

extern memrt_binding_t memrt__binding;

static inline const memrt_api_t *memrt__api(void)
{
    return memrt__binding.api;
}

/// A function that takes keywords, as PyMethodDef wants it.
#define MEMRT_KEYWORDS(function)                                                                   \
    ((PyCFunction)(void (*)(void))(function)), METH_VARARGS | METH_KEYWORDS

/// The same for one that gets its arguments as an array.
#define MEMRT_FAST_KEYWORDS(function)                                                              \
    ((PyCFunction)(void (*)(void))(function)), METH_FASTCALL | METH_KEYWORDS

#endif
