#ifndef MEMRT_EXTERNAL_H
#define MEMRT_EXTERNAL_H

/// Function table of memrt for compiled code: all functions of memrt as slots of memrt_api_t.
///
/// Threads: unless the comment of a slot states otherwise, every slot may be called from any
///          thread, without a GIL, at any time. The time before any setup and the time after
///          memrt_api_t.shutdown are included.

#include <stddef.h>
#include <stdint.h>

#include <memrt/allocator.h>
#include <memrt/cuda.h>
#include <memrt/meminfo.h>
#include <memrt/stats.h>
#include <memrt/status.h>
#include <memrt/symbol.h>
#include <memrt/trace.h>
#include <memrt/tracking.h>
#include <memrt/version.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Allocator with its settings and its own account of statistics.
///
/// Ownership: live blocks keep the account of their policy alive. To allocate from a policy, the
///            caller must hold a reference to the policy.
typedef struct memrt_policy memrt_policy_t;

/// Named node in a tree of scopes, to which allocations are assigned.
///
/// The figures of a scope cover all memory that was allocated in the scope, or in a scope inside of
/// the scope, wherever the memory is freed. Therefore the figures are never below zero.
typedef struct memrt_scope memrt_scope_t;

/// Maximum number of scopes at the same time.
#define MEMRT_SCOPES_MAX 4096u

/// Settings of a new policy. Set `struct_size`; zero in any other member selects the default.
typedef struct memrt_policy_options {
    size_t struct_size; ///< sizeof(memrt_policy_options_t)
    const char *name;   ///< name in reports, at most MEMRT_NAME_MAX bytes; NULL: "policy"
    size_t alignment;   ///< alignment of every data pointer, a power of two; 0: MEMRT_ALIGNMENT. If
                        ///< MEMRT_ALIGNMENT is 64, 0 also means an alignment of 16 for blocks of
                        ///< 1 to MEMRT_TINY_MAX bytes
    const memrt_allocator_t *allocator; ///< copied; NULL: the default allocator

    /* Settings for blocks above 1 MiB of this policy, as texts in the form of the option's value;
       NULL: the setting of the process. All three must be NULL if `allocator` is set. */
    const char *cache_limit; ///< MEMRT_CACHE_LIMIT: maximum bytes of freed blocks kept for reuse
    const char *decay;       ///< MEMRT_DECAY: milliseconds until unused memory is given back
    const char *hugepages;   ///< MEMRT_HUGEPAGES: blocks for which huge pages are advised
} memrt_policy_options_t;

/// Settings of a new MemInfo. Set `struct_size`; zero in any other member selects the default. A
/// NULL pointer to the struct selects all defaults.
typedef struct memrt_new_options {
    size_t struct_size;     ///< sizeof(memrt_new_options_t)
    memrt_policy_t *policy; ///< borrowed; NULL: the default policy
    size_t alignment;       ///< power of two up to MEMRT_ALIGN_MAX; 0: alignment of the policy
    int zeroed;             ///< non-zero: all bytes of the data are zero
    int readonly;           ///< non-zero: read-only, for memrt_api_t.readonly and bindings
    memrt_dtor_fn dtor;     ///< destructor; NULL: none
    void *dtor_info;        ///< third argument of `dtor`
    memrt_external_allocator_t *external; ///< allocator of the block; NULL: the policy's allocator.
                                          ///< Must be NULL for a resizable MemInfo
    const char *name;                     ///< copied, at most MEMRT_NAME_MAX bytes; NULL: no name
} memrt_new_options_t;

/// Observer of the blocks that were marked with memrt_api_t.watch.
///
/// `resize` and `free` must not be NULL. The functions must not call memrt.
/// Threads: any thread, without a GIL, with no lock of memrt held. `watch` is called on the thread
///          that called memrt_api_t.watch.
typedef struct memrt_watcher {
    size_t struct_size; ///< sizeof(memrt_watcher_t)
    /// Called before the old block is freed.
    void (*resize)(void *old_data, void *new_data, size_t new_size);
    /// Called after the destructor, before the block is freed.
    void (*free)(void *data);
    /// Called after memrt_api_t.watch set the mark; may be NULL.
    void (*watch)(void *data);
} memrt_watcher_t;

/* Declared in memrt/dlpack.h and in DLPack's own header, for programs that exchange tensors. */
struct memrt_dlpack_view;
struct DLManagedTensor;
struct DLManagedTensorVersioned;
/* Declared in memrt/arrow.h, for programs that exchange Arrow arrays. */
struct memrt_arrow_view;
struct ArrowArray;
struct ArrowSchema;

