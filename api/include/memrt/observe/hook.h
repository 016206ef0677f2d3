#ifndef MEMRT_HOOK_H
#define MEMRT_HOOK_H

/// Hooks: functions of the program that memrt calls for allocations, resizes and frees, of all
/// blocks or of a sample.

#include <stddef.h>
#include <stdint.h>

#include <memrt/policy.h>
#include <memrt/scope.h>
#include <memrt/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Maximum number of hooks at a time.
#define MEMRT_HOOKS_MAX 8u

typedef enum memrt_hook_type {
    MEMRT_HOOK_ALLOCATE = 1, ///< a new block; no other thread knows the block yet
    MEMRT_HOOK_RESIZE = 2,   ///< the block has its new size and address
    MEMRT_HOOK_FREE = 3,     ///< the block is about to be freed; its destructor has run
    MEMRT_HOOK_FAILURE = 4,  ///< a request was refused
} memrt_hook_type_t;

/// Event that a hook receives. Members that the type does not have are 0.
typedef struct memrt_hook_event {
    size_t struct_size;     ///< sizeof(memrt_hook_event_t) of the library
    uint64_t type;          ///< memrt_hook_type_t
    memrt_policy_t *policy; ///< policy of the block or of the request; borrowed for the call
    void *data;             ///< first byte of the block; NULL: a failed request
    uint64_t size;          ///< bytes, as requested
    void *old_data;         ///< of a resize: address before
    uint64_t old_size;      ///< of a resize: bytes before
    double weight;          ///< of an allocation: number of allocations of this size that the event
                            ///< stands for; 1 without a sample
    memrt_scope_t *scope; ///< scope of the block or of the request, or NULL; borrowed for the call
    uint64_t site;        ///< of an allocation that is tracked: allocation site, or 0
} memrt_hook_event_t;

typedef void (*memrt_hook_call_fn)(const memrt_hook_event_t *event, void *context);

/// Return whether a hook takes the new block of an event. The rules of memrt_hook_call_fn apply.
typedef int (*memrt_hook_wants_fn)(const memrt_hook_event_t *event, void *context);

/// Hook, with the blocks of interest. Set `struct_size`; 0 is a valid value for each member but
/// `call`.
typedef struct memrt_hook {
    size_t struct_size; ///< sizeof(memrt_hook_t)
    memrt_hook_call_fn call;
    void *context;          ///< second argument of `call` and `wants`
    memrt_policy_t *policy; ///< only blocks and requests of this policy, in any scope; NULL: of all
                            ///< policies
    uint64_t sample; ///< average bytes between allocations with an event, for a sample; 0: all
    memrt_hook_wants_fn wants; ///< called for each allocation of the sample, before `call`. The
                               ///< result 0 leaves out the block with all its events; NULL: none
} memrt_hook_t;

/// Add a hook, which is called for new blocks from now on, and for the resizes and the free of
/// these blocks. `*id` identifies the hook for hook_remove.
///
/// A sample has an allocation of `size` bytes with the probability 1 - exp(-size / sample),
/// independent of other allocations, and then all further events of that block. Failures are always
/// reported. Memory that was adopted counts as allocated.
///
/// The call may use memrt; what it allocates and frees itself causes no events. It must not release
/// the block of the event. The first 8 hooks never get events of blocks that were allocated before.
/// A later hook may get resizes and frees of blocks of an earlier, removed hook.
///
/// Ownership: `*hook` is copied; `policy` is acquired; `context` must stay valid until the removal.
/// Threads:   calls come from any thread that uses memrt, several at the same time, without a GIL
///            and with no lock of memrt held. The call must not throw or jump.
/// Failure:   MEMRT_EINVAL: struct_size or `call` is not set, or `id` is NULL. MEMRT_ELIMIT:
///            MEMRT_HOOKS_MAX hooks exist.
typedef memrt_status_t (*memrt_hook_add_fn)(const memrt_hook_t *hook, uint64_t *id);

/// Remove a hook, and wait until its calls in other threads have ended. From inside of a call of
/// any hook, the removal does not wait, because that could be for ever.
/// Failure: MEMRT_EINVAL: no hook has the id.
typedef memrt_status_t (*memrt_hook_remove_fn)(uint64_t id);

#ifdef __cplusplus
}
#endif

#endif
