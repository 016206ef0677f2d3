#include "numba/callers.h"

#include <stdint.h>
#include <string.h>

#include "core/caller_policy.h"
#include "core/current_policy.h"
#include "core/current_scope.h"
#include "core/interpreter.h"
#include "core/policy_record.h"
#include "numba/host.h"

/* --- Calls without the GIL. --- */

/// Call of compiled code that released the GIL. Its caller holds a reference to the policy.
typedef struct released_call {
    memrt_caller_t caller;
    PyThreadState *thread;
} released_call_t;

/// Mark of a pointer to a released_call_t. Thread states have even addresses.
#define CALL_MARK ((uintptr_t)1)

memrt_scope_t *memrt__nrt_scope(void)
{
    if (!memrt__current_scope_is_used()) {
        return NULL;
    }
    int is_of_context =
        memrt__caller == NULL || (!memrt__caller->is_chunk && !memrt__caller->is_fixed);
    return is_of_context && memrt__attached_thread_state() != NULL ? memrt__current_scope()
                                                                   : memrt__caller_scope();
}

/// Enter a call with `policy`, which the thread borrows now. NULL without memory.
static released_call_t *enter_call(memrt_policy_t *policy)
{
    released_call_t *call = PyMem_RawMalloc(sizeof(*call));
    if (call != NULL) {
        *call = (released_call_t){.caller = {.policy = policy, .scope = memrt__nrt_scope()}};
        if (policy != NULL) {
            memrt__api()->policy_acquire(policy);
        }
        memrt__caller_enter(&call->caller);
    }
    return call;
}

/// Leave a call and return the thread state of the call.
static PyThreadState *leave_call(released_call_t *call)
{
    PyThreadState *thread = call->thread;
    memrt__caller_leave(&call->caller);
    if (call->caller.policy != NULL) {
        memrt__api()->policy_release(call->caller.policy);
    }
    PyMem_RawFree(call);
    return thread;
}

/// Return the policy in force, NULL for the default policy.
static memrt_policy_t *get_policy(void)
{
    memrt_policy_t *policy = memrt__host_policy();
    return memrt__policy_is_default(policy) ? NULL : policy;
}

void *memrt__nrt_save_thread(void)
{
    memrt_policy_t *policy = get_policy();
    released_call_t *call = policy != memrt__caller_policy() ? enter_call(policy) : NULL;
    PyThreadState *thread = PyEval_SaveThread();
    if (call == NULL) {
        return thread;
    }
    call->thread = thread;
    return (char *)call + CALL_MARK;
}

void memrt__nrt_restore_thread(void *saved)
{
    if (((uintptr_t)saved & CALL_MARK) != 0) {
        saved = leave_call((released_call_t *)((char *)saved - CALL_MARK));
    }
    PyEval_RestoreThread(saved);
}

/* --- Parallel loops. --- */

/// Launch of a parallel loop, on the stack of the launching thread. The launching thread keeps
/// policy and scope alive until all chunks have ended.
typedef struct launch {
    memrt_nrt_chunk_fn chunk;
    void *data;
    memrt_policy_t *policy;
    memrt_scope_t *scope;
    int is_fixed; ///< whether the launching thread is in a block with a policy
} launch_t;

/// Function of the threading layer in use. Set under the GIL, before the first launch.
static memrt_nrt_parallel_for_fn parallel_for;

/// Run a chunk as part of its launch. The records of lookups before and during the chunk are
/// dropped, because the current policy of a thread depends on the chunk.
static void run_chunk(char **args, size_t *dims, size_t *steps, void *data)
{
    const launch_t *launch = data;
    memrt_caller_t caller = {.policy = launch->policy,
                             .scope = launch->scope,
                             .is_chunk = 1,
                             .is_fixed = launch->is_fixed};
    memrt__policy_record_forget();
    memrt__caller_enter(&caller);
    launch->chunk(args, dims, steps, launch->data);
    memrt__caller_leave(&caller);
    memrt__policy_record_forget();
}

/// Chunks of the default policy are wrapped, too: while a thread waits for its own loop, a
/// threading layer may give it a chunk of another loop.
void memrt__nrt_parallel_for(memrt_nrt_chunk_fn chunk, char **args, size_t *dims, size_t *steps,
                             void *data, size_t inner_ndim, size_t array_count, int num_threads)
{
    launch_t launch = {.chunk = chunk,
                       .data = data,
                       .policy = get_policy(),
                       .scope = memrt__nrt_scope(),
                       .is_fixed = memrt__caller_is_fixed()};
    parallel_for(run_chunk, args, dims, steps, &launch, inner_ndim, array_count, num_threads);
}

void *memrt__nrt_wrap_parallel_for(void *layer)
{
    memrt_nrt_parallel_for_fn wrapper = memrt__nrt_parallel_for;
    void *address;
    memcpy(&address, &wrapper, sizeof(address));
    if (layer != address) {
        memcpy(&parallel_for, &layer, sizeof(layer));
    }
    return address;
}