/// Table of all functions, as memrt_get_api() returns the table. New slots are only appended.
typedef struct memrt_api {
    /* --- The six slots of Numba's NRT_api_functions: same order, same signatures. --- */

    /// Create a MemInfo over `nbytes` bytes, count 1, data aligned to 64 bytes. NULL: out of
    /// memory.
    memrt_meminfo_t *(*allocate)(size_t nbytes);
    /// Create a MemInfo as `allocate` does, with memory from `allocator` (NULL: as `allocate`).
    /// NULL: out of memory.
    memrt_meminfo_t *(*allocate_external)(size_t nbytes, memrt_external_allocator_t *allocator);
    /// Create a MemInfo over foreign `data` of unknown size; the last release calls `dtor(data)`.
    /// Ownership: memrt owns `data`, unless the call returns NULL.
    /// Failure:   NULL: out of memory; the caller still owns `data`.
    memrt_meminfo_t *(*manage_memory)(void *data, memrt_managed_dtor_fn dtor);
    /// Acquire one more reference. The caller already holds a reference.
    void (*acquire)(memrt_meminfo_t *mi);
    /// Release one reference; the last release runs the destructor and frees the block.
    /// Ownership: consumes the caller's reference. The caller must not use `mi` afterwards.
    /// Threads:   earlier writes to the data happen before the destructor.
    /// Failure:   aborts with a message if the count is 0. A second release of the last reference
    ///            is detected in this way, as long as the memory is not in use again.
    void (*release)(memrt_meminfo_t *mi);
    /// Return the first byte of the data; borrowed.
    void *(*get_data)(memrt_meminfo_t *mi);

    /* --- Properties of the table. --- */

    size_t struct_size;  ///< bytes of this table; slots beyond do not exist, see MEMRT_HAS
    uint32_t abi_major;  ///< MEMRT_ABI_MAJOR of the library
    uint32_t abi_minor;  ///< MEMRT_ABI_MINOR of the library
    uint64_t features;   ///< MEMRT_FEATURE_* bits
    const char *version; ///< "0.1.0"

    /* --- MemInfo. --- */

    /// Create a MemInfo with its own block of `size` bytes, count 1. A size of 0 still yields an
    /// address.
    /// Failure: MEMRT_EINVAL for an alignment that is too large or not a power of two, and for a
    ///          name that is too long; MEMRT_ENOMEM.
    memrt_status_t (*meminfo_new)(size_t size, const memrt_new_options_t *options,
                                  memrt_meminfo_t **out) MEMRT_MUST_CHECK;
    /// Create a MemInfo over memory that the caller hands over, count 1. `options->dtor` frees the
    /// memory after the last release.
    /// Ownership: memrt owns `data` on MEMRT_OK; on failure the caller still owns `data`.
    /// Failure:   MEMRT_EINVAL for NULL data with a non-zero size, and for an option that does not
    ///            apply (zeroed, alignment, external); MEMRT_ENOMEM.
    memrt_status_t (*meminfo_adopt)(void *data, size_t size, const memrt_new_options_t *options,
                                    memrt_meminfo_t **out) MEMRT_MUST_CHECK;
    /// Acquire one more reference, unless the count is already zero. Return whether a reference was
    /// acquired.
    /// Threads: any. During the call, a table lock of the caller must keep `mi` from being freed.
    int (*try_acquire)(memrt_meminfo_t *mi);
    /// Run the destructor and free the block, for compiled code that decremented the count to zero
    /// by itself.
    void (*call_dtor)(memrt_meminfo_t *mi);
    /// Return the number of references at this moment; a hint only, if several threads run.
    size_t (*refcount)(const memrt_meminfo_t *mi);
    /// Return the size in bytes, as requested.
    size_t (*size)(const memrt_meminfo_t *mi);
    /// Return the context that the destructor receives; for adopted memory, the object that keeps
    /// the memory alive.
    void *(*dtor_info)(const memrt_meminfo_t *mi);
    /// Return whether the MemInfo was created with `readonly`.
    int (*readonly)(const memrt_meminfo_t *mi);
    /// Return the external allocator that made the block, or NULL.
    memrt_external_allocator_t *(*external_allocator)(const memrt_meminfo_t *mi);
    /// Set the name for reports; NULL or "" removes the name.
    /// Failure: MEMRT_EINVAL for a name of more than MEMRT_NAME_MAX bytes; MEMRT_ENOMEM.
    memrt_status_t (*set_name)(memrt_meminfo_t *mi, const char *name) MEMRT_MUST_CHECK;
    /// Copy the name ("" for none) into `buffer`, which has MEMRT_NAME_MAX + 1 bytes.
    void (*get_name)(const memrt_meminfo_t *mi, char *buffer);
    /// Write a description of the MemInfo for people, in one line. Write at most `length` bytes
    /// with the closing zero; return the length of the whole line without the zero.
    size_t (*dump)(const memrt_meminfo_t *mi, char *buffer, size_t length);
    /// Return the policy that accounts for the MemInfo; borrowed, valid while `mi` is.
    memrt_policy_t *(*policy_of)(const memrt_meminfo_t *mi);

    /* --- Resizable MemInfos: the data may move, so read the data pointer again after each call.
           Only one thread at a time may resize. The caller must inform all other holders of
           references. --- */

    /// Create a resizable MemInfo with `size` bytes of data, count 1. `options->dtor` receives the
    /// data that is current at the end.
    /// Failure: MEMRT_EINVAL as meminfo_new, and for `external`; MEMRT_ENOMEM.
    memrt_status_t (*resizable_new)(size_t size, const memrt_new_options_t *options,
                                    memrt_meminfo_t **out) MEMRT_MUST_CHECK;
    /// Give `mi` a fresh data block of `size` bytes and return the new block.
    /// Ownership: the caller owns the previous data block, and frees the block with resizable_free.
    /// Failure:   NULL: out of memory, nothing changed.
    void *(*resizable_alloc)(memrt_meminfo_t *mi, size_t size);
    /// Resize the data and return the data pointer, which may have moved. NULL: out of memory,
    /// nothing changed.
    void *(*resizable_realloc)(memrt_meminfo_t *mi, size_t size);
    /// Free a data block of `mi`. After the current data block is freed, `mi` has no data. NULL:
    /// nothing happens.
    void (*resizable_free)(memrt_meminfo_t *mi, void *data);

    /* --- Blocks that are identified by their data pointer: raw memory with the signatures of
           NEP 49. The first four slots form a NumPy handler with a memrt_policy_t as context (NULL:
           the default policy). --- */

    /// Allocate a block of `size` bytes. A size of 0 still yields an address. NULL: out of memory.
    ///
    /// The data has the alignment of the policy. If the policy names no alignment, blocks of 1 to
    /// MEMRT_TINY_MAX bytes are aligned to 16, because their header is smaller.
    void *(*block_alloc)(void *policy, size_t size);
    /// Allocate a zeroed block of `count * size` bytes. NULL: out of memory, or the product
    /// overflows.
    void *(*block_calloc)(void *policy, size_t count, size_t size);
    /// Resize a block, which stays with the policy that made the block. `data` NULL: block_alloc.
    ///
    /// While other holders have the block through a MemInfo, the old block stays unchanged for the
    /// other holders, and the caller gets a copy.
    /// Failure: NULL: out of memory, and `data` is unchanged.
    void *(*block_realloc)(void *policy, void *data, size_t size);
    /// Release the caller's reference to a block; the last release frees the block. `size` is
    /// ignored, because the header stores the size. `data` NULL: nothing happens.
    /// Failure: aborts with a message if the block was freed before and its memory is not in use
    ///          again. Checking mode detects more double frees, because freed memory is not reused
    ///          at once.
    void (*block_free)(void *policy, void *data, size_t size);
    /// Return a new reference to the MemInfo of a live block. `data` may also be the first byte of
    /// any MemInfo with inline data. The caller guarantees that `data` is valid; checking mode
    /// verifies `data`.
    /// Failure: MEMRT_ENOMEM.
    memrt_status_t (*block_meminfo)(void *data, memrt_meminfo_t **out) MEMRT_MUST_CHECK;
    /// Return a new reference to the live MemInfo whose data starts at `data`, which may be any
    /// address at all.
    ///
    /// The search covers buffers that were allocated while tracking was on, and named buffers. The
    /// data of a resizable MemInfo leads to that MemInfo.
    /// Failure: MEMRT_ENOENT: no such MemInfo is known.
    memrt_status_t (*find)(const void *data, memrt_meminfo_t **out) MEMRT_MUST_CHECK;

    /* --- Policies. --- */

    /// Create a policy, count 1.
    /// Failure: MEMRT_EINVAL for a bad name, alignment, allocator table or text (option_check
    ///          explains a bad text); MEMRT_ELIMIT when 4095 policies are live, subpolicies of
    ///          scopes included; MEMRT_ENOMEM.
    memrt_status_t (*policy_new)(const memrt_policy_options_t *options,
                                 memrt_policy_t **out) MEMRT_MUST_CHECK;
    /// Acquire one more reference.
    void (*policy_acquire)(memrt_policy_t *policy);
    /// Release one reference. After the last release, the policy must not be used to allocate; its
    /// blocks stay valid.
    /// Failure: aborts with a message if the count is 0.
    void (*policy_release)(memrt_policy_t *policy);
    /// Return the default policy, which serves all requests without a policy; borrowed, never
    /// destroyed.
    memrt_policy_t *(*policy_default)(void);
    /// Return the name; borrowed, valid while the policy is.
    const char *(*policy_name)(const memrt_policy_t *policy);
    /// Return the alignment of data pointers in bytes.
    size_t (*policy_alignment)(const memrt_policy_t *policy);
    /// Return the index that live lists show; the default policy has index 0. An index is reused
    /// after the policy and its blocks are gone.
    uint32_t (*policy_index)(const memrt_policy_t *policy);
    /// Return a new reference to the policy at `index`, or NULL. To visit all policies, pass each
    /// index from 0 to policy_limit() - 1; most indices are free. A policy without references whose
    /// blocks are live is also returned; such a policy no longer caches memory.
    memrt_policy_t *(*policy_at)(uint32_t index);
    /// Return the number of indices.
    uint32_t (*policy_limit)(void);

    /* --- Allocators, to build policies from. --- */

    /// Return the default allocator; static.
    ///
    /// Small blocks come from thread caches by size class, large blocks from the large-object
    /// cache. If MEMRT_CACHE is off, small blocks come from the C library and large blocks are
    /// mapped.
    const memrt_allocator_t *(*allocator_default)(void);
    /// Return the allocator over the C library's malloc; static.
    const memrt_allocator_t *(*allocator_system)(void);
    /// Return the allocator that maps whole pages from the operating system; static. Pages are
    /// zeroed lazily, and large blocks use huge pages.
    const memrt_allocator_t *(*allocator_mapped)(void);
    /// Create a wrapper that puts a redzone around each block and aborts with a message on misuse.
    ///
    /// free and realloc detect a write past either end, a second free, and a size or alignment that
    /// differs from the block's. The wrapper keeps the blocks that were freed last for a while, and
    /// aborts when a kept block was written to.
    /// Ownership: `upstream` is copied, and the wrapper's `destroy` destroys the upstream as well.
    ///            Hand `*out` to policy_new, or call its `destroy`.
    /// Failure:   MEMRT_EINVAL for a bad allocator table; MEMRT_ENOMEM.
    memrt_status_t (*allocator_guard)(const memrt_allocator_t *upstream,
                                      memrt_allocator_t *out) MEMRT_MUST_CHECK;

    /* --- Statistics, tracking and fault injection. --- */

    /// Read the account of `policy` (NULL: the process).
    /// Failure: MEMRT_EINVAL: struct_size is not set.
    memrt_status_t (*stats_read)(const memrt_policy_t *policy, memrt_stats_t *out) MEMRT_MUST_CHECK;
    /// Restart the peak of `policy` (NULL: the process) at the bytes that are live now.
    void (*stats_reset_peak)(memrt_policy_t *policy);
    /// Turn tracking on or off; return whether tracking was on. Buffers that are allocated while
    /// tracking is off are not listed. Listed buffers stay listed until they are freed.
    int (*tracking)(int on);
    /// Return whether tracking is on.
    int (*tracking_enabled)(void);
    /// List the live tracked buffers, oldest first.
    /// Ownership: `*out` is the caller's, to be freed with live_free.
    /// Failure:   MEMRT_ENOMEM.
    memrt_status_t (*live)(memrt_live_t **out, size_t *count) MEMRT_MUST_CHECK;
    /// Free a list that `live` or `buffers` made; NULL: nothing happens.
    void (*live_free)(memrt_live_t *list);
    /// Set the one observer of the process, or remove the observer with NULL.
    /// Ownership: borrowed; the struct must stay valid for the rest of the process.
    void (*set_watcher)(const memrt_watcher_t *watcher);
    /// Mark a MemInfo, so that the observer is notified when the MemInfo is resized or freed. The
    /// observer that is set at the time of the event is called. Of a resizable MemInfo, only the
    /// current data block is observed.
    void (*watch)(memrt_meminfo_t *mi);
    /// Give cached memory of all policies back; return the number of bytes. Another thread empties
    /// its thread cache later: when the thread next frees a block, or runs out of blocks of a size
    /// class.
    size_t (*release_unused)(void);
    /// Start fault injection as `plan` describes, or stop fault injection with NULL.
    /// Failure: MEMRT_EINVAL: struct_size is not set.
    memrt_status_t (*fail_allocations)(const memrt_failure_plan_t *plan) MEMRT_MUST_CHECK;
    /// Return the requests counted since the plan was set: the number of failure points of a call.
    uint64_t (*failure_points)(void);

    /* --- The process. --- */

    /// Read row `index` of the options in force; return 0 past the last row.
    int (*option)(size_t index, memrt_option_t *out);
    /// Return sentence `index` of the warnings about wrong MEMRT_* variables; NULL past the last.
    const char *(*option_warning)(size_t index);
    /// Stop running destructors: from now on, a release only frees memory. Use the slot at the end
    /// of a process, when the code of destructors, or their interpreter, goes away. Repeated calls
    /// are allowed.
    void (*shutdown)(void);
    /// Return one sentence for a status.
    const char *(*status_text)(memrt_status_t status);
    /// Set an option of the process from now on. `name` is the name of the environment variable, or
    /// that name without prefix in small letters. `value` has the form of the environment.
    ///
    /// For MEMRT_CACHE_LIMIT, MEMRT_DECAY and MEMRT_HUGEPAGES, cached memory follows at once. For
    /// MEMRT_PEAK, each peak follows from its next restart on, within the bound of its
    /// `peak_error`.
    /// Failure: MEMRT_EINVAL for an unknown name, a bad value, or an option that is fixed at the
    ///          start. In this case one sentence is written to `why`, which has `length` bytes (0:
    ///          no sentence).
    memrt_status_t (*option_set)(const char *name, const char *value, char *why,
                                 size_t length) MEMRT_MUST_CHECK;
    /// Check whether a text is a value of an option, also of an option that is fixed by now. The
    /// arguments and results are those of option_set, but nothing changes.
    memrt_status_t (*option_check)(const char *name, const char *value, char *why,
                                   size_t length) MEMRT_MUST_CHECK;
    /// Read row `index` of the options that the policy sets for itself; return 0 past the last row.
    int (*policy_option)(const memrt_policy_t *policy, size_t index, memrt_option_t *out);

    /* --- Scopes. --- */

    /// Return a new reference to the scope `name` inside `parent` (NULL: the root). A missing scope
    /// is created.
    /// Failure: MEMRT_EINVAL for a name that is empty or too long; MEMRT_ELIMIT when
    ///          MEMRT_SCOPES_MAX scopes are held or have live blocks; MEMRT_ENOMEM.
    memrt_status_t (*scope_open)(memrt_scope_t *parent, const char *name,
                                 memrt_scope_t **out) MEMRT_MUST_CHECK;
    /// Acquire one more reference.
    void (*scope_acquire)(memrt_scope_t *scope);
    /// Release one reference. Earlier allocations of the scope stay in its figures. The figures
    /// stay in the tree for reports, until a new scope needs the room.
    /// Failure: aborts with a message if the count is 0.
    void (*scope_release)(memrt_scope_t *scope);
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
    memrt_status_t (*scope_enter)(memrt_scope_t *scope, memrt_scope_t **before);
    /// Return the scope that the calling thread is in, or NULL; borrowed.
    memrt_scope_t *(*scope_current)(void);
    /// Return a new reference to a subpolicy: a policy like `policy` (NULL: the default one) whose
    /// blocks belong to `scope`, whichever thread allocates. A subpolicy serves as the context of a
    /// handler. Its account and index are those of `policy`.
    /// Failure: MEMRT_ENOMEM, also when no index is free.
    memrt_status_t (*scope_policy)(memrt_scope_t *scope, memrt_policy_t *policy,
                                   memrt_policy_t **out) MEMRT_MUST_CHECK;
    /// Return the scope in which the MemInfo was allocated, or NULL; borrowed, valid while `mi` is.
    memrt_scope_t *(*scope_of)(const memrt_meminfo_t *mi);
    /// Return a new reference to the scope that was created next after `scope`, which the caller
    /// holds; `scope` NULL: the first scope. Return NULL after the last scope. Parents come before
    /// children.
    memrt_scope_t *(*scope_next)(memrt_scope_t *scope);
    /// Return the enclosing scope, or NULL; borrowed, valid while `scope` is.
    memrt_scope_t *(*scope_parent)(const memrt_scope_t *scope);
    /// Return the name; borrowed, valid while `scope` is.
    const char *(*scope_name)(const memrt_scope_t *scope);
    /// Return the number of the scope, unique in the process.
    uint32_t (*scope_id)(const memrt_scope_t *scope);
    /// Read the statistics of all memory that was allocated in the scope and in scopes inside of
    /// the scope, wherever the memory is now. `cached` is 0.
    /// Failure: MEMRT_EINVAL: struct_size is not set.
    memrt_status_t (*scope_stats)(const memrt_scope_t *scope, memrt_stats_t *out) MEMRT_MUST_CHECK;
    /// Write the number of allocations by size, in the scope and in scopes inside of the scope:
    /// MEMRT_SIZE_BINS counts into `out`.
    void (*scope_sizes)(const memrt_scope_t *scope, uint64_t *out);
    /// Restart the peak of the scope at the bytes that are live now.
    void (*scope_reset_peak)(memrt_scope_t *scope);

    /* --- Named references. --- */

    /// Acquire one more reference, as `acquire`, under a name that `holders` lists. Release the
    /// reference with release_as.
    ///
    /// A release by compiled code, or a release without a name, is not matched with a name: the
    /// name stays listed until the MemInfo is freed.
    /// Ownership: `name` is copied.
    /// Failure:   MEMRT_EINVAL for an unknown kind, and for a name that is empty or longer than
    ///            MEMRT_NAME_MAX bytes; MEMRT_ENOMEM. On failure no reference is acquired.
    memrt_status_t (*acquire_as)(memrt_meminfo_t *mi, memrt_holder_kind_t kind,
                                 const char *name) MEMRT_MUST_CHECK;
    /// Release a reference that was acquired under the same kind and name, as `release`. If no such
    /// reference exists, release_as is a release without a name; checking mode aborts.
    void (*release_as)(memrt_meminfo_t *mi, memrt_holder_kind_t kind, const char *name);
    /// List the named references to `mi`: write the first `room` rows to `rows`, oldest first, and
    /// return the number of all rows. Each row has `row_size` bytes (sizeof(memrt_holder_t)).
    size_t (*holders)(const memrt_meminfo_t *mi, memrt_holder_t *rows, size_t row_size,
                      size_t room);

    /* --- Tracking, and allocation sites. --- */

    /// Turn tracking on with the given settings, or turn tracking off.
    /// Failure: MEMRT_EINVAL: struct_size is not set, or more than MEMRT_FRAMES_MAX frames are
    ///          requested.
    memrt_status_t (*tracking_set)(const memrt_tracking_t *tracking) MEMRT_MUST_CHECK;
    /// Read the settings of tracking, which are also known while tracking is off.
    /// Failure: MEMRT_EINVAL: struct_size is not set.
    memrt_status_t (*tracking_get)(memrt_tracking_t *out) MEMRT_MUST_CHECK;
    /// List the live tracked buffers as `live` does, in rows of `row_size` bytes. A row holds as
    /// much of a memrt_buffer_t as `row_size` covers.
    /// Failure: MEMRT_EINVAL: `row_size` is smaller than a memrt_live_t; MEMRT_ENOMEM.
    memrt_status_t (*buffers)(size_t row_size, void **out, size_t *count) MEMRT_MUST_CHECK;
    /// Set the function that reports the frames of an interpreter, or remove the function with
    /// NULL. The function must stay valid for the rest of the process, because a thread may be
    /// inside.
    void (*set_frames)(memrt_frames_fn frames);
    /// Return the frame for a line of interpreter code; equal arguments yield the same frame. Texts
    /// are copied, and cut after 1023 bytes; NULL: not known. Return 0 when out of memory, or when
    /// a million frames are known.
    memrt_frame_t (*frame_new)(const char *function, const char *file, uint64_t line);
    /// Describe a frame that came from site_frames or frame_new.
    /// Failure: MEMRT_EINVAL: struct_size is not set; MEMRT_ENOENT: no such frame.
    memrt_status_t (*frame_text)(memrt_frame_t frame, memrt_frame_text_t *out) MEMRT_MUST_CHECK;
    /// Read the figures of the allocation site with number `site`; numbers run from 1 without a
    /// gap.
    /// Failure: MEMRT_EINVAL: struct_size is not set; MEMRT_ENOENT: no such site.
    memrt_status_t (*site_read)(uint32_t site, memrt_site_t *out) MEMRT_MUST_CHECK;
    /// Write the call stack of a site to `out`, which has room for `max` frames. Native frames come
    /// first, then frames of an interpreter, innermost first in each group. Return the number of
    /// all frames; 0: no such site.
    size_t (*site_frames)(uint32_t site, memrt_frame_t *out, size_t max);
    /// Suppress leaks whose allocation site has a frame that matches `pattern`. Leak reports list
    /// such buffers separately, with `description`.
    ///
    /// `pattern` is a shell pattern for "function at file:line" or "function+0xNN in object". Both
    /// texts are copied.
    /// Failure: MEMRT_EINVAL: a text is missing, empty or longer than 255 bytes; MEMRT_ELIMIT: 64
    ///          suppressions exist already.
    memrt_status_t (*suppression_add)(const char *pattern,
                                      const char *description) MEMRT_MUST_CHECK;
    /// Return the text of the suppression that matches the site; NULL: no suppression matches. The
    /// text is valid for the rest of the process.
    const char *(*suppression_at)(uint32_t site);
    /// Write an out-of-memory report: likely reasons why `policy` (NULL: the default one) refused
    /// `size` bytes (0: any size), in a few lines for people.
    ///
    /// The report has live and cached bytes, and the system limits in force. As far as allocations
    /// were tracked, the report also has the allocation sites that hold most. Last come the largest
    /// live buffers that have a name or a named reference.
    ///
    /// Write at most `length` bytes with the closing zero; return the length of the whole text
    /// without the zero. The call allocates no memory.
    size_t (*explain_shortage)(const memrt_policy_t *policy, size_t size, char *text,
                               size_t length);
    /// Read the tracking data of the buffer of `mi`: one row, in the form of `buffers`.
    /// Failure: MEMRT_EINVAL: as `buffers`; MEMRT_ENOENT: the buffer is not listed.
    memrt_status_t (*buffer_read)(const memrt_meminfo_t *mi, size_t row_size,
                                  void *out) MEMRT_MUST_CHECK;

    /* --- Symbol slots: calls of functions that are not defined yet. ---
     *
     * Functions that call each other and are compiled one by one call through slots. A slot holds
     * the address of the function with a given name. While the name is not defined, the slot holds
     * a stub, which behaves as unresolved_abort and knows the name. Source: Numba's notes on its
     * runtime, "Recursion support". */

    /// Stand in for a symbol that is not defined; callable as a function of any arguments. The call
    /// leaves an error on the calling thread, for symbol_error, and returns -1, the error indicator
    /// of compiled code.
    intptr_t (*unresolved_abort)(void);

    /// Return the slot of `name`: the same slot for all callers, valid for the rest of the process.
    /// Compiled code loads the function's address from the slot at each call, whole and in one
    /// access.
    ///
    /// Failure: MEMRT_EINVAL: the name is missing, empty or longer than MEMRT_SYMBOL_MAX bytes;
    ///          MEMRT_ENOMEM; MEMRT_ELIMIT: a million names have slots.
    memrt_status_t (*symbol_slot)(const char *name,
                                  memrt_function_t *const **slot) MEMRT_MUST_CHECK;
    /// Define a symbol: from now on, all users of the symbol call `function`. `function` NULL:
    /// remove the definition.
    ///
    /// Remove the definition before the code of the function goes away. A thread that is in the
    /// function, or about to enter the function, still has to return first.
    ///
    /// Threads: earlier writes are visible to callers of `function`.
    /// Failure: as symbol_slot, and MEMRT_EBUSY: the symbol is defined as another function.
    memrt_status_t (*symbol_define)(const char *name, memrt_function_t *function) MEMRT_MUST_CHECK;
    /// List the names that have a slot and are not defined: write the first `room` names to
    /// `names`, oldest first, valid for the rest of the process. Return the number of all such
    /// names.
    size_t (*symbols_unresolved)(const char **names, size_t room);
    /// Take the error that a call of an undefined symbol left on the calling thread; of several
    /// errors, the first.
    ///
    /// MEMRT_OK: no error. MEMRT_ENOENT: an error, and `*name` (unless `name` is NULL) is the
    /// symbol, valid for the rest of the process. `*name` is NULL if the symbol is not known:
    /// MEMRT_SYMBOLS_NAMED other symbols were undefined at the time, or the call was a direct call
    /// of unresolved_abort.
    memrt_status_t (*symbol_error)(const char **name);
    /// Set the function that is notified of calls of undefined symbols, or remove the function with
    /// NULL. The function must stay valid for the rest of the process, because a thread may be
    /// inside.
    void (*set_symbol_error)(memrt_symbol_error_fn tell);
    /* --- CUDA: buffers in device memory, managed memory and pinned memory. Each slot that returns
           a status, except cuda_info, cuda_stats and cuda_set_limit, fails with MEMRT_ENOTSUP
           without a driver, and with MEMRT_EDEVICE where the driver refuses. A function that the
           driver calls in the order of a stream must not call these slots, and must not release the
           last reference to a buffer. --- */

    /// Explain why CUDA cannot be used: write at most `length` bytes of a sentence with the closing
    /// zero, and return the length of the whole sentence without the zero. 0: CUDA can be used.
    size_t (*cuda_why_not)(char *text, size_t length);
    /// Describe the last driver call that failed on this thread, with its error. The arguments and
    /// the result are those of cuda_why_not.
    size_t (*cuda_error)(char *text, size_t length);
    /// Create a MemInfo over `size` bytes of a CUDA memory, count 1, contents undefined. A size of
    /// 0 yields no address.
    ///
    /// With `options->stream` and a device that has memory pools, the memory is allocated in the
    /// order of the stream: usable at once in that stream, and elsewhere after cuda_wait. The last
    /// release gives the memory back after all work on the buffer that memrt was informed of. The
    /// memory is given back in the order of the stream; without a stream order, the release waits.
    /// Failure: MEMRT_EINVAL for an unknown memory, a bad device ordinal and a bad name;
    ///          MEMRT_ENOMEM, also when the limit of the memory is reached. On failure nothing was
    ///          allocated.
    memrt_status_t (*cuda_new)(size_t size, const memrt_cuda_options_t *options,
                               memrt_meminfo_t **out) MEMRT_MUST_CHECK;
    /// Create a MemInfo over memory that other code allocated with CUDA, count 1. `options->dtor`
    /// frees the memory.
    ///
    /// The addresses of the first and the last byte are resolved for the device by
    /// cuPointerGetAttribute(CU_POINTER_ATTRIBUTE_DEVICE_POINTER).
    /// Ownership: memrt owns the memory on MEMRT_OK; on failure the caller still owns the memory.
    /// Failure:   MEMRT_EDEVICE for an address that the driver does not know; MEMRT_EINVAL for NULL
    ///            with a size, a size beyond the address space, and a range across two pieces of
    ///            memory; MEMRT_ENOMEM.
    memrt_status_t (*cuda_adopt)(uintptr_t address, size_t size,
                                 const memrt_cuda_options_t *options,
                                 memrt_meminfo_t **out) MEMRT_MUST_CHECK;
    /// Read the CUDA properties of a buffer.
    /// Failure: MEMRT_ENOENT: the buffer is in ordinary memory; MEMRT_EINVAL: struct_size is not
    ///          set.
    memrt_status_t (*cuda_info)(const memrt_meminfo_t *mi, memrt_cuda_info_t *out) MEMRT_MUST_CHECK;
    /// Record that work on the buffer was put into `stream`. The buffer's own stream waits for the
    /// work from now on.
    ///
    /// If the buffer has no stream, `stream` becomes the buffer's own stream, and must then live as
    /// long as the buffer. In place of MEMRT_CUDA_STREAM_PER_THREAD, the legacy stream becomes the
    /// buffer's own stream, and waits for the work.
    /// Failure: MEMRT_EINVAL: `stream` is MEMRT_CUDA_STREAM_NONE; MEMRT_ENOTSUP: the buffer was not
    ///          made by cuda_new or cuda_adopt.
    memrt_status_t (*cuda_used)(memrt_meminfo_t *mi, uintptr_t stream) MEMRT_MUST_CHECK;
    /// Make `stream` wait for all work on the buffer that memrt was informed of.
    /// Failure: as cuda_used.
    memrt_status_t (*cuda_wait)(memrt_meminfo_t *mi, uintptr_t stream) MEMRT_MUST_CHECK;
    /// Copy `size` bytes at `offset` of a buffer to the host, in `stream` (MEMRT_CUDA_STREAM_NONE:
    /// the buffer's own stream), after all work on the buffer. The copy is complete when the call
    /// returns.
    /// Failure: MEMRT_EINVAL: the range ends beyond the buffer; MEMRT_ENOTSUP: as cuda_used.
    memrt_status_t (*cuda_read)(memrt_meminfo_t *mi, size_t offset, void *out, size_t size,
                                uintptr_t stream) MEMRT_MUST_CHECK;
    /// Copy `size` bytes of host memory, or of any CUDA memory, to `offset` of a buffer. Order and
    /// completion are those of cuda_read.
    /// Failure: as cuda_read, and MEMRT_EINVAL for a read-only buffer.
    memrt_status_t (*cuda_write)(memrt_meminfo_t *mi, size_t offset, const void *data, size_t size,
                                 uintptr_t stream) MEMRT_MUST_CHECK;
    /// Create a stream on a device. The stream does not wait for the legacy stream.
    /// Ownership: the caller frees the stream with cuda_stream_free, after every buffer that uses
    ///            the stream.
    memrt_status_t (*cuda_stream_new)(int32_t device, uintptr_t *out) MEMRT_MUST_CHECK;
    /// Free a stream that cuda_stream_new made; pending work in the stream is still done.
    /// Failure: MEMRT_EINVAL: `stream` is MEMRT_CUDA_STREAM_NONE or a predefined stream.
    memrt_status_t (*cuda_stream_free)(int32_t device, uintptr_t stream) MEMRT_MUST_CHECK;
    /// Wait until all work in a stream is done.
    /// Failure: MEMRT_EINVAL: `stream` is MEMRT_CUDA_STREAM_NONE.
    memrt_status_t (*cuda_stream_synchronize)(int32_t device, uintptr_t stream) MEMRT_MUST_CHECK;
    /// Read the account of a CUDA memory. Adopted buffers are not in any of these accounts.
    /// Failure: MEMRT_EINVAL: an unknown memory, or struct_size is not set.
    memrt_status_t (*cuda_stats)(memrt_memory_t memory, memrt_cuda_stats_t *out) MEMRT_MUST_CHECK;
    /// Limit the bytes of a memory in use at once to `limit`; UINT64_MAX: no limit. Memory that is
    /// already in use stays.
    /// Failure: MEMRT_EINVAL: an unknown memory.
    memrt_status_t (*cuda_set_limit)(memrt_memory_t memory, uint64_t limit) MEMRT_MUST_CHECK;
    /// Return the policy that accounts for buffers of a memory whose options name no policy;
    /// MEMRT_MEMORY_HOST: the policy of adopted buffers. Borrowed, never destroyed.
    /// Failure: NULL: an unknown memory, out of memory, or 4095 policies are live.
    memrt_policy_t *(*cuda_policy)(memrt_memory_t memory);
    /// Return the allocator of pinned host memory, for policies; static. Each block is a call of
    /// the driver. Without a driver, every request is refused.
    const memrt_allocator_t *(*allocator_pinned)(void);
    /* --- DLPack, with memrt/dlpack.h. `*why` (unless `why` is NULL) is a static sentence about the
           tensor when a slot returns MEMRT_EINVAL, MEMRT_ENOTSUP or MEMRT_EDEVICE. --- */

    /// Export `mi` to another library: create a tensor of DLPack version 1.3 over the data of `mi`,
    /// with the layout in `view`, which is copied.
    ///
    /// The tensor is marked read-only if `mi` or the view is read-only. A tensor without elements
    /// has no data. Until the other library calls the deleter, `holders` lists the export under
    /// MEMRT_DLPACK_HOLDER. For CUDA memory, the caller must make the library's work wait for
    /// pending work, for example with cuda_wait.
    /// Ownership: the tensor holds one reference, which its deleter releases.
    /// Threads:   the deleter may be called on any thread, without a GIL.
    /// Failure:   MEMRT_EINVAL when struct_size is not set, and for flags that a view cannot have;
    ///            MEMRT_EINVAL for a shape that is impossible in memory, and for elements outside
    ///            of the data; MEMRT_ENOTSUP for an element type that is not exchanged, and for a
    ///            device that does not hold the memory; MEMRT_ENOMEM.
    memrt_status_t (*dlpack_export)(memrt_meminfo_t *mi, const struct memrt_dlpack_view *view,
                                    struct DLManagedTensorVersioned **out,
                                    const char **why) MEMRT_MUST_CHECK;
    /// Export `mi` as dlpack_export does, for a library that knows only tensors from before version
    /// 1.0. Such tensors cannot be marked as read-only, nor as copies.
    /// Failure: as dlpack_export, and MEMRT_ENOTSUP for read-only memory.
    memrt_status_t (*dlpack_export_unversioned)(memrt_meminfo_t *mi,
                                                const struct memrt_dlpack_view *view,
                                                struct DLManagedTensor **out,
                                                const char **why) MEMRT_MUST_CHECK;
    /// Create a MemInfo over the memory of a tensor from another library, as meminfo_adopt does,
    /// count 1.
    ///
    /// The data runs from the lowest to the highest byte of any element. `view` receives the layout
    /// of the elements; its shape and strides are borrowed from the tensor. The MemInfo is
    /// read-only if the tensor is. Unknown flags of the tensor are ignored. Memory of a CUDA device
    /// becomes a MemInfo as by cuda_adopt, with the legacy stream as the order of its work.
    /// `options`: as for meminfo_adopt. A `dtor` runs in place of the deleter, and has to make sure
    ///            that the deleter is called.
    /// Ownership: on MEMRT_OK the MemInfo owns the tensor, and calls the deleter (if any) at the
    ///            end. On failure the caller still owns the tensor, and may always call the
    ///            deleter.
    /// Threads:   the deleter runs on the thread that releases the last reference.
    /// Failure:   MEMRT_EINVAL when a struct_size is not set, and for options that do not apply;
    ///            MEMRT_EINVAL for a shape, strides or address that is impossible in memory, and
    ///            for dimensions without strides from version 1.2 on. MEMRT_ENOTSUP for a major
    ///            version other than 1, where only the deleter of the tensor may be used.
    ///            MEMRT_ENOTSUP for a device whose memory the host cannot read, except CUDA with a
    ///            driver, and for an element type that is not exchanged. MEMRT_EDEVICE where the
    ///            driver does not know the memory; MEMRT_ENOMEM.
    memrt_status_t (*dlpack_adopt)(struct DLManagedTensorVersioned *tensor,
                                   const memrt_new_options_t *options,
                                   struct memrt_dlpack_view *view, memrt_meminfo_t **out,
                                   const char **why) MEMRT_MUST_CHECK;
    /// Create a MemInfo as dlpack_adopt does, for a tensor from before version 1.0. The MemInfo and
    /// the view are read-only, because such a tensor does not state whether its memory may be
    /// written.
    memrt_status_t (*dlpack_adopt_unversioned)(struct DLManagedTensor *tensor,
                                               const memrt_new_options_t *options,
                                               struct memrt_dlpack_view *view,
                                               memrt_meminfo_t **out,
                                               const char **why) MEMRT_MUST_CHECK;
    /// Allocate memory for a tensor like `view`, and create the tensor, for libraries that leave
    /// allocation to another library.
    ///
    /// The view has no strides, because the elements are compact, and no offset. Its device is the
    /// CPU or a CUDA device; CUDA memory is allocated as by cuda_new.
    /// `options`: as for meminfo_new; with CUDA, `alignment`, `zeroed` and `external` must not be
    ///            set.
    /// Ownership: the tensor, as dlpack_export makes a tensor, holds the only reference.
    /// Failure:   as meminfo_new, cuda_new and dlpack_export; MEMRT_EINVAL for strides or an
    ///            offset, and for the option `readonly`.
    memrt_status_t (*dlpack_new)(const struct memrt_dlpack_view *view,
                                 const memrt_new_options_t *options,
                                 struct DLManagedTensorVersioned **out,
                                 const char **why) MEMRT_MUST_CHECK;

    /* --- Arrow's C data interface, with memrt/arrow.h. `*why` (unless `why` is NULL) is a static
           sentence about the array when a slot returns MEMRT_EINVAL or MEMRT_ENOTSUP. --- */

    /// Export `mi` to another library: fill in an array over the data of `mi`, with the layout in
    /// `view`, and the schema of its elements. `schema` or `array` may be NULL if the caller needs
    /// only one of the two.
    ///
    /// Until the array is released, `holders` lists the export under MEMRT_ARROW_HOLDER. Memory
    /// that is read as an Arrow array must not be written.
    /// Ownership: the caller owns the structs that were filled in, and releases each by its
    ///            `release`. The array holds a reference to `mi` and a reference to the MemInfo of
    ///            the bitmap; texts are copied.
    /// Threads:   `release` may be called on any thread, without a GIL.
    /// Failure:   MEMRT_EINVAL when struct_size is not set, and for flags that a view cannot have;
    ///            MEMRT_EINVAL for elements or a bitmap outside of the data of their MemInfo, or
    ///            not in the same memory; MEMRT_ENOTSUP for a format that is not exchanged, and for
    ///            memory of a device without MEMRT_ARROW_DEVICE; MEMRT_ENOMEM. On failure nothing
    ///            is filled in.
    memrt_status_t (*arrow_export)(memrt_meminfo_t *mi, const struct memrt_arrow_view *view,
                                   struct ArrowSchema *schema, struct ArrowArray *array,
                                   const char **why) MEMRT_MUST_CHECK;
    /// Create a MemInfo over the elements of an array from another library, as meminfo_adopt does,
    /// count 1. The MemInfo is read-only, as Arrow arrays are.
    ///
    /// `view` receives the layout of the elements, with a counted number of nulls. Its format and
    /// name are borrowed from the schema, which stays the caller's, and its bitmap is borrowed from
    /// the array. With a `dtor` in the options, the array is not moved: the `dtor` runs in place of
    /// `release`, and has to make sure that `release` is called.
    /// Ownership: on MEMRT_OK the array was moved: its `release` is NULL, and the MemInfo calls the
    ///            moved `release` at the end. On failure the caller owns the array as before.
    /// Threads:   `release` is called on the thread that releases the last reference.
    /// Failure:   MEMRT_EINVAL when a struct_size is not set, and for options that do not apply;
    ///            MEMRT_EINVAL for a schema or array that was released, is inconsistent, or has
    ///            numbers that are impossible in memory; MEMRT_ENOTSUP for a format that is not
    ///            exchanged, and for children or a dictionary; MEMRT_ENOMEM.
    memrt_status_t (*arrow_adopt)(const struct ArrowSchema *schema, struct ArrowArray *array,
                                  const memrt_new_options_t *options, struct memrt_arrow_view *view,
                                  memrt_meminfo_t **out, const char **why) MEMRT_MUST_CHECK;

    /* --- Event traces: every allocation as an event in a file, with memrt/trace.h. --- */

    /// Start an event trace: from now on, record each allocation on any thread, with its resizes
    /// and its free, and each refused request.
    ///
    /// The event trace ends with trace_stop or with the process. Blocks from before the start have
    /// no events. A forked child is not recorded. If the system refuses to write, as on a full
    /// disk, the program continues, lost events are counted, and writing is tried again.
    /// Failure: MEMRT_EINVAL: struct_size or path is not set, or a number is above its limit;
    ///          MEMRT_EBUSY: an event trace is being recorded already; MEMRT_ENOMEM; MEMRT_EIO: the
    ///          file cannot be created. Then `*error` (unless `error` is NULL) is the system's
    ///          errno. With `replace`, the errno is ELOOP for a symbolic link and EINVAL for any
    ///          other object that is not a regular file. A file that was at the path stays
    ///          unchanged on failure.
    memrt_status_t (*trace_start)(const memrt_trace_options_t *options,
                                  int *error) MEMRT_MUST_CHECK;
    /// Stop the event trace: write the buffered events and the end record. `out` (unless `out` is
    /// NULL) receives the final figures.
    /// Failure: MEMRT_ENOENT: no event trace is being recorded; MEMRT_EINVAL: struct_size is not
    ///          set.
    memrt_status_t (*trace_stop)(memrt_trace_stats_t *out) MEMRT_MUST_CHECK;
    /// Write the buffered events, and read the figures of the current event trace, or of the last
    /// event trace.
    /// Failure: MEMRT_EINVAL: struct_size is not set.
    memrt_status_t (*trace_stats)(memrt_trace_stats_t *out) MEMRT_MUST_CHECK;
    /// Add a mark, an event with a name of 1 to 1023 bytes, to find a moment again. Without an
    /// event trace, nothing happens.
    /// Failure: MEMRT_EINVAL: a missing name, or a wrong length; MEMRT_ENOMEM.
    memrt_status_t (*trace_mark)(const char *name) MEMRT_MUST_CHECK;
} memrt_api_t;

