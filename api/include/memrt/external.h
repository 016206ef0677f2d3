#ifndef MEMRT_EXTERNAL_H
#define MEMRT_EXTERNAL_H

/// The function table: all of memrt for compiled code.
///
/// Unless a slot says otherwise, every slot may be called from any thread, without a GIL, at any
/// time, also before anything was set up and after memrt_api_t.shutdown.

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

/// An allocator with its settings and its own account. Blocks keep their policy's account alive;
/// the caller keeps the policy usable by holding a reference.
typedef struct memrt_policy memrt_policy_t;

/// A place in the program that memory is born in: a node in a tree of names. Figures of a scope are
/// those of all that was born in it, or in a scope inside of it, wherever it is freed; so they are
/// never below zero.
typedef struct memrt_scope memrt_scope_t;

/// Most scopes at once.
#define MEMRT_SCOPES_MAX 4096u

/// Settings of a new policy. Set `struct_size`, leave the rest zero for the default.
typedef struct memrt_policy_options {
    size_t struct_size; ///< sizeof(memrt_policy_options_t)
    const char *name;   ///< for reports, at most MEMRT_NAME_MAX bytes; NULL: "policy"
    size_t alignment;   ///< of every data pointer, power of two; 0: MEMRT_ALIGNMENT, and 16 for
                        ///< blocks of 1 to MEMRT_TINY_MAX bytes when that is 64
    const memrt_allocator_t *allocator; ///< copied; NULL: the default allocator

    /* For its blocks above 1 MiB, as text like that of the option; NULL: as the process has it. Not
       with an `allocator`. */
    const char *cache_limit; ///< MEMRT_CACHE_LIMIT: most bytes of them to keep for reuse
    const char *decay;       ///< MEMRT_DECAY: milliseconds after which they go back
    const char *hugepages;   ///< MEMRT_HUGEPAGES
} memrt_policy_options_t;

/// Settings of a new MemInfo. Set `struct_size`, leave the rest zero for the default; NULL: all
/// defaults.
typedef struct memrt_new_options {
    size_t struct_size;     ///< sizeof(memrt_new_options_t)
    memrt_policy_t *policy; ///< borrowed; NULL: the default policy
    size_t alignment;       ///< power of two up to MEMRT_ALIGN_MAX; 0: the policy's
    int zeroed;             ///< non-zero: data is all zero bytes
    int readonly;           ///< non-zero: memrt_api_t.readonly says so, and bindings honour it
    memrt_dtor_fn dtor;     ///< NULL: nothing to run
    void *dtor_info;        ///< third argument of dtor
    memrt_external_allocator_t *external; ///< NULL: the policy's allocator; not for resizable ones
    const char *name;                     ///< NULL: none; copied, at most MEMRT_NAME_MAX bytes
} memrt_new_options_t;

/// Told about blocks that were marked with memrt_api_t.watch.
///
/// Both functions must be there. Threads: any, without a GIL, with no lock of memrt held. Must not
/// call memrt.
typedef struct memrt_watcher {
    size_t struct_size;                                              ///< sizeof(memrt_watcher_t)
    void (*resize)(void *old_data, void *new_data, size_t new_size); ///< after the move
    void (*death)(void *data);                                       ///< before the memory is freed
} memrt_watcher_t;

/* Of memrt/dlpack.h and of DLPack's own header, for who exchanges tensors. */
struct memrt_dlpack_view;
struct DLManagedTensor;
struct DLManagedTensorVersioned;
/* Of memrt/arrow.h, for who exchanges Arrow's arrays. */
struct memrt_arrow_view;
struct ArrowArray;
struct ArrowSchema;

