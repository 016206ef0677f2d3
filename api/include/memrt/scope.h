#ifndef MEMRT_SCOPE_H
#define MEMRT_SCOPE_H

/// Scopes, to which allocations are assigned.

#include <stdint.h>

#include <memrt/meminfo.h>
#include <memrt/observe/stats.h>
#include <memrt/policy.h>
#include <memrt/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Named node in a tree of scopes, to which allocations are assigned.
///
/// The figures of a scope cover all memory that was allocated in the scope, or in a scope inside of
/// the scope, wherever the memory is freed. Therefore the figures are never below zero.
typedef struct memrt_scope memrt_scope_t;

/// Maximum number of scopes at the same time.
#define MEMRT_SCOPES_MAX 4096u

/// Return a new reference to the scope `name` inside `parent` (NULL: the root). A missing scope
/// is created.
/// Failure: MEMRT_EINVAL for a name that is empty or too long; MEMRT_ELIMIT when
///          MEMRT_SCOPES_MAX scopes are held or have live blocks; MEMRT_ENOMEM.
typedef memrt_status_t (*memrt_scope_open_fn)(memrt_scope_t *parent, const char *name,
                                              memrt_scope_t **out);

/// Acquire one more reference.
typedef void (*memrt_scope_acquire_fn)(memrt_scope_t *scope);

/// Release one reference. Earlier allocations of the scope stay in its figures. The figures
/// stay in the tree for reports, until a new scope needs the room.
/// Failure: aborts with a message if the count is 0.
typedef void (*memrt_scope_release_fn)(memrt_scope_t *scope);

/// Enter a scope: allocations of the calling thread from a policy belong to `scope` from now
/// on; NULL: to no scope.
///
/// `*before` (unless `before` is NULL) receives the previous scope. To leave `scope`, enter
/// `*before` again.
/// Ownership: borrowed; the caller holds `scope` until the thread leaves `scope`.
/// Threads:   the calling thread only. To hand a scope over, also enter the scope on the other
///            thread.
/// Failure:   MEMRT_ENOMEM, on a thread that calls memrt for the first time; leaving cannot
///            fail.
typedef memrt_status_t (*memrt_scope_enter_fn)(memrt_scope_t *scope, memrt_scope_t **before);

/// Return the scope that the calling thread is in, or NULL; borrowed.
typedef memrt_scope_t *(*memrt_scope_current_fn)(void);

/// Return a new reference to a subpolicy: a policy like `policy` (NULL: the default one) whose
/// blocks belong to `scope`, whichever thread allocates. A subpolicy serves as the context of a
/// handler. Its account and index are those of `policy`.
/// Failure: MEMRT_ENOMEM, also when no index is free.
typedef memrt_status_t (*memrt_scope_policy_fn)(memrt_scope_t *scope, memrt_policy_t *policy,
                                                memrt_policy_t **out);

/// Return the scope in which the MemInfo was allocated, or NULL; borrowed, valid while `mi` is.
typedef memrt_scope_t *(*memrt_scope_of_fn)(const memrt_meminfo_t *mi);

/// Return a new reference to the scope that was created next after `scope`, which the caller
/// holds; `scope` NULL: the first scope. Return NULL after the last scope. Parents come before
/// children.
typedef memrt_scope_t *(*memrt_scope_next_fn)(memrt_scope_t *scope);

/// Return the enclosing scope, or NULL; borrowed, valid while `scope` is.
typedef memrt_scope_t *(*memrt_scope_parent_fn)(const memrt_scope_t *scope);

/// Return the name; borrowed, valid while `scope` is.
typedef const char *(*memrt_scope_name_fn)(const memrt_scope_t *scope);

/// Return the number of the scope, unique in the process.
typedef uint32_t (*memrt_scope_id_fn)(const memrt_scope_t *scope);

/// Read the statistics of all memory that was allocated in the scope and in scopes inside of
/// the scope, wherever the memory is now. `cached` is 0.
/// Failure: MEMRT_EINVAL: struct_size is not set.
typedef memrt_status_t (*memrt_scope_stats_fn)(const memrt_scope_t *scope, memrt_stats_t *out);

/// Write the number of allocations by size, in the scope and in scopes inside of the scope:
/// MEMRT_SIZE_BINS counts into `out`.
typedef void (*memrt_scope_sizes_fn)(const memrt_scope_t *scope, uint64_t *out);

/// Read the blocks by size that were allocated in the scope and in scopes inside of the scope.
/// Failure: MEMRT_EINVAL: struct_size is not set.
typedef memrt_status_t (*memrt_scope_stats_sizes_fn)(const memrt_scope_t *scope,
                                                     memrt_sizes_t *out);

/// Restart the peak of the scope at the bytes that are live now.
typedef void (*memrt_scope_reset_peak_fn)(memrt_scope_t *scope);

#ifdef __cplusplus
}
#endif

#endif
