#ifndef MEMRT_POLICY_RECLAIM_H
#define MEMRT_POLICY_RECLAIM_H

#include <stdbool.h>
#include <stddef.h>

#include <memrt/process/reclaim.h>

#include "runtime/base/check.h"
#include "runtime/base/compiler.h"
#include "runtime/stats/account.h"

/// Reclaim: free memory before an allocation is refused, then repeat the allocation.

/// Implementations of the memrt_api_t functions with the same names.
memrt_status_t memrt__reclaim_add(memrt_reclaim_fn function, void *context,
                                  int priority) MEMRT_MUST_CHECK;
memrt_status_t memrt__reclaim_remove(memrt_reclaim_fn function, void *context) MEMRT_MUST_CHECK;

/// Allocation to repeat. Returns true on success, or if further repetitions are useless.
typedef bool (*memrt__attempt_fn)(void *context);

/// Free memory in steps for a failed allocation of `wanted` more bytes: cached memory of all
/// policies, unless a limit of the account has no room, then one callback after the other. After
/// each step, call `attempt`, until `attempt` returns true. Returns whether an attempt did so.
/// Takes the lock of rank POLICIES, and no lock is held while `attempt` and callbacks run.
MEMRT__COLD bool memrt__reclaim(const memrt__account_t *account, size_t wanted,
                                memrt__attempt_fn attempt, void *context);

/// Run one callback after the other, as before a refusal of `wanted` bytes, until `attempt` returns
/// true. Not inside of a callback. No lock is held while `attempt` and callbacks run.
void memrt__reclaim_until(size_t wanted, memrt__attempt_fn attempt, void *context);

/// Forget the runs of threads that do not exist in a forked child. May be repeated.
void memrt__reclaim_forked(void);

#if MEMRT_DEBUG
/// Return whether the invariants of the callbacks hold. Takes the lock of rank POLICIES.
bool memrt__reclaim_is_valid(void);
#endif

#endif