typedef struct memrt_api {
    /* --- The six slots of Numba's NRT_api_functions: same order, same signatures. --- */

    /// New MemInfo over `nbytes` bytes, count 1, data 64-byte aligned. NULL: out of memory.
    memrt_meminfo_t *(*allocate)(size_t nbytes);
    /// Same with memory from `allocator` (NULL: as allocate). NULL: out of memory.
    memrt_meminfo_t *(*allocate_external)(size_t nbytes, memrt_external_allocator_t *allocator);
    /// New MemInfo over foreign `data` of unknown size; `dtor(data)` runs at the end. NULL: out of
    /// memory, and then the caller still owns data.
    memrt_meminfo_t *(*manage_memory)(void *data, memrt_managed_dtor_fn dtor);
    /// One reference more. The caller holds one already.
    void (*acquire)(memrt_meminfo_t *mi);
    /// Give up one reference; the last one runs the destructor and frees the block.
    /// Ownership: consumes the caller's reference; `mi` is dead to the caller afterwards.
    /// Threads:   earlier writes to the data happen before the destructor.
    void (*release)(memrt_meminfo_t *mi);
    /// First byte of the data; borrowed.
    void *(*get_data)(memrt_meminfo_t *mi);

    /* --- What the table is. --- */

    size_t struct_size;  ///< bytes of this table: a slot beyond it does not exist, see MEMRT_HAS
    uint32_t abi_major;  ///< MEMRT_ABI_MAJOR of the library
    uint32_t abi_minor;  ///< MEMRT_ABI_MINOR of the library
    uint64_t features;   ///< MEMRT_FEATURE_* bits
    const char *version; ///< "0.1.0"

    /* --- MemInfo. --- */

    /// New MemInfo with its own block of `size` bytes, count 1. Zero bytes still have an address.
    /// Failure: MEMRT_EINVAL for an alignment that is no power of two or too large and for a name
    ///          that is too long; MEMRT_ENOMEM.
    memrt_status_t (*meminfo_new)(size_t size, const memrt_new_options_t *options,
                                  memrt_meminfo_t **out) MEMRT_MUST_CHECK;
    /// New MemInfo over memory that the caller hands over, count 1. `options->dtor` gives it back.
    /// Ownership: memrt owns `data` on MEMRT_OK; on failure the caller still does.
    /// Failure: MEMRT_EINVAL for NULL data with a size, or an option that does not apply (zeroed,
    ///          alignment, external); MEMRT_ENOMEM.
    memrt_status_t (*meminfo_adopt)(void *data, size_t size, const memrt_new_options_t *options,
                                    memrt_meminfo_t **out) MEMRT_MUST_CHECK;
    /// One reference more unless the count is zero already; returns whether it was taken. `mi` must
    /// be kept from being freed meanwhile by the caller's own table lock.
    int (*try_acquire)(memrt_meminfo_t *mi);
    /// For compiled code that took the count to zero by itself: run the destructor, free the block.
    void (*call_dtor)(memrt_meminfo_t *mi);
    /// References at this moment; in a program with threads a hint.
    size_t (*refcount)(const memrt_meminfo_t *mi);
    /// Bytes, as asked for.
    size_t (*size)(const memrt_meminfo_t *mi);
    /// The context that the destructor will see: for adopted memory, what keeps it alive.
    void *(*dtor_info)(const memrt_meminfo_t *mi);
    /// Whether it was made with `readonly`.
    int (*readonly)(const memrt_meminfo_t *mi);
    /// The external allocator that made it, or NULL.
    memrt_external_allocator_t *(*external_allocator)(const memrt_meminfo_t *mi);
    /// Name it for reports; NULL or "" takes the name away. MEMRT_EINVAL: longer than
    /// MEMRT_NAME_MAX bytes; MEMRT_ENOMEM.
    memrt_status_t (*set_name)(memrt_meminfo_t *mi, const char *name) MEMRT_MUST_CHECK;
    /// Copy the name ("" for none) into `buffer`, which has MEMRT_NAME_MAX + 1 bytes.
    void (*get_name)(const memrt_meminfo_t *mi, char *buffer);
    /// Describe it in one line, for people. Writes at most `length` bytes with the closing zero;
    /// returns the bytes the whole line needs, without the zero.
    size_t (*dump)(const memrt_meminfo_t *mi, char *buffer, size_t length);
    /// The policy whose account it is on; borrowed, valid while `mi` is.
    memrt_policy_t *(*policy_of)(const memrt_meminfo_t *mi);

    /* --- Resizable MemInfos: the data may move, so read it anew after each call. One thread at a
           time may resize; whoever else holds a reference must be told by the caller. --- */

    /// New resizable MemInfo with `size` bytes of data, count 1. `options->dtor` sees the data of
    /// the end. Failure: MEMRT_EINVAL as meminfo_new and for `external`; MEMRT_ENOMEM.
    memrt_status_t (*resizable_new)(size_t size, const memrt_new_options_t *options,
                                    memrt_meminfo_t **out) MEMRT_MUST_CHECK;
    /// Give it a fresh data block of `size` bytes and return it; the block it had before is the
    /// caller's to free with resizable_free. NULL: out of memory, nothing changed.
    void *(*resizable_alloc)(memrt_meminfo_t *mi, size_t size);
    /// Resize its data; returns the data, which may have moved. NULL: out of memory, nothing
    /// changed.
    void *(*resizable_realloc)(memrt_meminfo_t *mi, size_t size);
    /// Free a data block of `mi`; when it is the present one, `mi` has no data afterwards. NULL:
    /// nothing.
    void (*resizable_free)(memrt_meminfo_t *mi, void *data);

    /* --- Blocks known by their data pointer: raw memory with NEP 49's signatures, so that these
           four are a NumPy handler with a memrt_policy_t (NULL: the default one) as context. --- */

    /// New block of `size` bytes; zero bytes still have an address. Aligned as the policy says; if
    /// it names no alignment, blocks of 1 to MEMRT_TINY_MAX bytes to 16, for they have a smaller
    /// header. NULL: out of memory.
    void *(*block_alloc)(void *policy, size_t size);
    /// New zeroed block of `count * size` bytes. NULL: out of memory, or the product overflows.
    void *(*block_calloc)(void *policy, size_t count, size_t size);
    /// Resize a block; it stays with the policy that made it. While others hold the block through a
    /// MemInfo, they keep the old one as it is and the caller gets a copy. data NULL: block_alloc.
    /// NULL: out of memory, and `data` is as it was.
    void *(*block_realloc)(void *policy, void *data, size_t size);
    /// Give up the caller's block. `size` is not believed: the header knows. NULL: nothing happens.
    void (*block_free)(void *policy, void *data, size_t size);
    /// New reference to the MemInfo of a live block, or of any MemInfo whose data is inline, given
    /// its first byte. The caller vouches for `data`; checking mode verifies. MEMRT_ENOMEM.
    memrt_status_t (*block_meminfo)(void *data, memrt_meminfo_t **out) MEMRT_MUST_CHECK;
    /// New reference to whatever live MemInfo starts at `data`, which may be any address at all.
    /// Knows the buffers born while tracking was on, and named ones; the data of a resizable
    /// MemInfo leads to that MemInfo. MEMRT_ENOENT: none known.
    memrt_status_t (*find)(const void *data, memrt_meminfo_t **out) MEMRT_MUST_CHECK;

    /* --- Policies. --- */

    /// New policy, count 1. Failure: MEMRT_EINVAL for a bad name, alignment, allocator table or
    /// text, of which option_check says what is wrong; MEMRT_ELIMIT when 4095 policies are live;
    /// MEMRT_ENOMEM.
    memrt_status_t (*policy_new)(const memrt_policy_options_t *options,
                                 memrt_policy_t **out) MEMRT_MUST_CHECK;
    /// One reference more.
    void (*policy_acquire)(memrt_policy_t *policy);
    /// Give up one reference. After the last, nothing may be allocated from it; its blocks stay
    /// valid.
    void (*policy_release)(memrt_policy_t *policy);
    /// The policy that everything without one uses; borrowed, never dies.
    memrt_policy_t *(*policy_default)(void);
    /// Its name; borrowed, valid while the policy is.
    const char *(*policy_name)(const memrt_policy_t *policy);
    /// Alignment of its data pointers in bytes.
    size_t (*policy_alignment)(const memrt_policy_t *policy);
    /// Index as it stands in live lists; 0 is the default policy's. Reused after the policy and its
    /// blocks are gone.
    uint32_t (*policy_index)(const memrt_policy_t *policy);
    /// New reference to the policy with that index, or NULL. For walking them: indices run from 0
    /// to policy_limit() - 1, most are free.
    memrt_policy_t *(*policy_at)(uint32_t index);
    /// Number of indices.
    uint32_t (*policy_limit)(void);

    /* --- Allocators, to build policies from. --- */

    /// The default: blocks by size class from what threads keep, large ones on mappings kept warm.
    /// Where MEMRT_CACHE is off: small blocks from the C library, large ones mapped. Static.
    const memrt_allocator_t *(*allocator_default)(void);
    /// The C library's malloc. Static.
    const memrt_allocator_t *(*allocator_system)(void);
    /// Whole pages from the operating system, lazily zero, large ones on huge pages. Static.
    const memrt_allocator_t *(*allocator_mapped)(void);
    /// Wrapper that fences each block with a pattern and aborts with a message when a write past
    /// either end is found at free or realloc, a block is freed twice, or with another size or
    /// alignment than it has. It keeps the last that were freed for a while, and aborts when it
    /// finds that one was written to. `upstream` is copied; the wrapper's `destroy` destroys it
    /// too. Hand `*out` to policy_new, or call its destroy.
    memrt_status_t (*allocator_guard)(const memrt_allocator_t *upstream,
                                      memrt_allocator_t *out) MEMRT_MUST_CHECK;

    /* --- Watching. --- */

    /// Read the account of `policy` (NULL: the process). MEMRT_EINVAL: struct_size is not set.
    memrt_status_t (*stats_read)(const memrt_policy_t *policy, memrt_stats_t *out) MEMRT_MUST_CHECK;
    /// Let the peak of `policy` (NULL: the process) start again from what is live now.
    void (*stats_reset_peak)(memrt_policy_t *policy);
    /// Turn tracking on or off; returns whether it was on. Buffers born while it is off are not
    /// listed; those listed stay listed until they die.
    int (*tracking)(int on);
    /// Whether tracking is on.
    int (*tracking_enabled)(void);
    /// List the live tracked buffers, oldest first. `*out` is the caller's, to be freed with
    /// live_free. MEMRT_ENOMEM.
    memrt_status_t (*live)(memrt_live_t **out, size_t *count) MEMRT_MUST_CHECK;
    /// Free a list that `live` made; NULL: nothing.
    void (*live_free)(memrt_live_t *list);
    /// Set the one watcher of the process, or take it away with NULL. The struct is borrowed and
    /// must stay valid for good.
    void (*set_watcher)(const memrt_watcher_t *watcher);
    /// Mark a MemInfo: its resizes and its death go to the watcher that stands then. Of a resizable
    /// one those of the data that it has now.
    void (*watch)(memrt_meminfo_t *mi);
    /// Give cached memory of all policies back; returns bytes. What other threads keep to
    /// themselves they give up when they next free a block or run out of blocks of some size.
    size_t (*release_unused)(void);
    /// Let allocations fail on purpose, or stop that with NULL. MEMRT_EINVAL: struct_size is not
    /// set.
    memrt_status_t (*fail_allocations)(const memrt_failure_plan_t *plan) MEMRT_MUST_CHECK;
    /// Requests counted since the plan was set: how many failure points a call has.
    uint64_t (*failure_points)(void);

    /* --- The process. --- */

    /// Row `index` of the options in force; returns 0 past the last.
    int (*option)(size_t index, memrt_option_t *out);
    /// Row `index` of what was wrong with MEMRT_* variables, one sentence each; NULL past the last.
    const char *(*option_warning)(size_t index);
    /// From now on destructors do not run any more: releases only free memory. For the end of a
    /// process whose destructors' code or interpreter is going away. May be called again.
    void (*shutdown)(void);
    /// One sentence for a status.
    const char *(*status_text)(memrt_status_t status);
    /// Set an option for the process from now on, by its name as the environment has it, or without
    /// prefix in small letters, and a text like there. Of MEMRT_CACHE_LIMIT, MEMRT_DECAY and
    /// MEMRT_HUGEPAGES: what is kept follows at once. Of MEMRT_PEAK: peaks follow from their next
    /// start on, as far as their `peak_error` says.
    /// Failure: MEMRT_EINVAL for an unknown name, a bad value, or an option that is fixed at the
    ///          start; then `why`, which has `length` bytes (0: none), gets one sentence.
    memrt_status_t (*option_set)(const char *name, const char *value, char *why,
                                 size_t length) MEMRT_MUST_CHECK;
    /// Whether a text is a value of an option, also of one that cannot be set any more; as
    /// option_set, but nothing is changed.
    memrt_status_t (*option_check)(const char *name, const char *value, char *why,
                                   size_t length) MEMRT_MUST_CHECK;
    /// Row `index` of the options that the policy sets for itself; returns 0 past the last.
    int (*policy_option)(const memrt_policy_t *policy, size_t index, memrt_option_t *out);

    /* --- Scopes. --- */

    /// New reference to the scope of that name inside `parent` (NULL: the outermost), made where
    /// there is none. Failure: MEMRT_EINVAL for a name that is empty or too long; MEMRT_ELIMIT when
    /// MEMRT_SCOPES_MAX are held or have live blocks; MEMRT_ENOMEM.
    memrt_status_t (*scope_open)(memrt_scope_t *parent, const char *name,
                                 memrt_scope_t **out) MEMRT_MUST_CHECK;
    /// One reference more.
    void (*scope_acquire)(memrt_scope_t *scope);
    /// Give up one reference. What was born in the scope stays in its figures, and these in the
    /// tree for reports, until others need the place.
    void (*scope_release)(memrt_scope_t *scope);
    /// From now on, what the calling thread asks of a policy is born in `scope`; NULL: in none.
    /// `*before` (unless `before` is NULL): the scope that it was in, which to enter again is to
    /// leave. Threads: the calling one alone; to hand a scope over, enter it on the other thread,
    /// too. Ownership: borrowed; the caller holds it until it leaves. Failure: MEMRT_ENOMEM, on a
    /// thread that calls memrt for the first time; leaving cannot fail.
    memrt_status_t (*scope_enter)(memrt_scope_t *scope, memrt_scope_t **before);
    /// The scope that the calling thread is in, or NULL; borrowed.
    memrt_scope_t *(*scope_current)(void);
    /// New reference to a policy like `policy` (NULL: the default one) whose blocks are born in
    /// `scope`, whichever thread asks for them: the context of a handler. Its account and index are
    /// those of `policy`. MEMRT_ENOMEM, also where no index is free.
    memrt_status_t (*scope_policy)(memrt_scope_t *scope, memrt_policy_t *policy,
                                   memrt_policy_t **out) MEMRT_MUST_CHECK;
    /// The scope that it was born in, or NULL; borrowed, valid while `mi` is.
    memrt_scope_t *(*scope_of)(const memrt_meminfo_t *mi);
    /// New reference to the scope that was made next after `scope`, which the caller holds; NULL:
    /// the first. NULL: no more. For walking them, parents before children.
    memrt_scope_t *(*scope_next)(memrt_scope_t *scope);
    /// The scope around it, or NULL; borrowed, valid while `scope` is.
    memrt_scope_t *(*scope_parent)(const memrt_scope_t *scope);
    /// Its name; borrowed, valid while `scope` is.
    const char *(*scope_name)(const memrt_scope_t *scope);
    /// Its number, unique in the process.
    uint32_t (*scope_id)(const memrt_scope_t *scope);
    /// Read what was born in the scope and in those inside of it, now wherever. `cached` is 0.
    /// MEMRT_EINVAL: struct_size is not set.
    memrt_status_t (*scope_stats)(const memrt_scope_t *scope, memrt_stats_t *out) MEMRT_MUST_CHECK;
    /// Births in it, and in those inside of it, by size: MEMRT_SIZE_BINS counts into `out`.
    void (*scope_sizes)(const memrt_scope_t *scope, uint64_t *out);
    /// Let its peak start again from what is live now.
    void (*scope_reset_peak)(memrt_scope_t *scope);

    /* --- Holders. --- */

    /// One reference more, as acquire, under a name, so that `holders` can tell who has it. To be
    /// given up by release_as. What compiled code or a plain release gives up is not seen: such a
    /// name stays noted until the MemInfo dies.
    /// Ownership: `name` is copied.
    /// Failure:   MEMRT_EINVAL for an unknown kind and a name that is empty or longer than
    ///            MEMRT_NAME_MAX bytes; MEMRT_ENOMEM. No reference is taken then.
    memrt_status_t (*acquire_as)(memrt_meminfo_t *mi, memrt_holder_kind_t kind,
                                 const char *name) MEMRT_MUST_CHECK;
    /// Give up a reference that was taken under that kind and name, as release. Where there is
    /// none, a plain release; checking mode aborts.
    void (*release_as)(memrt_meminfo_t *mi, memrt_holder_kind_t kind, const char *name);
    /// Who holds `mi` under a name: writes the first `room` rows to `rows`, oldest first, each to
    /// `row_size` bytes (sizeof(memrt_holder_t)), and returns how many there are.
    size_t (*holders)(const memrt_meminfo_t *mi, memrt_holder_t *rows, size_t row_size,
                      size_t room);

    /* --- Tracking, and places of birth. --- */

    /// Turn tracking on in this way, or off. MEMRT_EINVAL: struct_size is not set, or more calls
    /// are asked for than MEMRT_FRAMES_MAX.
    memrt_status_t (*tracking_set)(const memrt_tracking_t *tracking) MEMRT_MUST_CHECK;
    /// How births are tracked now, or would be if tracking were on. MEMRT_EINVAL: struct_size is
    /// not set.
    memrt_status_t (*tracking_get)(memrt_tracking_t *out) MEMRT_MUST_CHECK;
    /// As `live`, with rows of `row_size` bytes, which are memrt_buffer_t as far as the caller
    /// knows it. MEMRT_EINVAL: smaller than a memrt_live_t; MEMRT_ENOMEM.
    memrt_status_t (*buffers)(size_t row_size, void **out, size_t *count) MEMRT_MUST_CHECK;
    /// Set who knows what an interpreter runs, or take it away with NULL. The function must stay
    /// for good: a thread may be in it.
    void (*set_frames)(memrt_frames_fn frames);
    /// The frame of a line of an interpreter's code, the same for equal ones; texts are copied, and
    /// cut after 1023 bytes; NULL: not known. 0: no memory, or a million are known.
    memrt_frame_t (*frame_new)(const char *function, const char *file, uint64_t line);
    /// What a frame is, which came from site_frames or frame_new. MEMRT_EINVAL: struct_size is not
    /// set; MEMRT_ENOENT: no such frame.
    memrt_status_t (*frame_text)(memrt_frame_t frame, memrt_frame_text_t *out) MEMRT_MUST_CHECK;
    /// What is known of the site of that number; numbers run from 1 without a gap. MEMRT_EINVAL:
    /// struct_size is not set; MEMRT_ENOENT: no such site.
    memrt_status_t (*site_read)(uint32_t site, memrt_site_t *out) MEMRT_MUST_CHECK;
    /// The calls of a site into `out`, which has room for `max`: native code first, then an
    /// interpreter's, each innermost first. Returns how many there are; 0: no such site.
    size_t (*site_frames)(uint32_t site, memrt_frame_t *out, size_t max);
    /// Expect that buffers last which are born where `pattern`, as a shell has it, fits a call, as
    /// "function at file:line" or "function+0xNN in object": reports of leaks tell of them apart,
    /// as `what`. Both are copied. MEMRT_EINVAL: one is missing, empty or has more than 255 bytes;
    /// MEMRT_ELIMIT: 64 patterns are there.
    memrt_status_t (*lasting_add)(const char *pattern, const char *what) MEMRT_MUST_CHECK;
    /// What lasts that is born at the site; NULL: nobody expects it to. Valid for good.
    const char *(*lasting_at)(uint32_t site);
    /// Tell why `size` bytes of `policy` (NULL: the default one) may have been refused, 0: whatever
    /// was asked, in a few lines for people: what is live and kept for reuse, the limits of the
    /// system in force, the places of birth that hold most, as far as births were tracked, and the
    /// largest live buffers that have a name or are held under one.
    /// Writes at most `length` bytes with the closing zero; returns the bytes of all, without the
    /// zero. Allocates nothing.
    size_t (*explain_shortage)(const memrt_policy_t *policy, size_t size, char *text,
                               size_t length);
    /// What tracking knows of the buffer of `mi`: one row as `buffers` has it. MEMRT_EINVAL: as
    /// there; MEMRT_ENOENT: it is not listed.
    memrt_status_t (*buffer_read)(const memrt_meminfo_t *mi, size_t row_size,
                                  void *out) MEMRT_MUST_CHECK;

    /* --- Symbol slots: calls of functions that do not exist yet. ---
     *
     * Code that is compiled piece by piece, as functions that call each other, calls through a
     * slot, which has the address of the function of a name. Before that is defined the slot has
     * an unresolved_abort that knows the name. Source: Numba's notes on its runtime, "Recursion
     * support". */

    /// What is called in place of a symbol that is not defined, as a function of any arguments:
    /// leaves an error to the calling thread, for symbol_error, and returns -1, by which compiled
    /// code says that there is one.
    intptr_t (*unresolved_abort)(void);

    /// The slot of `name`, the same for all who ask, valid for good. Compiled code loads the
    /// address from it, whole and in one access, at each call.
    ///
    /// Failure:   MEMRT_EINVAL: no name, an empty one or one of more than MEMRT_SYMBOL_MAX bytes;
    ///            MEMRT_ENOMEM; MEMRT_ELIMIT: a million names have slots.
    memrt_status_t (*symbol_slot)(const char *name,
                                  memrt_function_t *const **slot) MEMRT_MUST_CHECK;
    /// Define a symbol: from now on all its users call `function`. NULL: it is not defined any
    /// more, before its code goes; who is in it or just on the way there still has to come back.
    ///
    /// Threads:   what was written before is seen by who calls the function.
    /// Failure:   as symbol_slot, and MEMRT_EBUSY: it is defined as another function.
    memrt_status_t (*symbol_define)(const char *name, memrt_function_t *function) MEMRT_MUST_CHECK;
    /// The names that have a slot and are not defined: the first `room` of them to `names`, oldest
    /// first, valid for good. Returns how many they are.
    size_t (*symbols_unresolved)(const char **names, size_t room);
    /// Take the error that a call of an undefined symbol left to the calling thread, the first
    /// one where there were more. MEMRT_OK: there is none. MEMRT_ENOENT: `*name` (unless `name` is
    /// NULL) is the symbol, valid for good, or NULL where that cannot be told: after
    /// MEMRT_SYMBOLS_NAMED others that were undefined at the time.
    memrt_status_t (*symbol_error)(const char **name);
    /// Set who is told of such calls, or take it away with NULL. The function must stay for good: a
    /// thread may be in it.
    void (*set_symbol_error)(memrt_symbol_error_fn tell);
    /* --- CUDA: buffers of devices, of managed and of pinned memory. What returns a status, but for
           cuda_info, cuda_stats and cuda_set_limit, fails with MEMRT_ENOTSUP where there is no
           driver, and with MEMRT_EDEVICE where the driver refuses. None may be called from a
           function that the driver calls in the order of a stream, nor may the last reference to a
           buffer be given up there. --- */

    /// Why CUDA cannot be used: writes at most `length` bytes of a sentence with the closing zero
    /// and returns the bytes that it needs, without the zero. 0: it can be used.
    size_t (*cuda_why_not)(char *text, size_t length);
    /// Which call of the driver failed last in this thread, and how, as cuda_why_not.
    size_t (*cuda_error)(char *text, size_t length);
    /// New MemInfo over `size` bytes of a CUDA memory, count 1, contents undefined; no bytes have
    /// no address. In the order of `options->stream` where there is one and the device has memory
    /// pools: at once usable in that stream, elsewhere after cuda_wait. When the last reference
    /// goes, the memory is given back once all work on it is done that memrt was told of, in that
    /// order, or, without one, after waiting for it.
    /// Failure: MEMRT_EINVAL for an unknown memory, no device's ordinal, a bad name; MEMRT_ENOMEM,
    ///          also for the limit of the memory; nothing was allocated.
    memrt_status_t (*cuda_new)(size_t size, const memrt_cuda_options_t *options,
                               memrt_meminfo_t **out) MEMRT_MUST_CHECK;
    /// New MemInfo over memory that somebody else allocated with CUDA, count 1; `options->dtor`
    /// lets go of it. The addresses of its first and its last byte are resolved for the device by
    /// cuPointerGetAttribute(CU_POINTER_ATTRIBUTE_DEVICE_POINTER).
    /// Ownership: memrt owns the memory on MEMRT_OK; on failure the caller still does.
    /// Failure:   MEMRT_EDEVICE for an address that the driver does not know; MEMRT_EINVAL for NULL
    ///            with a size, a size beyond the address space, and two pieces of memory;
    ///            MEMRT_ENOMEM.
    memrt_status_t (*cuda_adopt)(uintptr_t address, size_t size,
                                 const memrt_cuda_options_t *options,
                                 memrt_meminfo_t **out) MEMRT_MUST_CHECK;
    /// What CUDA knows of a buffer. MEMRT_ENOENT: it is in ordinary memory; MEMRT_EINVAL:
    /// struct_size is not set.
    memrt_status_t (*cuda_info)(const memrt_meminfo_t *mi, memrt_cuda_info_t *out) MEMRT_MUST_CHECK;
    /// Work on the buffer was put into `stream`: the buffer's own stream waits for it from now on,
    /// or, where it has none, is this one, which then must live as long as the buffer; in place of
    /// MEMRT_CUDA_STREAM_PER_THREAD it is then the legacy stream, which waits for it.
    /// MEMRT_EINVAL: stream is none; MEMRT_ENOTSUP: it is none of cuda_new or cuda_adopt.
    memrt_status_t (*cuda_used)(memrt_meminfo_t *mi, uintptr_t stream) MEMRT_MUST_CHECK;
    /// Have `stream` wait for all work on the buffer that memrt was told of. Failure as cuda_used.
    memrt_status_t (*cuda_wait)(memrt_meminfo_t *mi, uintptr_t stream) MEMRT_MUST_CHECK;
    /// Copy `size` bytes at `offset` of a buffer to the host, by `stream` (none: the buffer's own),
    /// after all work on it; done when this returns. MEMRT_EINVAL: beyond the buffer's end;
    /// MEMRT_ENOTSUP: as cuda_used.
    memrt_status_t (*cuda_read)(memrt_meminfo_t *mi, size_t offset, void *out, size_t size,
                                uintptr_t stream) MEMRT_MUST_CHECK;
    /// Copy `size` bytes of the host, or of any memory of CUDA, to `offset` of a buffer, as
    /// cuda_read. MEMRT_EINVAL also for a read-only buffer.
    memrt_status_t (*cuda_write)(memrt_meminfo_t *mi, size_t offset, const void *data, size_t size,
                                 uintptr_t stream) MEMRT_MUST_CHECK;
    /// New stream on a device, which does not wait for the legacy stream. It must be freed after
    /// every buffer that uses it.
    memrt_status_t (*cuda_stream_new)(int32_t device, uintptr_t *out) MEMRT_MUST_CHECK;
    /// Free a stream that cuda_stream_new made; work that is in it is still done. MEMRT_EINVAL: it
    /// is none of these.
    memrt_status_t (*cuda_stream_free)(int32_t device, uintptr_t stream) MEMRT_MUST_CHECK;
    /// Wait until all work in a stream is done. MEMRT_EINVAL: it is none.
    memrt_status_t (*cuda_stream_synchronize)(int32_t device, uintptr_t stream) MEMRT_MUST_CHECK;
    /// Read the account of a CUDA memory; that of adopted buffers is in none. MEMRT_EINVAL: an
    /// unknown memory, or struct_size is not set.
    memrt_status_t (*cuda_stats)(memrt_memory_t memory, memrt_cuda_stats_t *out) MEMRT_MUST_CHECK;
    /// Allow no more than `limit` bytes of a memory in use at once, UINT64_MAX: any number. What is
    /// in use already stays. MEMRT_EINVAL: an unknown memory.
    memrt_status_t (*cuda_set_limit)(memrt_memory_t memory, uint64_t limit) MEMRT_MUST_CHECK;
    /// The policy on whose account buffers of a memory are that name none; MEMRT_MEMORY_HOST for
    /// adopted ones. Borrowed, never dies. NULL: an unknown memory, out of memory, or 4095 policies
    /// are live.
    memrt_policy_t *(*cuda_policy)(memrt_memory_t memory);
    /// Pinned memory of the host, for policies; each block is a call of the driver. Without a
    /// driver every request is refused. Static.
    const memrt_allocator_t *(*allocator_pinned)(void);
    /* --- DLPack, with memrt/dlpack.h. `*why` (unless `why` is NULL) is a sentence on the tensor
           when one of these answers MEMRT_EINVAL, _ENOTSUP or _EDEVICE; static. --- */

    /// Hand `mi` to another library: a new tensor of DLPack's version 1.3 over its data, as `view`
    /// says, which is copied. It is marked read-only if `mi` is or the view says so. A tensor
    /// without elements has no data. Until the library calls the deleter, `holders` lists the
    /// export under MEMRT_DLPACK_HOLDER. It is for the caller to have the library's work wait for
    /// what is done with memory of CUDA, as by cuda_wait.
    /// Ownership: the tensor holds one reference, which its deleter gives up.
    /// Threads:   the deleter may be called on any, without a GIL.
    /// Failure:   MEMRT_EINVAL when struct_size is not set, for flags that the view has not, for a
    ///            shape that no memory can have, and for elements outside of the data;
    ///            MEMRT_ENOTSUP for a type of elements that is not exchanged, and for a device on
    ///            which the memory is not; MEMRT_ENOMEM.
    memrt_status_t (*dlpack_export)(memrt_meminfo_t *mi, const struct memrt_dlpack_view *view,
                                    struct DLManagedTensorVersioned **out,
                                    const char **why) MEMRT_MUST_CHECK;
    /// The same for a library that knows only tensors as they were before version 1.0. These cannot
    /// say that they are read-only, nor that they are copies.
    /// Failure:   as dlpack_export, and MEMRT_ENOTSUP for memory that is read-only.
    memrt_status_t (*dlpack_export_unversioned)(memrt_meminfo_t *mi,
                                                const struct memrt_dlpack_view *view,
                                                struct DLManagedTensor **out,
                                                const char **why) MEMRT_MUST_CHECK;
    /// New MemInfo over the memory of a tensor that another library made, as meminfo_adopt, count
    /// 1. Its data runs from the lowest to the highest byte of any element; `view` is told how they
    /// lie, its shape and strides borrowed from the tensor. The MemInfo is read-only if the tensor
    /// is. Flags of the tensor that memrt does not know are ignored. Memory of a CUDA device
    /// becomes a MemInfo as by cuda_adopt, whose work is in the order of the legacy stream.
    /// `options`: as for meminfo_adopt. If there is a `dtor`, it runs in the place of the deleter
    ///            and has to see to it that this is called.
    /// Ownership: the MemInfo owns the tensor on MEMRT_OK and calls its deleter, if it has one, in
    ///            the end; on failure the caller still does, and may always call the deleter.
    /// Threads:   the deleter runs on whichever thread gave up the last reference.
    /// Failure:   MEMRT_EINVAL when a struct_size is not set, for options that do not apply, and
    ///            for a shape, strides or address that no memory can have; from version 1.2 on a
    ///            tensor with dimensions has to have strides. MEMRT_ENOTSUP for a major version
    ///            other than 1, of which no more than the deleter may be used, for a device whose
    ///            memory the host cannot read, unless it is CUDA's and there is a driver, and for a
    ///            type of elements that is not exchanged; MEMRT_EDEVICE where the driver does not
    ///            know the memory; MEMRT_ENOMEM.
    memrt_status_t (*dlpack_adopt)(struct DLManagedTensorVersioned *tensor,
                                   const memrt_new_options_t *options,
                                   struct memrt_dlpack_view *view, memrt_meminfo_t **out,
                                   const char **why) MEMRT_MUST_CHECK;
    /// The same for a tensor as they were before version 1.0. Whether such memory may be written is
    /// not known: the MemInfo and the view are read-only.
    memrt_status_t (*dlpack_adopt_unversioned)(struct DLManagedTensor *tensor,
                                               const memrt_new_options_t *options,
                                               struct memrt_dlpack_view *view,
                                               memrt_meminfo_t **out,
                                               const char **why) MEMRT_MUST_CHECK;
    /// New memory for a tensor like `view`, and the tensor: for libraries that have others allocate
    /// for them. The view has no strides, the elements lie compact, and no offset. Its device is
    /// the CPU or one of CUDA's, of whose memory it then is as by cuda_new. `options`: as for
    /// meminfo_new; with CUDA neither alignment, zeroes nor `external`. Ownership: the tensor, as
    /// dlpack_export makes it, holds the only reference. Failure:   as meminfo_new, cuda_new and
    /// dlpack_export; MEMRT_EINVAL for strides or an offset,
    ///            and for memory that would be `readonly`.
    memrt_status_t (*dlpack_new)(const struct memrt_dlpack_view *view,
                                 const memrt_new_options_t *options,
                                 struct DLManagedTensorVersioned **out,
                                 const char **why) MEMRT_MUST_CHECK;

    /* --- Arrow's C data interface, with memrt/arrow.h. `*why` (unless `why` is NULL) is a sentence
           on the array when one of these answers MEMRT_EINVAL or MEMRT_ENOTSUP; static. --- */

    /// Hand `mi` to another library: fill in an array over its data, as `view` says, and the schema
    /// of its elements. Either may be NULL for a caller that wants only the other. Until the array
    /// is released, `holders` lists the export under MEMRT_ARROW_HOLDER. Nobody may write to what
    /// others read as an Arrow array.
    /// Ownership: what is filled in is the caller's, to be released by its `release`. The array
    ///            holds a reference to `mi` and one to the bitmap's MemInfo; texts are copied.
    /// Threads:   `release` may be called on any, without a GIL.
    /// Failure:   MEMRT_EINVAL when struct_size is not set, for flags that the view has not, for
    ///            elements or a bitmap outside of the data of their MemInfo, or not in one memory;
    ///            MEMRT_ENOTSUP for a format that is not exchanged, and for memory of a device
    ///            without MEMRT_ARROW_DEVICE; MEMRT_ENOMEM. Nothing is filled in then.
    memrt_status_t (*arrow_export)(memrt_meminfo_t *mi, const struct memrt_arrow_view *view,
                                   struct ArrowSchema *schema, struct ArrowArray *array,
                                   const char **why) MEMRT_MUST_CHECK;
    /// New MemInfo over the elements of an array that another library made, as meminfo_adopt, count
    /// 1. It is read-only, as Arrow's arrays are. `view` is told how elements lie; its format and
    /// name are borrowed from the schema, which stays the caller's, its bitmap from the array, and
    /// its nulls are counted. With a `dtor` in the options the array stays where it is: that runs
    /// in the place of `release`, and has to see to it that this is called.
    /// Ownership: on MEMRT_OK the array was moved: its `release` is NULL, and the MemInfo calls it
    ///            in the end. On failure the array is the caller's as before.
    /// Threads:   `release` is called on whichever thread gave up the last reference.
    /// Failure:   MEMRT_EINVAL when a struct_size is not set, for options that do not apply, for a
    ///            schema or array that was released, that contradict each other, or whose numbers
    ///            no memory can have; MEMRT_ENOTSUP for a format that is not exchanged, and for one
    ///            that has children or a dictionary; MEMRT_ENOMEM.
    memrt_status_t (*arrow_adopt)(const struct ArrowSchema *schema, struct ArrowArray *array,
                                  const memrt_new_options_t *options, struct memrt_arrow_view *view,
                                  memrt_meminfo_t **out, const char **why) MEMRT_MUST_CHECK;

    /* --- Traces: every allocation as an event in a file, with memrt/trace.h. --- */

    /// Record what is born from now on, on any thread, with its resizes, its death, and what is
    /// refused, until trace_stop or the end of the process. Blocks of before are in no event. A
    /// forked child is not recorded. Once the system refuses to write, as on a full disk, the
    /// program goes on and events are lost, which is counted; writing is tried again.
    /// Failure: MEMRT_EINVAL: struct_size or path is not set, or a number is above its limit;
    ///          MEMRT_EBUSY: a trace is recorded already; MEMRT_ENOMEM; MEMRT_EIO: the file cannot
    ///          be made, `*error` (unless `error` is NULL) is the errno of that, EINVAL where it is
    ///          no regular file.
    memrt_status_t (*trace_start)(const memrt_trace_options_t *options,
                                  int *error) MEMRT_MUST_CHECK;
    /// Write what waits in buffers, and the end of the trace; `out` (unless it is NULL) is told
    /// what came of it. MEMRT_ENOENT: no trace is recorded; MEMRT_EINVAL: struct_size is not set.
    memrt_status_t (*trace_stop)(memrt_trace_stats_t *out) MEMRT_MUST_CHECK;
    /// Write what waits in buffers, and tell how far the trace is, or how far the last one came.
    /// MEMRT_EINVAL: struct_size is not set.
    memrt_status_t (*trace_stats)(memrt_trace_stats_t *out) MEMRT_MUST_CHECK;
    /// Put an event with a name of 1 to 1023 bytes into the trace, to find a moment again. Nothing
    /// while none is recorded. MEMRT_EINVAL: it is no such name; MEMRT_ENOMEM.
    memrt_status_t (*trace_mark)(const char *name) MEMRT_MUST_CHECK;
} memrt_api_t;

