#ifndef MEMRT_BINDINGS_CORE_MEM_HANDLER_H
#define MEMRT_BINDINGS_CORE_MEM_HANDLER_H

#include "support/binding.h"

/// Name that NumPy requires of the capsule of a handler.
#define MEMRT_HANDLER_CAPSULE "mem_handler"

/// Create a NEP 49 capsule over `policy`. NumPy calls memrt's block functions directly through the
/// capsule. NumPy keeps the capsule with each array allocated through it, so the struct and the
/// policy outlive these arrays.
/// Ownership: steals a reference to the policy, also on failure.
/// Failure: NULL with an exception.
PyObject *memrt__handler_new(memrt_policy_t *policy);

/// Return the policy of a memrt handler, borrowed from the handler.
memrt_policy_t *memrt__handler_policy(PyObject *handler);

/// Return whether memrt__handler_new() made a handler.
int memrt__handler_is_own(PyObject *handler);

/// Return whether a handler allocates from memrt, including handlers made by other modules.
int memrt__handler_is_memrt(PyObject *handler);

/// Return the name that NumPy knows a handler by, borrowed. "" for an object that is not a handler.
const char *memrt__handler_name(PyObject *handler);

/// Create the handler of the default policy. Call once, at import. -1 with an exception.
int memrt__handler_setup(void);

extern PyMethodDef memrt__handler_methods[];

#endif
