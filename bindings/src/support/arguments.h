#ifndef MEMRT_BINDINGS_SUPPORT_ARGUMENTS_H
#define MEMRT_BINDINGS_SUPPORT_ARGUMENTS_H

#include "support/binding.h"

/// Convert Python arguments to the types of the function table. The first five functions are "O&"
/// converters: they return 1, or 0 with an exception.

/// Convert a number of bytes to a size_t. ValueError below 0, MemoryError beyond the address space.
int memrt__size_argument(PyObject *object, void *size);

/// Convert an alignment to a size_t: a power of two up to MEMRT_ALIGN_MAX, or None, which gives 0.
int memrt__align_argument(PyObject *object, void *align);

/// Convert an order to an NPY_ORDER: 'C' or 'F'. NumPy's own converter also accepts 'A' and 'K',
/// which refer to the order of an existing array.
int memrt__order_argument(PyObject *object, void *order);

/// Convert an address to a uintptr_t.
int memrt__address_argument(PyObject *object, void *address);

/// Convert a str or None to a const char *: NULL for None, otherwise text borrowed from the
/// argument.
int memrt__name_argument(PyObject *object, void *name);

/// Return a new str for a name that C code may have set: bytes that are not UTF-8 are replaced.
/// None for NULL.
PyObject *memrt__text(const char *name);

/// Maximum number of parameters of a signature.
#define MEMRT_PARAMETERS_MAX 8

/// Parameters of a METH_FASTCALL | METH_KEYWORDS function. The first `positional` parameters may be
/// passed by position, all of them by name. Each function has its own static struct.
typedef struct memrt_signature {
    const char *function;
    const char *const *keywords;
    int total, positional, required;
    int interned; ///< entries of `names` that are initialized
    PyObject *names[MEMRT_PARAMETERS_MAX];
} memrt_signature_t;

/// Sort the arguments of a call into `values`, an array of `total` entries. Entries are borrowed,
/// and NULL for arguments that were not passed. -1 with TypeError.
int memrt__arguments(memrt_signature_t *signature, PyObject *const *args, Py_ssize_t count,
                     PyObject *keywords, PyObject **values);

#endif