/// Bits of memrt_api_t.features.
#define MEMRT_FEATURE_CHECKING ((uint64_t)1 << 0) ///< the slots verify arguments (MEMRT_CHECK=1)
#define MEMRT_FEATURE_COUNTERS ((uint64_t)1 << 1) ///< statistics are counted; else they read 0
#define MEMRT_FEATURE_PROBES ((uint64_t)1 << 2)   ///< static probes are compiled in

/// Test whether the table `api` has `slot`. Use the test before a slot that the library may be too
/// old to have.
#define MEMRT_HAS(api, slot)                                                                       \
    (offsetof(memrt_api_t, slot) + sizeof((api)->slot) <= (api)->struct_size)

/// Count in the MemInfo by which memrt_api_of_nrt() recognizes memrt's table.
#define MEMRT_PROBE ((size_t)0x6d656d7274707262u)

/// Return the whole table for a pointer to the six slots of Numba's NRT_api_functions, which
/// compiled code gets from Numba's NRT_get_api(). Return NULL when the slots are not memrt's.
///
/// Numba's own table states neither its size nor its maker. Therefore the function calls get_data
/// with a MemInfo that no runtime would make: Numba returns its `data`, which is NULL, and memrt
/// returns the table.
static inline const memrt_api_t *memrt_api_of_nrt(const void *nrt_api_functions)
{
    memrt_meminfo_t probe = {MEMRT_PROBE, NULL, NULL, NULL, 0, NULL, 0, 0, 0, 0, 0, 0};
    probe.dtor_info = &probe;
    return (const memrt_api_t *)((const memrt_api_t *)nrt_api_functions)->get_data(&probe);
}

