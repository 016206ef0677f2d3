#ifndef MEMRT_BINDINGS_CORE_CALLER_POLICY_H
#define MEMRT_BINDINGS_CORE_CALLER_POLICY_H

#include "support/binding.h"

/// Policy of the caller of compiled code, for the time in which a thread runs the code without the
/// GIL. NumPy keeps the policy in force in a context variable, which needs the GIL.
///
/// Three kinds of callers exist. A call that releases the GIL has the policy of the context of its
/// thread. A chunk of a parallel loop has the policy that the launch of the loop had on another
/// thread. A block of compiled code has the policy that the code chose, with and without the GIL.
/// Callers of a thread are nested, innermost first.
///
/// Threads: each thread has its own callers. No function needs the GIL.

typedef struct memrt_caller memrt_caller_t;

struct memrt_caller {
    const memrt_caller_t *outer; ///< caller outside of this caller, or NULL
    memrt_policy_t *policy;      ///< borrowed until the caller is left; NULL: the default policy
    memrt_scope_t *scope;        ///< scope of `policy`, borrowed like the policy, or NULL
    int is_chunk;                ///< whether the thread runs a chunk of a parallel loop
    int is_fixed;                ///< whether `policy` is in force in every context
};

/// Innermost caller of the calling thread, or NULL. Only for the functions of this header.
extern MEMRT_THREAD_LOCAL const memrt_caller_t *memrt__caller;

/// Enter `caller`. All members but `outer` are set. `caller` exists until memrt__caller_leave().
static inline void memrt__caller_enter(memrt_caller_t *caller)
{
    caller->outer = memrt__caller;
    memrt__caller = caller;
}

/// Leave `caller`, which is the innermost caller of the calling thread.
static inline void memrt__caller_leave(const memrt_caller_t *caller)
{
    memrt__caller = caller->outer;
}

/// Return the policy of the innermost caller, borrowed; NULL for the default policy.
static inline memrt_policy_t *memrt__caller_policy(void)
{
    return memrt__caller != NULL ? memrt__caller->policy : NULL;
}

/// Return the scope of the innermost caller, borrowed, or NULL.
static inline memrt_scope_t *memrt__caller_scope(void)
{
    return memrt__caller != NULL ? memrt__caller->scope : NULL;
}

/// Return whether the policy of the innermost caller is in force in every context.
static inline int memrt__caller_is_fixed(void)
{
    return memrt__caller != NULL && memrt__caller->is_fixed;
}

/// Return the policy of a chunk of a parallel loop, borrowed. NULL for the default policy, and
/// outside of chunks.
static inline memrt_policy_t *memrt__caller_chunk_policy(void)
{
    return memrt__caller != NULL && memrt__caller->is_chunk ? memrt__caller->policy : NULL;
}

#endif
