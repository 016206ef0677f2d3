#ifndef MEMRT_HANDLER_H
#define MEMRT_HANDLER_H

#include "binding.h"

/// New NEP 49 capsule over `policy`: NumPy's allocations go to memrt's block functions directly.
/// NumPy keeps the capsule with each array made through it, so the struct and the policy outlive
/// them all. Steals a reference to the policy, also on failure.
PyObject *memrt__handler_new(memrt_policy_t *policy);

/// The handler to allocate by: for None the one in force in this context when it is memrt's, else
/// the default policy's; otherwise that of a memrt.Policy, or a handler of memrt's itself. New
/// reference, or NULL with TypeError.
PyObject *memrt__handler_for(PyObject *policy);

/// The policy of a handler of memrt's; borrowed from it.
memrt_policy_t *memrt__handler_policy(PyObject *handler);

/// The policy whose handler is in force in this context, borrowed from it; NULL, without an
/// exception, when it is none of memrt's.
memrt_policy_t *memrt__handler_policy_in_force(void);

/// The name that NumPy knows a handler by; borrowed. "" for what is no handler.
const char *memrt__handler_name(PyObject *handler);

/// Make the default policy's handler; once, at import. -1 with an exception.
int memrt__handler_setup(void);

extern PyMethodDef memrt__handler_methods[];

#endif
