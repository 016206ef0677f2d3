#ifndef MEMRT_ARGUMENT_H
#define MEMRT_ARGUMENT_H

#include "binding.h"

/// Converters for "O&": from a Python argument to what the table wants. 1, or 0 with an exception.

/// A number of bytes into a size_t: ValueError below zero, MemoryError beyond the address space.
int memrt__size_argument(PyObject *object, void *size);

/// An alignment into a size_t: a power of two up to MEMRT_ALIGN_MAX, or None, which gives 0.
int memrt__align_argument(PyObject *object, void *align);

/// An address into a uintptr_t.
int memrt__address_argument(PyObject *object, void *address);

/// A text or None into a const char *, NULL for None and borrowed from the argument otherwise.
int memrt__name_argument(PyObject *object, void *name);

/// Most parameters that a signature has.
#define MEMRT_PARAMETERS_MAX 8

/// Parameters of a function called by METH_FASTCALL | METH_KEYWORDS: the first `positional` may be
/// given by place, all by name. One static struct a function.
typedef struct memrt_signature {
    const char *function;
    const char *const *keywords;
    int total, positional, required;
    int interned; ///< how many of `names` stand
    PyObject *names[MEMRT_PARAMETERS_MAX];
} memrt_signature_t;

/// Sort the arguments of a call into `values`, of `total` places; borrowed, NULL for what was not
/// given. -1 with TypeError.
int memrt__arguments(memrt_signature_t *signature, PyObject *const *args, Py_ssize_t count,
                     PyObject *keywords, PyObject **values);

#endif