/// Bits of memrt_api_t.features.
#define MEMRT_FEATURE_CHECKING ((uint64_t)1 << 0) ///< the table verifies (MEMRT_CHECK=1)
#define MEMRT_FEATURE_COUNTERS ((uint64_t)1 << 1) ///< statistics are counted; else they read 0
#define MEMRT_FEATURE_PROBES ((uint64_t)1 << 2)   ///< static probes are built in

/// Whether the table at hand has `slot`: ask before using one newer than the library may be.
#define MEMRT_HAS(api, slot)                                                                       \
    (offsetof(memrt_api_t, slot) + sizeof((api)->slot) <= (api)->struct_size)

/// See memrt_api_of_nrt().
#define MEMRT_PROBE ((size_t)0x6d656d7274707262u)

/// The whole table, given a pointer to the six slots of Numba's NRT_api_functions, as compiled code
/// gets it from Numba's NRT_get_api(); NULL when those are not memrt's.
///
/// Numba's own table says nothing of its size or maker, so this asks get_data about a MemInfo that
/// no runtime would make: Numba answers with its `data`, which is NULL, memrt with its table.
static inline const memrt_api_t *memrt_api_of_nrt(const void *nrt_api_functions)
{
    memrt_meminfo_t probe = {MEMRT_PROBE, NULL, NULL, NULL, 0, NULL, 0, 0, 0, 0, 0, 0};
    probe.dtor_info = &probe;
    return (const memrt_api_t *)((const memrt_api_t *)nrt_api_functions)->get_data(&probe);
}

