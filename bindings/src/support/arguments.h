#ifndef MEMRT_BINDINGS_SUPPORT_ARGUMENTS_H
#define MEMRT_BINDINGS_SUPPORT_ARGUMENTS_H

#include "support/binding.h"

/// Conversion of Python arguments to C types, and of argument lists to parameters.
///
/// The functions `memrt__*_argument` are converters for "O&" of PyArg_Parse: they return 1, or 0
/// with an exception. A result is valid only after 1. Each exception names the parameter, the rule
/// and the value.

/// Convert a number of bytes to a size_t. ValueError below 0, MemoryError beyond the address space.
int memrt__size_argument(PyObject *object, void *size);

/// Convert an alignment to a size_t: a power of two up to MEMRT_ALIGN_MAX, or None, which gives 0.
/// ValueError for any other number.
int memrt__align_argument(PyObject *object, void *align);
int memrt__align_offset_argument(PyObject *object, void *offset);

/// Convert an order to an NPY_ORDER: 'C' or 'F'. NumPy's own converter also accepts 'A' and 'K',
/// which refer to the order of an existing array.
int memrt__order_argument(PyObject *object, void *order);

/// Convert an address to a uintptr_t. ValueError below 0, and beyond the address space.
int memrt__address_argument(PyObject *object, void *address);

/// Convert a name to a const char *: NULL for None, otherwise the UTF-8 text, borrowed from the
/// argument. TypeError for another type, ValueError for more than MEMRT_NAME_MAX bytes or a zero
/// byte.
int memrt__name_argument(PyObject *object, void *name);

/// Return a str for a name that C code may have set, or None for NULL. New reference, or NULL with
/// MemoryError. Bytes that are not UTF-8 are replaced.
PyObject *memrt__text(const char *name);

/// Maximum number of parameters of a signature.
#define MEMRT_PARAMETERS_MAX 8

/// Parameters of a METH_FASTCALL | METH_KEYWORDS function. All parameters may be passed by name.
/// Each function has its own static struct.
///
/// Invariant: `required` and `positional` are at most `total`, which is at most
/// MEMRT_PARAMETERS_MAX. The first `interned` entries of `names` are the interned `keywords`.
typedef struct memrt_signature {
    const char *function;        ///< name in messages
    const char *const *keywords; ///< names of the `total` parameters, in order
    int total;
    int positional; ///< number of first parameters that may also be passed by position
    int required;   ///< number of first parameters without a default
    int interned;   ///< shared between threads; grows at the first call
    PyObject *names[MEMRT_PARAMETERS_MAX];
} memrt_signature_t;

/// Assign the arguments of a METH_FASTCALL | METH_KEYWORDS call to parameters. `values` gets
/// `total` entries, borrowed; NULL: not passed. Returns 0, or -1 with TypeError.
int memrt__arguments(memrt_signature_t *signature, PyObject *const *args, Py_ssize_t count,
                     PyObject *keywords, PyObject **values);

#endif
