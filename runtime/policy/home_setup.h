#ifndef MEMRT_POLICY_HOME_SETUP_H
#define MEMRT_POLICY_HOME_SETUP_H

#include "runtime/policy/home.h"
#include "runtime/stats/pause.h"

/// Slow path of homes: find the policy in force and set the home for it.

/// Return the policy in force for the policy that a caller names. Sets a home of `self`, the record
/// of the calling thread or memrt__no_thread, if the thread has a shard for the account. The first
/// block of an account makes the shard, so that a home needs no memory.
///
/// Failure: returns the named policy when a subpolicy finds no memory or no free index, or the
/// thread no record.
MEMRT__COLD memrt_policy_t *memrt__home_make(memrt__thread_t *self, memrt_policy_t *named);

/// Return the policy for a request to `policy` (NULL: the default policy) on the calling thread.
/// The result is the subpolicy in the scope of the thread, or `policy` outside of scopes. Sets the
/// home for `policy`, as memrt__home_make().
///
/// Failure: as memrt__home_make().
static inline memrt_policy_t *memrt__home_policy(memrt_policy_t *policy)
{
    memrt__stats_await_pause();
    memrt__thread_t *self = memrt__self;
    for (unsigned i = 0; i < MEMRT__DEFAULT_HOME; i++) {
        if (memrt__home_is_set_for(&self->homes[i], policy)) {
            return memrt__policies[self->homes[i].account];
        }
    }
    return memrt__home_make(self, policy);
}

#endif
