#ifndef MEMRT_BINDINGS_CORE_CURRENT_POLICY_H
#define MEMRT_BINDINGS_CORE_CURRENT_POLICY_H

#include "core/current_scope.h"
#include "core/policy_record.h"
#include "support/binding.h"

/// Policy of the allocations of a context: the policy of NumPy's handler in force, in the current
/// scope.

/// Return the handler to allocate with. For None: the handler in force in this context if the
/// handler leads to memrt, otherwise the default policy's handler. For a memrt.Policy or a memrt
/// handler: the handler of that policy. The default policy and an explicit policy are taken in the
/// scope of this context. Ownership: new reference. Failure: NULL with an exception, TypeError for
/// any other object.
PyObject *memrt__current_handler_for(PyObject *policy);

/// Return whether a policy is the default policy, outside of scopes. NULL is the default policy.
int memrt__policy_is_default(const memrt_policy_t *policy);

/// Return the policy for allocations of this context, borrowed: the policy of
/// memrt__current_handler_for(None). In a chunk of a parallel loop, the policy of the launch stands
/// in for the default policy. In a block of compiled code with a policy, the policy of the block.
/// NULL, without an exception, if the lookup failed.
memrt_policy_t *memrt__current_policy(void);

/// Context variable with a tuple: the handlers that memrt put in force in a context, last one last.
/// Set at import. Only the package reads the entries.
extern PyObject *memrt__handler_stack_variable;

/// Create the Python objects that each lookup uses. Call once, at import. -1 with an exception.
int memrt__current_policy_setup(PyObject *module);

/// Put a handler in force, and return handlers in force.
extern PyMethodDef memrt__current_policy_methods[];

#endif
