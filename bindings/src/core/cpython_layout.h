#ifndef MEMRT_BINDINGS_CORE_CPYTHON_LAYOUT_H
#define MEMRT_BINDINGS_CORE_CPYTHON_LAYOUT_H

#include "support/binding.h"

/// Private state of CPython that memrt reads directly, because the public functions need the GIL or
/// cost more than an allocation.
///
/// The layout comes from CPython's internal headers at build time. An interpreter with another
/// layout, or a build without the headers, leaves the state unknown, and the public functions
/// serve.

/// Switch of tracemalloc: 0 while tracemalloc is off. CPython writes the int with the GIL held.
/// Points to a constant 1 while the address of the switch is unknown.
extern const int *memrt__tracemalloc_switch;

/// Cache of a context variable: the value that the variable has in the context of a thread. Valid
/// while the thread's state has the id and the context version. CPython writes the cache with the
/// GIL held.
typedef struct memrt_variable_cache {
    PyObject *value; ///< borrowed from the context
    uint64_t thread_id;
    uint64_t context_version;
} memrt_variable_cache_t;

/// Offset in bytes of the cache in a context variable; 0 while unknown, and in CPython without a
/// GIL, where variables have no such cache.
extern size_t memrt__variable_cache_offset;

/// Return the cache of a context variable. The offset must be known.
static inline const memrt_variable_cache_t *memrt__variable_cache(PyObject *variable)
{
    return (const memrt_variable_cache_t *)((const char *)variable + memrt__variable_cache_offset);
}

/// Find the private state. Call once, at import.
void memrt__cpython_layout_setup(void);

#endif
