#ifndef MEMRT_BINDINGS_SUPPORT_BINDING_H
#define MEMRT_BINDINGS_SUPPORT_BINDING_H

#ifndef PY_SSIZE_T_CLEAN
#define PY_SSIZE_T_CLEAN
#endif
#include <Python.h>

#include <memrt/external.h>

/// Process-wide state of the extension. The module exists in the main interpreter only, and NumPy
/// cannot be loaded twice, so there is exactly one instance. All members are set before the first
/// function of the module can be called, and are never cleared.
typedef struct memrt_binding {
    const memrt_api_t *api;
    PyTypeObject *meminfo_type; ///< the type memrt.MemInfo
    PyTypeObject *tensor_type;  ///< the type memrt.Tensor
    PyObject *default_handler;  ///< capsule with the handler of the default policy
    PyObject *cuda_error;       ///< the class memrt.cuda.CudaError
} memrt_binding_t;

/// Variable of this library alone. An access needs no load of the address from the global offset
/// table, which the compiler expects for other declarations of variables.
#define MEMRT_HIDDEN __attribute__((visibility("hidden")))

extern MEMRT_HIDDEN memrt_binding_t memrt__binding;

static inline const memrt_api_t *memrt__api(void)
{
    return memrt__binding.api;
}

/// Factor of Fibonacci hashing: 2 to the power of 64 divided by the golden ratio, odd. The product
/// with the factor spreads near numbers over the high bits.
#define MEMRT_HASH_FACTOR ((uint64_t)0x9E3779B97F4A7C15u)

/// Variable of a thread. With glibc, the loader places it at a fixed distance from the thread's own
/// data, so that an access needs no call. musl refuses such modules.
#ifdef __GLIBC__
#define MEMRT_THREAD_LOCAL __thread __attribute__((tls_model("initial-exec")))
#else
#define MEMRT_THREAD_LOCAL __thread
#endif

/// PyMethodDef entry for a function with keywords: METH_VARARGS | METH_KEYWORDS.
#define MEMRT_KEYWORDS(function)                                                                   \
    ((PyCFunction)(void (*)(void))(function)), METH_VARARGS | METH_KEYWORDS

/// PyMethodDef entry for a function that gets its arguments as an array: METH_FASTCALL |
/// METH_KEYWORDS.
#define MEMRT_FAST_KEYWORDS(function)                                                              \
    ((PyCFunction)(void (*)(void))(function)), METH_FASTCALL | METH_KEYWORDS

#endif
