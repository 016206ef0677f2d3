#ifndef MEMRT_ALLOC_SCOPE_H
#define MEMRT_ALLOC_SCOPE_H

#include <memrt/external.h>

#include "runtime/alloc/policy.h"
#include "runtime/base/watch.h"
#include "runtime/stats/stats.h"

/// The tree of scopes, and in each the parts of policies that are allocated from there.
///
/// A part is a policy with an account of its own; settings and allocator are its base's. A block
/// names the part where it would name the policy. So a block says where it was born without a word
/// more, whoever frees it gives the bytes back to the scope of its birth, and both cost what they
/// cost outside of scopes.
///
/// A part lives as long as a block of it does, or both its scope and its base are held. A scope
/// stays for reports when nobody holds it any more, until MEMRT_SCOPES_MAX others want its place;
/// what it counted is then what the one around it counts of it.
struct memrt_scope {
    memrt__level_t level;          ///< up: the one around it
    struct memrt_scope *parent;    ///< fixed; held; NULL: none
    struct memrt_scope *next;      ///< under the lock of rank POLICIES; all scopes, oldest first
    memrt_policy_t *parts;         ///< under that lock, linked by next_part
    size_t refs;                   ///< atomic; 0: kept for reports alone
    uint32_t id;                   ///< fixed; from 1 on, never used again
    char name[MEMRT_NAME_MAX + 1]; ///< fixed
};

static inline bool memrt__scope_is_held(const memrt_scope_t *scope)
{
    return memrt__load_acquire(&scope->refs) != 0;
}

/// The functions of memrt_api_t of the same names.
memrt_status_t memrt__scope_open(memrt_scope_t *parent, const char *name,
                                 memrt_scope_t **out) MEMRT_MUST_CHECK;
void memrt__scope_acquire(memrt_scope_t *scope);
void memrt__scope_release(memrt_scope_t *scope);
memrt_status_t memrt__scope_enter(memrt_scope_t *scope, memrt_scope_t **before) MEMRT_MUST_CHECK;
memrt_scope_t *memrt__scope_current(void);
memrt_status_t memrt__scope_policy(memrt_scope_t *scope, memrt_policy_t *policy,
                                   memrt_policy_t **out) MEMRT_MUST_CHECK;
memrt_scope_t *memrt__scope_next(memrt_scope_t *scope);

/// Whether a scope lives at that address, which may be any, and somebody holds it.
bool memrt__scope_is_live(const memrt_scope_t *scope);

/// As memrt__policy_here(), where the thread does not know it from the last time.
MEMRT__COLD memrt_policy_t *memrt__scope_look(memrt_policy_t *policy);

/// The address of a part that was destroyed may be that of another by now.
static inline bool memrt__scope_knows(const memrt__thread_t *self, const memrt_policy_t *policy)
{
    return self->part_of == policy && self->parts_gone == memrt__load_relaxed(&memrt__parts_gone);
}

/// What meets a request to `policy`, NULL for the default one, on the calling thread: the policy,
/// or its part in the scope that the thread is in. Without memory for a part, or a free index, it
/// is the policy.
static inline memrt_policy_t *memrt__policy_here(memrt_policy_t *policy)
{
    memrt__thread_t *self = memrt__self;
    policy = memrt__policy_or_default(policy);
    if (MEMRT__LIKELY(!memrt__is_watched(MEMRT__WATCH_SCOPES)) || self == NULL) {
        return policy;
    }
    return MEMRT__LIKELY(memrt__scope_knows(self, policy)) ? self->part : memrt__scope_look(policy);
}

/// Home of the calling thread's births from a policy, or a part of one, itself. `self` is the
/// calling thread's record, NULL allowed.
static inline memrt__home_t memrt__home_of(const memrt__thread_t *self,
                                           const memrt_policy_t *policy)
{
    if (MEMRT__UNLIKELY(self == NULL || !policy->quick)) {
        return (memrt__home_t){NULL, 0};
    }
    uint32_t account = policy->account.index;
    return (memrt__home_t){memrt__thread_shard(self, account), account};
}

/// That of memrt__policy_here(), for a policy, where the thread knows it from the last time.
static inline memrt__home_t memrt__home_here(const memrt__thread_t *self,
                                             const memrt_policy_t *policy)
{
    if (MEMRT__UNLIKELY(self == NULL || !memrt__scope_knows(self, policy))) {
        return (memrt__home_t){NULL, 0};
    }
    return (memrt__home_t){self->part_shard, self->part->account.index};
}

#endif
