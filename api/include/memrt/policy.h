#ifndef MEMRT_POLICY_H
#define MEMRT_POLICY_H

/// Policies, from which memory is allocated.

#include <stddef.h>
#include <stdint.h>

#include <memrt/allocator.h>
#include <memrt/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Allocator with its settings and its own account of statistics.
///
/// Ownership: live blocks keep the account of their policy alive. To allocate from a policy, the
///            caller must hold a reference to the policy.
typedef struct memrt_policy memrt_policy_t;

/// Settings of a new policy. Set `struct_size`; zero in any other member selects the default.
typedef struct memrt_policy_options {
    size_t struct_size; ///< sizeof(memrt_policy_options_t)
    const char *name;   ///< name in reports, at most MEMRT_NAME_MAX bytes; NULL: "policy"
    size_t alignment;   ///< alignment of every data pointer, a power of two, at least 64; 16: data
                        ///< of blocks is at 16 modulo 64, as malloc's; 0: MEMRT_ALIGNMENT. If
                        ///< MEMRT_ALIGNMENT is 64, 0 also means an alignment of 16 for blocks of
                        ///< 1 to MEMRT_TINY_MAX bytes
    const memrt_allocator_t *allocator; ///< copied; NULL: the default allocator

    /* Settings for blocks above 1 MiB of this policy, as texts in the form of the option's value;
       NULL: the setting of the process. All must be NULL if `allocator` is set. */
    const char *cache_limit; ///< MEMRT_CACHE_LIMIT: maximum bytes of freed blocks kept for reuse
    const char *decay;       ///< MEMRT_DECAY: milliseconds until unused memory is given back
    const char *hugepages;   ///< MEMRT_HUGEPAGES: blocks for which huge pages are advised

    /* Setting for blocks of any size, in the same form, and also NULL if `allocator` is set. The
       setting has no effect under MEMRT_CHECK. */
    const char *guard_sample; ///< MEMRT_GUARD_SAMPLE: average bytes between two guarded blocks
} memrt_policy_options_t;

/// Create a policy, count 1.
/// Failure: MEMRT_EINVAL for a bad name, alignment, allocator table or text (option_check
///          explains a bad text); MEMRT_ELIMIT when 4095 policies are live, subpolicies of
///          scopes included; MEMRT_ENOMEM.
typedef memrt_status_t (*memrt_policy_new_fn)(const memrt_policy_options_t *options,
                                              memrt_policy_t **out);

/// Acquire one more reference.
typedef void (*memrt_policy_acquire_fn)(memrt_policy_t *policy);

/// Release one reference. After the last release, the policy must not be used to allocate; its
/// blocks stay valid.
/// Failure: aborts with a message if the count is 0.
typedef void (*memrt_policy_release_fn)(memrt_policy_t *policy);

/// Return the default policy, which serves all requests without a policy; borrowed, never
/// destroyed.
typedef memrt_policy_t *(*memrt_policy_default_fn)(void);

/// Set the allocator of the default policy, once and before its first use: no memory may have been
/// requested from the policy, also not in a scope. Policies without an allocator of their own
/// continue to use memrt's allocator. MEMRT_ALLOCATOR does the same from the environment.
/// Ownership: memrt copies the table; `ctx` must live as long as the process, because the default
///            policy is never destroyed.
/// Threads:   other threads may use memrt meanwhile. After MEMRT_OK, all memory of the policy comes
///            from `allocator`, after a failure none.
/// Failure:   MEMRT_EBUSY if the policy was used, or has an allocator from an earlier call or
///            MEMRT_ALLOCATOR; MEMRT_EINVAL for a bad allocator table; MEMRT_ENOMEM.
typedef memrt_status_t (*memrt_policy_default_set_allocator_fn)(const memrt_allocator_t *allocator);

/// Give all memory of a policy back at once, after a check that no block of the policy is live.
///
/// Each array, MemInfo, exported buffer and raw block of the policy in any scope is a live block,
/// also with a single reference, and so is adopted memory. memrt never frees a live block. With a
/// live block, the call changes nothing, and writes a text of several lines to `why`: the number of
/// blocks, and the largest tracked blocks with references, names and allocation sites.
///
/// Without a live block, the allocator of the policy gives back its memory: chunks of an arena,
/// cached mappings, blocks in quarantine. `bytes` has the bytes given back; an arena on memrt's
/// heap also gives unused memory of the heap back. The policy stays usable. A policy without an
/// allocator or settings of its own keeps no memory, because memrt's heap serves all policies:
/// `release_unused` gives memory of the heap back. A NULL policy is the default policy.
/// Threads: other threads may use the policy; a block that they allocate meanwhile is valid.
/// Failure: MEMRT_EBUSY with a live block; MEMRT_ENOTSUP if libmemrt has no counters. `why` has at
///          most `length` bytes with the final zero; 0: NULL is valid.
typedef memrt_status_t (*memrt_policy_reset_fn)(memrt_policy_t *policy, size_t *bytes, char *why,
                                                size_t length);

/// Return the name; borrowed, valid while the policy is.
typedef const char *(*memrt_policy_name_fn)(const memrt_policy_t *policy);

/// Return the alignment of data pointers in bytes.
typedef size_t (*memrt_policy_alignment_fn)(const memrt_policy_t *policy);

/// Return the index that live lists show; the default policy has index 0. An index is reused
/// after the policy and its blocks are gone.
typedef uint32_t (*memrt_policy_index_fn)(const memrt_policy_t *policy);

/// Return a new reference to the policy at `index`, or NULL. To visit all policies, pass each
/// index from 0 to policy_limit() - 1; most indices are free. A policy without references whose
/// blocks are live is also returned; such a policy no longer caches memory.
typedef memrt_policy_t *(*memrt_policy_at_fn)(uint32_t index);

/// Return the number of indices.
typedef uint32_t (*memrt_policy_limit_fn)(void);

#ifdef __cplusplus
}
#endif

#endif
