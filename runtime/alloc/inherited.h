#ifndef MEMRT_ALLOC_INHERITED_H
#define MEMRT_ALLOC_INHERITED_H

#include "runtime/alloc/policy.h"

/// What a forked child inherited is on accounts of its own.
///
/// In the child each policy, and each part in a scope, of which blocks are live goes on with a
/// fresh account at a fresh index. Its old index, which these blocks name, leads to a stand-in from
/// then on: a part of the policy, in the same scope, with its settings and its old account, from
/// which nobody allocates but who resizes. So a block says whether it was inherited without a word
/// more, and deaths count where they always did. Policies and scopes keep their addresses; their
/// sums have both.
///
/// A stand-in lives as long as a block of it does, or callers know its policy by that index.

static inline bool memrt__is_inherited(const memrt_policy_t *policy)
{
    return policy->account.origin == MEMRT__INHERITED;
}

/// In a forked child, while it has one thread and no lock is held. A policy for which there is no
/// memory or no index goes on with one account, which is marked as mixed.
void memrt__inherited_forked(void);

/// The end of a stand-in.
void memrt__inherited_free(memrt_policy_t *stand_in);

#endif
