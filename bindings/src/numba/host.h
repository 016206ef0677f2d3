#ifndef MEMRT_BINDINGS_NUMBA_HOST_H
#define MEMRT_BINDINGS_NUMBA_HOST_H

/// Host of compiled code: the process that supplies the function table, the policy in force
/// and the tracking of new MemInfos. Two hosts exist. In a Python process the extension module is
/// the host. In a program without Python the library libmemrt_nrt is the host, and is compiled with
/// MEMRT_NRT_LIBRARY. The functions are inline, because each allocation calls them.

#ifdef MEMRT_NRT_LIBRARY

#include <memrt/external.h>

/// Table of the loaded libmemrt, set before the first allocation and never changed.
extern const memrt_api_t *memrt__nrt_table;

static inline const memrt_api_t *memrt__host_api(void)
{
    return memrt__nrt_table;
}

/// Return true: programs without Python have no policy in force.
static inline int memrt__host_has_default_policy(void)
{
    return 1;
}

static inline int memrt__host_read_policy(memrt_policy_t **policy)
{
    *policy = NULL;
    return 1;
}

static inline memrt_policy_t *memrt__host_policy(void)
{
    return NULL;
}

/// Return false: programs without Python have no tracemalloc.
static inline int memrt__host_may_trace(void)
{
    return 0;
}

static inline int memrt__host_track(memrt_meminfo_t *mi)
{
    (void)mi;
    return 1;
}

#else

#include "core/caller_policy.h"
#include "core/current_policy.h"
#include "core/interpreter.h"
#include "core/tracemalloc.h"

static inline const memrt_api_t *memrt__host_api(void)
{
    return memrt__api();
}

/// Return whether the default policy is in force everywhere.
static inline int memrt__host_has_default_policy(void)
{
    return memrt__policy_is_default_everywhere();
}

/// Return whether the policy in force is known without a lookup, and store the policy in `*policy`.
static inline int memrt__host_read_policy(memrt_policy_t **policy)
{
    return memrt__policy_record_read(policy);
}

static __attribute__((noinline)) memrt_policy_t *memrt__host_look_up_policy(void)
{
    return memrt__attached_thread_state() != NULL ? memrt__current_policy()
                                                  : memrt__caller_policy();
}

/// Return the policy in force. May return NULL for the default policy. NumPy keeps the handler in a
/// context variable, which requires the GIL: threads without the GIL get the policy of their
/// caller.
static inline memrt_policy_t *memrt__host_policy(void)
{
    memrt_policy_t *policy;
    if (memrt__host_has_default_policy()) {
        return NULL;
    }
    return memrt__host_read_policy(&policy) ? policy : memrt__host_look_up_policy();
}

/// Return whether tracemalloc may be on.
static inline int memrt__host_may_trace(void)
{
    return !memrt__tracemalloc_is_off();
}

/// Track a new MemInfo in tracemalloc. Returns false if tracemalloc has no memory.
static inline int memrt__host_track(memrt_meminfo_t *mi)
{
    return memrt__tracemalloc_is_off() || memrt__tracemalloc_track_compiled(mi);
}

#endif

#endif