#if defined(__GNUC__)
/// As memrt_api_t.acquire, inlined into the caller: one locked instruction, as compiled code
/// counts.
///
/// Contract: the caller holds a reference. Not seen by checking mode until the block dies.
static inline void memrt_meminfo_acquire(memrt_meminfo_t *mi)
{
    __atomic_fetch_add(&mi->refct, 1, __ATOMIC_RELAXED);
}

/// As memrt_api_t.release, inlined likewise; the last reference goes through the table.
///
/// Ownership: consumes the caller's reference; `mi` is dead to the caller afterwards.
/// Threads:   earlier writes to the data happen before the destructor.
static inline void memrt_meminfo_release(const memrt_api_t *api, memrt_meminfo_t *mi)
{
    if (__atomic_fetch_sub(&mi->refct, 1, __ATOMIC_ACQ_REL) == 1) {
        api->call_dtor(mi);
    }
}
#endif

#if defined(__GNUC__)
#define MEMRT_EXPORT __attribute__((visibility("default")))
#else
#define MEMRT_EXPORT
#endif

/// The table for a caller built against `abi_major`; the same pointer every time, valid for good.
///
/// NULL when the library's major is another one; then `*why` (unless `why` is NULL) is a sentence
/// that says what to do.
MEMRT_EXPORT const memrt_api_t *memrt_get_api(uint32_t abi_major, const char **why);

/// Version of the library at hand, "0.1.0".
MEMRT_EXPORT const char *memrt_version(void);

#ifdef __cplusplus
}
#endif

#endif
