#ifndef MEMRT_BINDINGS_ALLOCATORS_BLOCK_RESULT_H
#define MEMRT_BINDINGS_ALLOCATORS_BLOCK_RESULT_H

#include "support/binding.h"

/// Results of `allocate` functions in Python. Every message names the rule and the value.

typedef struct memrt_block_result {
    uintptr_t address;
    PyObject *buffer; ///< memoryview that holds the buffer, owned; NULL for an address
} memrt_block_result_t;

/// Read a result: an int, or an object with a writable buffer of at least `nbytes` contiguous
/// bytes. An int needs `has_free`.
/// Failure: -1 with TypeError or ValueError, and nothing is held.
int memrt__block_result_read(PyObject *result, size_t nbytes, int has_free,
                             memrt_block_result_t *out);

/// Check that the address is a multiple of `align`. -1 with ValueError.
int memrt__block_result_check_alignment(const memrt_block_result_t *block, size_t align);

#endif
