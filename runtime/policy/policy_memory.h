#ifndef MEMRT_POLICY_POLICY_MEMORY_H
#define MEMRT_POLICY_POLICY_MEMORY_H

#include "runtime/policy/policy_table.h"

/// Memory of policies.

/// Allocate a policy, all zero. Failure: returns NULL when out of memory.
memrt_policy_t *memrt__policy_memory_alloc(void);

/// Map a fork subpolicy, all zero, from the system. The C library's malloc may have been left
/// locked by a thread that no longer exists. Failure: returns NULL when out of memory.
memrt_policy_t *memrt__policy_memory_map(void);

/// Free a policy or fork subpolicy. The allocator stays.
void memrt__policy_memory_free(memrt_policy_t *policy);

#endif
