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
extern MEMRT_HIDDEN const int *memrt__tracemalloc_switch;

/// First members of a context. The variables are one immutable mapping: a change of any variable
/// puts another mapping into the context. CPython writes the members with the GIL held.
typedef struct memrt_context {
    PyObject base;
    PyObject *outer;
    PyObject *variables;
} memrt_context_t;

/// Whether contexts have this layout; 0 while unknown, and in CPython without a GIL.
extern int memrt__context_is_known;

#if PY_VERSION_HEX < 0x030C0000

/// Address of the thread state that holds the GIL. Points to a constant 0 while unknown.
extern MEMRT_HIDDEN const uintptr_t *memrt__attached_state;

#endif

/// Find the private state. Call once, at import.
void memrt__cpython_layout_setup(void);

#endif
