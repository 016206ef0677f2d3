#ifndef MEMRT_BINDINGS_CORE_CURRENT_POLICY_H
#define MEMRT_BINDINGS_CORE_CURRENT_POLICY_H

#include "core/current_scope.h"
#include "core/policy_record.h"
#include "support/binding.h"

#include <stdatomic.h>

/// The policy that a context allocates with: the policy of NumPy's handler in force, in the current
/// scope.

/// Return the handler to allocate with. For None: the handler in force in this context if that
/// leads to memrt, otherwise the default policy's handler. For a memrt.Policy or a memrt handler:
/// the handler of that policy. The default policy and an explicit policy are taken in the scope of
/// this context.
/// Ownership: new reference.
/// Failure: NULL with an exception, TypeError for any other object.
PyObject *memrt__current_handler_for(PyObject *policy);

/// Return the policy that allocations of this context use, borrowed: the policy of
/// memrt__current_handler_for(None). NULL, without an exception, for the default policy, and if the
/// lookup failed.
memrt_policy_t *memrt__current_policy(void);

/// Whether any context ever had a policy other than the default policy. Never cleared: contexts are
/// copied, so the end of the last copy is unknown. Only for the function below.
extern atomic_bool memrt__policy_was_entered;

/// Return whether every context has the default policy and no context is in a scope. Allocations of
/// compiled code then skip the lookup of the current policy. Needs no GIL.
static inline int memrt__current_policy_is_default_everywhere(void)
{
    return !atomic_load_explicit(&memrt__policy_was_entered, memory_order_relaxed) &&
           !memrt__current_scope_is_used();
}

/// Create the Python objects that each lookup uses. Call once, at import. -1 with an exception.
int memrt__current_policy_setup(void);

/// Put a handler in force, and return handlers in force.
extern PyMethodDef memrt__current_policy_methods[];

#endif