#if defined(__GNUC__)
/// Acquire one more reference, as memrt_api_t.acquire, inlined into the caller: one locked
/// instruction, as in compiled code.
///
/// Ownership: the caller already holds a reference. Checking mode does not see the call until the
///            block is freed.
static inline void memrt_meminfo_acquire(memrt_meminfo_t *mi)
{
    __atomic_fetch_add(&mi->refct, 1, __ATOMIC_RELAXED);
}

/// Release one reference, as memrt_api_t.release, inlined into the caller. The last release goes
/// through the table.
///
/// Ownership: consumes the caller's reference. The caller must not use `mi` afterwards.
/// Threads:   earlier writes to the data happen before the destructor.
/// Failure:   aborts with a message if the count is 0.
static inline void memrt_meminfo_release(const memrt_api_t *api, memrt_meminfo_t *mi)
{
    size_t before = __atomic_fetch_sub(&mi->refct, 1, __ATOMIC_ACQ_REL);
    if (before == 1) {
        api->call_dtor(mi);
    } else if (before == 0) {
        __atomic_store_n(&mi->refct, 0, __ATOMIC_RELAXED);
        api->release(mi); /* aborts with a message */
    }
}
#endif

#if defined(__GNUC__)
#define MEMRT_EXPORT __attribute__((visibility("default")))
#else
#define MEMRT_EXPORT
#endif

/// Return the table for a caller built against `abi_major`: the same pointer at every call, valid
/// for the rest of the process.
///
/// Failure: NULL when the library has another major version. Then `*why` (unless `why` is NULL) is
///          a sentence with the remedy.
MEMRT_EXPORT const memrt_api_t *memrt_get_api(uint32_t abi_major, const char **why);

/// Return the version of the loaded library, "0.1.0".
MEMRT_EXPORT const char *memrt_version(void);

#ifdef __cplusplus
}
#endif

#endif
