#ifndef MEMRT_EVENT_BLOCK_FAULT_H
#define MEMRT_EVENT_BLOCK_FAULT_H

#include "runtime/config/fault_injection.h"
#include "runtime/policy/policy_table.h"

/// Fault injection for blocks, which have a policy and a scope.

/// Count a request for `size` bytes of data of `policy`, and return whether the request must fail.
/// See memrt__fault_count.
MEMRT__COLD bool memrt__block_fault_count(unsigned kind, size_t size, const memrt_policy_t *policy);

/// Return whether a request for a block must fail. Costs one load while no plan is set.
static inline bool memrt__block_fault_is_due(unsigned kind, size_t size,
                                             const memrt_policy_t *policy)
{
    return MEMRT__UNLIKELY(memrt__is_slow(MEMRT__SLOW_FAILURE)) &&
           memrt__block_fault_count(kind, size, policy);
}

#endif
