# cython: language_level=3
# Declarations of memrt for Cython: `from memrt cimport memrt_api_t, memrt_import`. A module that
# uses the declarations needs memrt.get_include() as an include path, and links to no library.
# The headers have the contract of each call.
#
# Written from the headers by tests/checks/declarations.py: do not edit.

from libc.stdint cimport int32_t, int64_t, intptr_t
from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t, uintptr_t


cdef extern from "memrt/import.h":
    # Import the package and return the function table. Call it once, when the module is imported.
    const memrt_api_t *memrt_import() except NULL

    # Show the memory of a MemInfo in tracemalloc, at the Python line running now.
    int memrt_tracemalloc_register(const memrt_api_t *api, memrt_meminfo_t *mi) except -1

    # Acquire and release a reference, inlined into the caller.
    void memrt_meminfo_acquire(memrt_meminfo_t *mi) noexcept nogil
    void memrt_meminfo_release(const memrt_api_t *api, memrt_meminfo_t *mi) noexcept nogil

    ctypedef enum memrt_status_t:
        MEMRT_OK
        MEMRT_ENOMEM
        MEMRT_EINVAL
        MEMRT_ENOENT
        MEMRT_EBUSY
        MEMRT_ELIMIT
        MEMRT_ENOTSUP
        MEMRT_EDEVICE
        MEMRT_EIO

    ctypedef const char *(*memrt_status_text_fn)(memrt_status_t status) noexcept nogil

    ctypedef struct memrt_allocator_usage_t:
        size_t cached

    ctypedef struct memrt_allocator_t:
        size_t struct_size
        uint32_t version
        uint32_t reserved
        const char *name
        void *ctx
        void *(*alloc)(void *ctx, size_t size, size_t align) noexcept nogil
        void *(*alloc_zeroed)(void *ctx, size_t size, size_t align) noexcept nogil
        void *(*realloc)(void *ctx, void *ptr, size_t old_size, size_t new_size,
            size_t align) noexcept nogil
        void (*free)(void *ctx, void *ptr, size_t size, size_t align) noexcept nogil
        size_t (*release_unused)(void *ctx) noexcept nogil
        void (*usage)(void *ctx, memrt_allocator_usage_t *out) noexcept nogil
        void (*destroy)(void *ctx) noexcept nogil
        int (*try_expand)(void *ctx, void *ptr, size_t old_size, size_t new_size,
            size_t align) noexcept nogil
        size_t (*usable_size)(void *ctx, const void *ptr, size_t size, size_t align) noexcept nogil
        size_t (*good_size)(void *ctx, size_t size, size_t align) noexcept nogil

    ctypedef const memrt_allocator_t *(*memrt_allocator_default_fn)() noexcept nogil

    ctypedef const memrt_allocator_t *(*memrt_allocator_system_fn)() noexcept nogil

    ctypedef const memrt_allocator_t *(*memrt_allocator_mapped_fn)() noexcept nogil

    ctypedef memrt_status_t (*memrt_allocator_guard_fn)(const memrt_allocator_t *upstream,
        memrt_allocator_t *out) noexcept nogil

    ctypedef enum memrt_adaptor_kind_t:
        MEMRT_ADAPTOR_COUNTING
        MEMRT_ADAPTOR_LIMITING
        MEMRT_ADAPTOR_ALIGNING
        MEMRT_ADAPTOR_RETRYING
        MEMRT_ADAPTOR_LOGGING
        MEMRT_ADAPTOR_THREAD_SAFE
        MEMRT_ADAPTOR_PREFETCHING
        MEMRT_ADAPTOR_ARENA

    ctypedef struct memrt_adaptor_counts_t:
        size_t allocations
        size_t resizes
        size_t frees
        size_t refusals
        size_t in_use
        size_t peak

    ctypedef int (*memrt_adaptor_failed_fn)(size_t size, size_t align, void *context) noexcept nogil

    ctypedef struct memrt_adaptor_options_t:
        size_t struct_size
        uint32_t kind
        int32_t file
        size_t amount
        memrt_adaptor_counts_t *counts
        memrt_adaptor_failed_fn failed
        void *context

    ctypedef memrt_status_t (*memrt_allocator_adaptor_fn)(const memrt_allocator_t *upstream,
        const memrt_adaptor_options_t *options, memrt_allocator_t *out) noexcept nogil

    ctypedef memrt_status_t (*memrt_allocator_file_fn)(const char *folder,
        memrt_allocator_t *out) noexcept nogil

    ctypedef memrt_status_t (*memrt_pages_cold_fn)(const void *address, size_t size, int pageout,
        size_t *bytes) noexcept nogil

    ctypedef struct memrt_policy_t:
        pass

    ctypedef struct memrt_policy_options_t:
        size_t struct_size
        const char *name
        size_t alignment
        const memrt_allocator_t *allocator
        const char *cache_limit
        const char *decay
        const char *hugepages
        const char *guard_sample

    ctypedef memrt_status_t (*memrt_policy_new_fn)(const memrt_policy_options_t *options,
        memrt_policy_t **out) noexcept nogil

    ctypedef void (*memrt_policy_acquire_fn)(memrt_policy_t *policy) noexcept nogil

    ctypedef void (*memrt_policy_release_fn)(memrt_policy_t *policy) noexcept nogil

    ctypedef memrt_policy_t *(*memrt_policy_default_fn)() noexcept nogil

    ctypedef memrt_status_t (*memrt_policy_default_set_allocator_fn)(const memrt_allocator_t *allocator) noexcept nogil

    ctypedef memrt_status_t (*memrt_policy_reset_fn)(memrt_policy_t *policy, size_t *bytes,
        char *why, size_t length) noexcept nogil

    ctypedef const char *(*memrt_policy_name_fn)(const memrt_policy_t *policy) noexcept nogil

    ctypedef size_t (*memrt_policy_alignment_fn)(const memrt_policy_t *policy) noexcept nogil

    ctypedef uint32_t (*memrt_policy_index_fn)(const memrt_policy_t *policy) noexcept nogil

    ctypedef memrt_policy_t *(*memrt_policy_at_fn)(uint32_t index) noexcept nogil

    ctypedef uint32_t (*memrt_policy_limit_fn)() noexcept nogil

    ctypedef enum memrt_lock_t:
        MEMRT_LOCK_NONE
        MEMRT_LOCK_TRY
        MEMRT_LOCK_MUST

    ctypedef struct memrt_placement_options_t:
        size_t struct_size
        const char *pages
        const char *node
        uint32_t lock
        uint32_t prefault

    ctypedef memrt_status_t (*memrt_allocator_placed_fn)(const memrt_placement_options_t *options,
        memrt_allocator_t *out, char *why, size_t length) noexcept nogil

    ctypedef struct memrt_placement_asked_t:
        size_t struct_size
        const char *pages
        const char *node
        uint32_t lock
        uint32_t prefault
        int32_t thp_refused
        int32_t node_refused
        int32_t lock_refused
        int32_t pool_2m_refused
        int32_t pool_1g_refused
        int32_t home_refused

    ctypedef memrt_status_t (*memrt_policy_placement_fn)(const memrt_policy_t *policy,
        memrt_placement_asked_t *out) noexcept nogil

    ctypedef struct memrt_placement_t:
        size_t struct_size
        uint64_t bytes
        uint64_t resident
        uint64_t huge
        uint64_t locked
        uint64_t swapped
        uint64_t by_node[64]

    ctypedef memrt_status_t (*memrt_placement_read_fn)(const void *address, size_t size,
        memrt_placement_t *out) noexcept nogil

    ctypedef void (*memrt_dtor_fn)(void *data, size_t size, void *dtor_info) noexcept nogil

    ctypedef void (*memrt_managed_dtor_fn)(void *data) noexcept nogil

    ctypedef struct memrt_external_allocator_t:
        void *(*malloc)(size_t size, void *opaque_data) noexcept nogil
        void *(*realloc)(void *ptr, size_t new_size, void *opaque_data) noexcept nogil
        void (*free)(void *ptr, void *opaque_data) noexcept nogil
        void *opaque_data

    ctypedef enum memrt_kind_t:
        MEMRT_KIND_INLINE
        MEMRT_KIND_ADOPTED
        MEMRT_KIND_RESIZABLE
        MEMRT_KIND_BLOCK

    ctypedef struct memrt_meminfo_t:
        size_t refct
        memrt_dtor_fn dtor
        void *dtor_info
        void *data
        size_t size
        memrt_external_allocator_t *external_allocator
        uint16_t policy
        uint8_t kind
        uint8_t align_log2
        uint32_t flags
        uint32_t lead
        uint32_t bin

    ctypedef void (*memrt_acquire_fn)(memrt_meminfo_t *mi) noexcept nogil

    ctypedef void (*memrt_release_fn)(memrt_meminfo_t *mi) noexcept nogil

    ctypedef void *(*memrt_get_data_fn)(memrt_meminfo_t *mi) noexcept nogil

    ctypedef int (*memrt_try_acquire_fn)(memrt_meminfo_t *mi) noexcept nogil

    ctypedef void (*memrt_call_dtor_fn)(memrt_meminfo_t *mi) noexcept nogil

    ctypedef size_t (*memrt_refcount_fn)(const memrt_meminfo_t *mi) noexcept nogil

    ctypedef int (*memrt_try_unique_fn)(const memrt_meminfo_t *mi) noexcept nogil

    ctypedef size_t (*memrt_size_fn)(const memrt_meminfo_t *mi) noexcept nogil

    ctypedef void *(*memrt_dtor_info_fn)(const memrt_meminfo_t *mi) noexcept nogil

    ctypedef int (*memrt_readonly_fn)(const memrt_meminfo_t *mi) noexcept nogil

    ctypedef memrt_external_allocator_t *(*memrt_external_allocator_fn)(const memrt_meminfo_t *mi) noexcept nogil

    ctypedef memrt_status_t (*memrt_set_name_fn)(memrt_meminfo_t *mi,
        const char *name) noexcept nogil

    ctypedef void (*memrt_get_name_fn)(const memrt_meminfo_t *mi, char *buffer) noexcept nogil

    ctypedef size_t (*memrt_dump_fn)(const memrt_meminfo_t *mi, char *buffer,
        size_t length) noexcept nogil

    ctypedef memrt_policy_t *(*memrt_policy_of_fn)(const memrt_meminfo_t *mi) noexcept nogil

    ctypedef struct memrt_stats_t:
        size_t struct_size
        uint64_t alloc
        uint64_t free
        uint64_t mi_alloc
        uint64_t mi_free
        uint64_t realloc
        uint64_t failed
        uint64_t live
        uint64_t peak
        uint64_t peak_error
        uint64_t total
        uint64_t adopted
        uint64_t cached
        uint64_t reserved
        uint64_t inherited
        uint64_t inherited_blocks
        uint64_t inherited_error
        uint64_t exported

    ctypedef struct memrt_sizes_t:
        size_t struct_size
        uint64_t allocated[48]
        uint64_t live[48]

    ctypedef memrt_status_t (*memrt_stats_read_fn)(const memrt_policy_t *policy,
        memrt_stats_t *out) noexcept nogil

    ctypedef memrt_status_t (*memrt_stats_sizes_fn)(const memrt_policy_t *policy,
        memrt_sizes_t *out) noexcept nogil

    ctypedef void (*memrt_stats_reset_peak_fn)(memrt_policy_t *policy) noexcept nogil

    ctypedef struct memrt_thread_stats_t:
        size_t struct_size
        uint64_t id
        uint64_t started
        uint64_t alloc
        uint64_t free
        uint64_t allocated
        uint64_t freed

    ctypedef memrt_status_t (*memrt_threads_fn)(memrt_thread_stats_t *out,
        size_t *count) noexcept nogil

    ctypedef struct memrt_scope_t:
        pass

    ctypedef memrt_status_t (*memrt_scope_open_fn)(memrt_scope_t *parent, const char *name,
        memrt_scope_t **out) noexcept nogil

    ctypedef void (*memrt_scope_acquire_fn)(memrt_scope_t *scope) noexcept nogil

    ctypedef void (*memrt_scope_release_fn)(memrt_scope_t *scope) noexcept nogil

    ctypedef memrt_status_t (*memrt_scope_enter_fn)(memrt_scope_t *scope,
        memrt_scope_t **before) noexcept nogil

    ctypedef memrt_scope_t *(*memrt_scope_current_fn)() noexcept nogil

    ctypedef memrt_status_t (*memrt_scope_policy_fn)(memrt_scope_t *scope, memrt_policy_t *policy,
        memrt_policy_t **out) noexcept nogil

    ctypedef memrt_scope_t *(*memrt_scope_of_fn)(const memrt_meminfo_t *mi) noexcept nogil

    ctypedef memrt_scope_t *(*memrt_scope_next_fn)(memrt_scope_t *scope) noexcept nogil

    ctypedef memrt_scope_t *(*memrt_scope_parent_fn)(const memrt_scope_t *scope) noexcept nogil

    ctypedef const char *(*memrt_scope_name_fn)(const memrt_scope_t *scope) noexcept nogil

    ctypedef uint32_t (*memrt_scope_id_fn)(const memrt_scope_t *scope) noexcept nogil

    ctypedef memrt_status_t (*memrt_scope_stats_fn)(const memrt_scope_t *scope,
        memrt_stats_t *out) noexcept nogil

    ctypedef void (*memrt_scope_sizes_fn)(const memrt_scope_t *scope, uint64_t *out) noexcept nogil

    ctypedef memrt_status_t (*memrt_scope_stats_sizes_fn)(const memrt_scope_t *scope,
        memrt_sizes_t *out) noexcept nogil

    ctypedef void (*memrt_scope_reset_peak_fn)(memrt_scope_t *scope) noexcept nogil

    ctypedef enum memrt_memory_t:
        MEMRT_MEMORY_HOST
        MEMRT_MEMORY_DEVICE
        MEMRT_MEMORY_MANAGED
        MEMRT_MEMORY_PINNED

    ctypedef struct memrt_cuda_options_t:
        size_t struct_size
        uint32_t memory
        int32_t device
        uintptr_t stream
        int32_t readonly
        uint32_t reserved
        memrt_dtor_fn dtor
        void *dtor_info
        const char *name
        memrt_policy_t *policy

    ctypedef struct memrt_cuda_info_t:
        size_t struct_size
        uint32_t memory
        int32_t device
        uintptr_t stream
        int32_t adopted
        uint32_t reserved

    ctypedef struct memrt_cuda_stats_t:
        size_t struct_size
        uint64_t live
        uint64_t peak
        uint64_t limit
        uint64_t alloc
        uint64_t free
        uint64_t failed
        uint64_t lost
        uint64_t cached

    ctypedef size_t (*memrt_cuda_why_not_fn)(char *text, size_t length) noexcept nogil

    ctypedef size_t (*memrt_cuda_error_fn)(char *text, size_t length) noexcept nogil

    ctypedef memrt_status_t (*memrt_cuda_new_fn)(size_t size, const memrt_cuda_options_t *options,
        memrt_meminfo_t **out) noexcept nogil

    ctypedef memrt_status_t (*memrt_cuda_adopt_fn)(uintptr_t address, size_t size,
        const memrt_cuda_options_t *options, memrt_meminfo_t **out) noexcept nogil

    ctypedef memrt_status_t (*memrt_cuda_info_fn)(const memrt_meminfo_t *mi,
        memrt_cuda_info_t *out) noexcept nogil

    ctypedef memrt_status_t (*memrt_cuda_used_fn)(memrt_meminfo_t *mi,
        uintptr_t stream) noexcept nogil

    ctypedef memrt_status_t (*memrt_cuda_wait_fn)(memrt_meminfo_t *mi,
        uintptr_t stream) noexcept nogil

    ctypedef memrt_status_t (*memrt_cuda_read_fn)(memrt_meminfo_t *mi, size_t offset, void *out,
        size_t size, uintptr_t stream) noexcept nogil

    ctypedef memrt_status_t (*memrt_cuda_write_fn)(memrt_meminfo_t *mi, size_t offset,
        const void *data, size_t size, uintptr_t stream) noexcept nogil

    ctypedef memrt_status_t (*memrt_cuda_stream_new_fn)(int32_t device,
        uintptr_t *out) noexcept nogil

    ctypedef memrt_status_t (*memrt_cuda_stream_free_fn)(int32_t device,
        uintptr_t stream) noexcept nogil

    ctypedef memrt_status_t (*memrt_cuda_stream_synchronize_fn)(int32_t device,
        uintptr_t stream) noexcept nogil

    ctypedef memrt_status_t (*memrt_cuda_stats_fn)(memrt_memory_t memory,
        memrt_cuda_stats_t *out) noexcept nogil

    ctypedef memrt_status_t (*memrt_cuda_set_limit_fn)(memrt_memory_t memory,
        uint64_t limit) noexcept nogil

    ctypedef memrt_policy_t *(*memrt_cuda_policy_fn)(memrt_memory_t memory) noexcept nogil

    ctypedef const memrt_allocator_t *(*memrt_allocator_pinned_fn)() noexcept nogil

    ctypedef void *(*memrt_block_alloc_fn)(void *policy, size_t size) noexcept nogil

    ctypedef void *(*memrt_block_calloc_fn)(void *policy, size_t count, size_t size) noexcept nogil

    ctypedef void *(*memrt_block_realloc_fn)(void *policy, void *data, size_t size) noexcept nogil

    ctypedef void (*memrt_block_free_fn)(void *policy, void *data, size_t size) noexcept nogil

    ctypedef memrt_status_t (*memrt_block_meminfo_fn)(void *data,
        memrt_meminfo_t **out) noexcept nogil

    ctypedef memrt_status_t (*memrt_find_fn)(const void *data, memrt_meminfo_t **out) noexcept nogil

    ctypedef memrt_status_t (*memrt_block_try_expand_fn)(void *data, size_t size) noexcept nogil

    ctypedef size_t (*memrt_block_usable_size_fn)(const void *data) noexcept nogil

    ctypedef size_t (*memrt_block_good_size_fn)(const memrt_policy_t *policy,
        size_t size) noexcept nogil

    ctypedef struct memrt_new_options_t:
        size_t struct_size
        memrt_policy_t *policy
        size_t alignment
        int zeroed
        int readonly
        memrt_dtor_fn dtor
        void *dtor_info
        memrt_external_allocator_t *external
        const char *name
        size_t align_offset

    ctypedef memrt_meminfo_t *(*memrt_allocate_fn)(size_t nbytes) noexcept nogil

    ctypedef memrt_meminfo_t *(*memrt_allocate_from_fn)(size_t nbytes,
        memrt_policy_t *policy) noexcept nogil

    ctypedef memrt_meminfo_t *(*memrt_allocate_external_fn)(size_t nbytes,
        memrt_external_allocator_t *allocator) noexcept nogil

    ctypedef memrt_meminfo_t *(*memrt_manage_memory_fn)(void *data,
        memrt_managed_dtor_fn dtor) noexcept nogil

    ctypedef memrt_status_t (*memrt_meminfo_new_fn)(size_t size,
        const memrt_new_options_t *options, memrt_meminfo_t **out) noexcept nogil

    ctypedef memrt_status_t (*memrt_meminfo_adopt_fn)(void *data, size_t size,
        const memrt_new_options_t *options, memrt_meminfo_t **out) noexcept nogil

    cdef struct memrt_dlpack_view:
        pass

    cdef struct DLManagedTensor:
        pass

    cdef struct DLManagedTensorVersioned:
        pass

    cdef struct memrt_arrow_view:
        pass

    cdef struct ArrowArray:
        pass

    cdef struct ArrowSchema:
        pass

    ctypedef memrt_status_t (*memrt_dlpack_export_fn)(memrt_meminfo_t *mi,
        const memrt_dlpack_view *view, DLManagedTensorVersioned **out,
        const char **why) noexcept nogil

    ctypedef memrt_status_t (*memrt_dlpack_export_unversioned_fn)(memrt_meminfo_t *mi,
        const memrt_dlpack_view *view, DLManagedTensor **out, const char **why) noexcept nogil

    ctypedef memrt_status_t (*memrt_dlpack_adopt_fn)(DLManagedTensorVersioned *tensor,
        const memrt_new_options_t *options, memrt_dlpack_view *view, memrt_meminfo_t **out,
        const char **why) noexcept nogil

    ctypedef memrt_status_t (*memrt_dlpack_adopt_unversioned_fn)(DLManagedTensor *tensor,
        const memrt_new_options_t *options, memrt_dlpack_view *view, memrt_meminfo_t **out,
        const char **why) noexcept nogil

    ctypedef memrt_status_t (*memrt_dlpack_new_fn)(const memrt_dlpack_view *view,
        const memrt_new_options_t *options, DLManagedTensorVersioned **out,
        const char **why) noexcept nogil

    ctypedef memrt_status_t (*memrt_arrow_export_fn)(memrt_meminfo_t *mi,
        const memrt_arrow_view *view, ArrowSchema *schema, ArrowArray *array,
        const char **why) noexcept nogil

    ctypedef memrt_status_t (*memrt_arrow_adopt_fn)(const ArrowSchema *schema, ArrowArray *array,
        const memrt_new_options_t *options, memrt_arrow_view *view, memrt_meminfo_t **out,
        const char **why) noexcept nogil

    ctypedef memrt_status_t (*memrt_freeze_fn)(memrt_meminfo_t *mi, size_t *bytes) noexcept nogil

    ctypedef memrt_status_t (*memrt_thaw_fn)(memrt_meminfo_t *mi) noexcept nogil

    ctypedef enum memrt_holder_kind_t:
        MEMRT_HOLDER_REFERENCE
        MEMRT_HOLDER_EXPORT

    ctypedef struct memrt_holder_t:
        size_t count
        uint64_t age_ns
        uint64_t thread
        uint32_t kind
        char name[64]

    ctypedef memrt_status_t (*memrt_acquire_as_fn)(memrt_meminfo_t *mi, memrt_holder_kind_t kind,
        const char *name) noexcept nogil

    ctypedef void (*memrt_release_as_fn)(memrt_meminfo_t *mi, memrt_holder_kind_t kind,
        const char *name) noexcept nogil

    ctypedef size_t (*memrt_holders_fn)(const memrt_meminfo_t *mi, memrt_holder_t *rows,
        size_t row_size, size_t room) noexcept nogil

    ctypedef struct memrt_location_t:
        size_t struct_size
        uintptr_t data
        size_t size
        uintptr_t meminfo
        uint64_t id
        uint32_t scope
        uint32_t policy

    ctypedef memrt_status_t (*memrt_locate_fn)(const void *address,
        memrt_location_t *out) noexcept nogil

    ctypedef memrt_status_t (*memrt_resizable_new_fn)(size_t size,
        const memrt_new_options_t *options, memrt_meminfo_t **out) noexcept nogil

    ctypedef memrt_status_t (*memrt_resizable_new_reserved_fn)(size_t size, size_t reserve,
        const memrt_new_options_t *options, memrt_meminfo_t **out) noexcept nogil

    ctypedef memrt_status_t (*memrt_resizable_try_shrink_fn)(memrt_meminfo_t *mi,
        size_t size) noexcept nogil

    ctypedef void *(*memrt_resizable_alloc_fn)(memrt_meminfo_t *mi, size_t size) noexcept nogil

    ctypedef void *(*memrt_resizable_realloc_fn)(memrt_meminfo_t *mi, size_t size) noexcept nogil

    ctypedef memrt_status_t (*memrt_resizable_try_expand_fn)(memrt_meminfo_t *mi,
        size_t size) noexcept nogil

    ctypedef void (*memrt_resizable_free_fn)(memrt_meminfo_t *mi, void *data) noexcept nogil

    ctypedef struct memrt_weak_t:
        uintptr_t meminfo
        uint64_t id

    ctypedef memrt_status_t (*memrt_weak_new_fn)(memrt_meminfo_t *mi,
        memrt_weak_t *out) noexcept nogil

    ctypedef memrt_meminfo_t *(*memrt_weak_acquire_fn)(const memrt_weak_t *weak) noexcept nogil

    ctypedef enum memrt_hook_type_t:
        MEMRT_HOOK_ALLOCATE
        MEMRT_HOOK_RESIZE
        MEMRT_HOOK_FREE
        MEMRT_HOOK_FAILURE

    ctypedef struct memrt_hook_event_t:
        size_t struct_size
        uint64_t type
        memrt_policy_t *policy
        void *data
        uint64_t size
        void *old_data
        uint64_t old_size
        double weight
        memrt_scope_t *scope
        uint64_t site

    ctypedef void (*memrt_hook_call_fn)(const memrt_hook_event_t *event,
        void *context) noexcept nogil

    ctypedef int (*memrt_hook_wants_fn)(const memrt_hook_event_t *event,
        void *context) noexcept nogil

    ctypedef struct memrt_hook_t:
        size_t struct_size
        memrt_hook_call_fn call
        void *context
        memrt_policy_t *policy
        uint64_t sample
        memrt_hook_wants_fn wants

    ctypedef memrt_status_t (*memrt_hook_add_fn)(const memrt_hook_t *hook,
        uint64_t *id) noexcept nogil

    ctypedef memrt_status_t (*memrt_hook_remove_fn)(uint64_t id) noexcept nogil

    ctypedef enum memrt_latency_path_t:
        MEMRT_LATENCY_MAP
        MEMRT_LATENCY_UNMAP
        MEMRT_LATENCY_REMAP
        MEMRT_LATENCY_DISCARD
        MEMRT_LATENCY_ADVISE
        MEMRT_LATENCY_GROW
        MEMRT_LATENCY_REFILL
        MEMRT_LATENCY_OVERFLOW
        MEMRT_LATENCY_DRAIN
        MEMRT_LATENCY_RECALL
        MEMRT_LATENCY_RECLAIM

    ctypedef struct memrt_latency_t:
        size_t struct_size
        uint64_t count
        uint64_t nanoseconds
        uint64_t bins[41]

    ctypedef memrt_status_t (*memrt_latency_fn)(memrt_latency_path_t path,
        memrt_latency_t *out) noexcept nogil

    ctypedef struct memrt_memory_stats_t:
        size_t struct_size
        uint64_t requested
        uint64_t headers
        uint64_t allocated
        uint64_t active
        uint64_t cached
        uint64_t tables
        uint64_t mapped
        uint64_t retained
        uint64_t resident
        uint64_t records
        uint64_t metadata
        uint64_t outside
        uint64_t huge_asked
        uint64_t huge_got

    ctypedef memrt_status_t (*memrt_memory_stats_fn)(memrt_memory_stats_t *out) noexcept nogil

    ctypedef struct memrt_observer_t:
        size_t struct_size
        void (*resize)(void *old_data, void *new_data, size_t new_size) noexcept nogil
        void (*free)(void *data) noexcept nogil
        void (*observe)(void *data) noexcept nogil

    ctypedef void (*memrt_set_observer_fn)(const memrt_observer_t *observer) noexcept nogil

    ctypedef void (*memrt_observe_fn)(memrt_meminfo_t *mi) noexcept nogil

    ctypedef struct memrt_reference_counts_t:
        size_t struct_size
        uint64_t counting
        uint64_t acquired
        uint64_t released

    ctypedef memrt_status_t (*memrt_reference_counts_fn)(const memrt_policy_t *policy,
        memrt_reference_counts_t *out) noexcept nogil

    ctypedef uint64_t memrt_frame_t

    ctypedef size_t (*memrt_frames_fn)(memrt_frame_t *frames, size_t max) noexcept nogil

    ctypedef void (*memrt_write_frames_fn)(int file) noexcept nogil

    ctypedef struct memrt_frame_text_t:
        size_t struct_size
        const char *function
        const char *file
        uint64_t line
        uint64_t offset
        int native

    ctypedef struct memrt_site_t:
        size_t struct_size
        uint64_t allocations
        uint64_t bytes
        uint64_t frames

    ctypedef void (*memrt_set_frames_fn)(memrt_frames_fn frames) noexcept nogil

    ctypedef void (*memrt_set_write_frames_fn)(memrt_write_frames_fn write) noexcept nogil

    ctypedef memrt_frame_t (*memrt_frame_new_fn)(const char *function, const char *file,
        uint64_t line) noexcept nogil

    ctypedef memrt_status_t (*memrt_frame_text_fn)(memrt_frame_t frame,
        memrt_frame_text_t *out) noexcept nogil

    ctypedef memrt_status_t (*memrt_site_read_fn)(uint32_t site, memrt_site_t *out) noexcept nogil

    ctypedef size_t (*memrt_site_frames_fn)(uint32_t site, memrt_frame_t *out,
        size_t max) noexcept nogil

    ctypedef memrt_status_t (*memrt_suppression_add_fn)(const char *pattern,
        const char *description) noexcept nogil

    ctypedef const char *(*memrt_suppression_at_fn)(uint32_t site) noexcept nogil

    ctypedef enum memrt_level_kind_t:
        MEMRT_LEVEL_PROCESS
        MEMRT_LEVEL_POLICY
        MEMRT_LEVEL_SCOPE

    ctypedef struct memrt_level_stats_t:
        size_t struct_size
        uint64_t kind
        uint64_t id
        uint64_t parent
        char name[64]
        memrt_stats_t stats

    ctypedef struct memrt_snapshot_t:
        size_t struct_size
        memrt_level_stats_t *levels
        size_t level_count
        memrt_thread_stats_t *threads
        size_t thread_count
        uint64_t readings
        uint64_t nanoseconds
        uint64_t generation

    ctypedef memrt_status_t (*memrt_snapshot_fn)(memrt_snapshot_t *snapshot) noexcept nogil

    ctypedef struct memrt_trace_options_t:
        size_t struct_size
        const char *path
        int replace
        uint32_t frames
        uint32_t native
        uint64_t last

    ctypedef struct memrt_trace_stats_t:
        size_t struct_size
        int on
        int error
        uint64_t events
        uint64_t lost
        uint64_t overwritten
        uint64_t bytes

    ctypedef memrt_status_t (*memrt_trace_start_fn)(const memrt_trace_options_t *options,
        int *error) noexcept nogil

    ctypedef memrt_status_t (*memrt_trace_stop_fn)(memrt_trace_stats_t *out) noexcept nogil

    ctypedef memrt_status_t (*memrt_trace_stats_fn)(memrt_trace_stats_t *out) noexcept nogil

    ctypedef memrt_status_t (*memrt_trace_mark_fn)(const char *name) noexcept nogil

    ctypedef struct memrt_tracking_t:
        size_t struct_size
        int on
        uint32_t frames
        uint32_t native
        uint64_t sample
        uint64_t allocations

    ctypedef struct memrt_live_t:
        uint64_t id
        uintptr_t meminfo
        uintptr_t data
        size_t size
        size_t refcount
        uint64_t age_ns
        uint64_t thread
        uint32_t policy
        uint32_t kind
        char name[64]

    ctypedef struct memrt_buffer_t:
        memrt_live_t live
        uint32_t scope
        uint32_t site
        double weight
        int inherited

    ctypedef int (*memrt_tracking_fn)(int on) noexcept nogil

    ctypedef int (*memrt_tracking_enabled_fn)() noexcept nogil

    ctypedef memrt_status_t (*memrt_tracking_set_fn)(const memrt_tracking_t *tracking) noexcept nogil

    ctypedef memrt_status_t (*memrt_tracking_get_fn)(memrt_tracking_t *out) noexcept nogil

    ctypedef memrt_status_t (*memrt_live_fn)(memrt_live_t **out, size_t *count) noexcept nogil

    ctypedef void (*memrt_live_free_fn)(memrt_live_t *list) noexcept nogil

    ctypedef memrt_status_t (*memrt_buffers_fn)(size_t row_size, void **out,
        size_t *count) noexcept nogil

    ctypedef memrt_status_t (*memrt_buffer_read_fn)(const memrt_meminfo_t *mi, size_t row_size,
        void *out) noexcept nogil

    ctypedef struct memrt_failure_plan_t:
        size_t struct_size
        uint64_t nth
        uint64_t every
        int this_thread_only
        size_t min_size
        size_t max_size
        const memrt_policy_t *policy
        const memrt_scope_t *scope
        uint32_t kinds

    ctypedef memrt_status_t (*memrt_fail_allocations_fn)(const memrt_failure_plan_t *plan) noexcept nogil

    ctypedef uint64_t (*memrt_failure_points_fn)() noexcept nogil

    ctypedef struct memrt_failure_t:
        size_t struct_size
        uint64_t points
        uint64_t failed
        uint64_t size
        uint32_t kind

    ctypedef memrt_status_t (*memrt_failure_read_fn)(memrt_failure_t *out) noexcept nogil

    ctypedef struct memrt_limit_t:
        size_t struct_size
        uint64_t limit
        uint64_t live
        uint64_t held
        uint64_t soft
        uint64_t rises

    ctypedef memrt_status_t (*memrt_limit_set_fn)(memrt_policy_t *policy, memrt_scope_t *scope,
        uint64_t bytes) noexcept nogil

    ctypedef memrt_status_t (*memrt_limit_set_soft_fn)(memrt_policy_t *policy,
        memrt_scope_t *scope, uint64_t bytes) noexcept nogil

    ctypedef memrt_status_t (*memrt_limit_read_fn)(const memrt_policy_t *policy,
        const memrt_scope_t *scope, memrt_limit_t *out) noexcept nogil

    ctypedef struct memrt_option_t:
        const char *name
        char value[32]
        const char *help

    ctypedef int (*memrt_option_fn)(size_t index, memrt_option_t *out) noexcept nogil

    ctypedef const char *(*memrt_option_warning_fn)(size_t index) noexcept nogil

    ctypedef memrt_status_t (*memrt_option_set_fn)(const char *name, const char *value, char *why,
        size_t length) noexcept nogil

    ctypedef memrt_status_t (*memrt_option_check_fn)(const char *name, const char *value,
        char *why, size_t length) noexcept nogil

    ctypedef int (*memrt_policy_option_fn)(const memrt_policy_t *policy, size_t index,
        memrt_option_t *out) noexcept nogil

    ctypedef memrt_status_t (*memrt_policy_option_set_fn)(memrt_policy_t *policy, const char *name,
        const char *value, char *why, size_t length) noexcept nogil

    ctypedef enum memrt_pressure_level_t:
        MEMRT_PRESSURE_NONE
        MEMRT_PRESSURE_LOW
        MEMRT_PRESSURE_MEDIUM
        MEMRT_PRESSURE_CRITICAL

    ctypedef enum memrt_pressure_source_t:
        MEMRT_PRESSURE_HEADROOM
        MEMRT_PRESSURE_STALL
        MEMRT_PRESSURE_EVENTS
        MEMRT_PRESSURE_NOTICE

    ctypedef struct memrt_pressure_t:
        size_t struct_size
        uint64_t level
        uint64_t source
        uint64_t limit
        uint64_t used
        uint64_t headroom
        const char *of
        uint64_t above_soft

    ctypedef memrt_status_t (*memrt_pressure_read_fn)(memrt_pressure_t *out) noexcept nogil

    ctypedef void (*memrt_pressure_callback)(void *context, uint64_t level) noexcept nogil

    ctypedef memrt_status_t (*memrt_pressure_add_fn)(memrt_pressure_callback callback,
        void *context, memrt_pressure_level_t level, uint64_t *id) noexcept nogil

    ctypedef memrt_status_t (*memrt_pressure_remove_fn)(uint64_t id) noexcept nogil

    ctypedef size_t (*memrt_release_unused_fn)() noexcept nogil

    ctypedef size_t (*memrt_explain_shortage_fn)(const memrt_policy_t *policy, size_t size,
        char *text, size_t length) noexcept nogil

    ctypedef void (*memrt_shutdown_fn)() noexcept nogil

    ctypedef enum memrt_mapping_use_t:
        MEMRT_MAPPING_BLOCK
        MEMRT_MAPPING_SPANS
        MEMRT_MAPPING_CACHED
        MEMRT_MAPPING_RECORDS

    ctypedef struct memrt_mapping_t:
        size_t struct_size
        uint64_t address
        uint64_t bytes
        uint64_t use

    ctypedef memrt_status_t (*memrt_mappings_fn)(memrt_mapping_t *out, size_t *count) noexcept nogil

    ctypedef size_t (*memrt_reclaim_fn)(void *context, size_t wanted) noexcept nogil

    ctypedef memrt_status_t (*memrt_reclaim_add_fn)(memrt_reclaim_fn function, void *context,
        int priority) noexcept nogil

    ctypedef memrt_status_t (*memrt_reclaim_remove_fn)(memrt_reclaim_fn function,
        void *context) noexcept nogil

    ctypedef void memrt_function_t() noexcept nogil

    ctypedef int (*memrt_undefined_symbol_fn)(const char *name) noexcept nogil

    ctypedef intptr_t (*memrt_unresolved_abort_fn)() noexcept nogil

    ctypedef memrt_status_t (*memrt_symbol_slot_fn)(const char *name,
        memrt_function_t *const **slot) noexcept nogil

    ctypedef memrt_status_t (*memrt_symbol_define_fn)(const char *name,
        memrt_function_t *function) noexcept nogil

    ctypedef size_t (*memrt_symbols_unresolved_fn)(const char **names, size_t room) noexcept nogil

    ctypedef memrt_status_t (*memrt_symbol_error_fn)(const char **name) noexcept nogil

    ctypedef void (*memrt_set_symbol_error_fn)(memrt_undefined_symbol_fn tell) noexcept nogil

    ctypedef struct memrt_api_t:
        memrt_allocate_fn allocate
        memrt_allocate_external_fn allocate_external
        memrt_manage_memory_fn manage_memory
        memrt_acquire_fn acquire
        memrt_release_fn release
        memrt_get_data_fn get_data
        size_t struct_size
        uint32_t abi_major
        uint32_t abi_minor
        uint64_t features
        const char *version
        memrt_meminfo_new_fn meminfo_new
        memrt_meminfo_adopt_fn meminfo_adopt
        memrt_try_acquire_fn try_acquire
        memrt_call_dtor_fn call_dtor
        memrt_refcount_fn refcount
        memrt_size_fn size
        memrt_dtor_info_fn dtor_info
        memrt_readonly_fn readonly
        memrt_external_allocator_fn external_allocator
        memrt_set_name_fn set_name
        memrt_get_name_fn get_name
        memrt_dump_fn dump
        memrt_policy_of_fn policy_of
        memrt_resizable_new_fn resizable_new
        memrt_resizable_alloc_fn resizable_alloc
        memrt_resizable_realloc_fn resizable_realloc
        memrt_resizable_free_fn resizable_free
        memrt_block_alloc_fn block_alloc
        memrt_block_calloc_fn block_calloc
        memrt_block_realloc_fn block_realloc
        memrt_block_free_fn block_free
        memrt_block_meminfo_fn block_meminfo
        memrt_find_fn find
        memrt_policy_new_fn policy_new
        memrt_policy_acquire_fn policy_acquire
        memrt_policy_release_fn policy_release
        memrt_policy_default_fn policy_default
        memrt_policy_name_fn policy_name
        memrt_policy_alignment_fn policy_alignment
        memrt_policy_index_fn policy_index
        memrt_policy_at_fn policy_at
        memrt_policy_limit_fn policy_limit
        memrt_allocator_default_fn allocator_default
        memrt_allocator_system_fn allocator_system
        memrt_allocator_mapped_fn allocator_mapped
        memrt_allocator_guard_fn allocator_guard
        memrt_stats_read_fn stats_read
        memrt_stats_reset_peak_fn stats_reset_peak
        memrt_tracking_fn tracking
        memrt_tracking_enabled_fn tracking_enabled
        memrt_live_fn live
        memrt_live_free_fn live_free
        memrt_set_observer_fn set_observer
        memrt_observe_fn observe
        memrt_release_unused_fn release_unused
        memrt_fail_allocations_fn fail_allocations
        memrt_failure_points_fn failure_points
        memrt_option_fn option
        memrt_option_warning_fn option_warning
        memrt_shutdown_fn shutdown
        memrt_status_text_fn status_text
        memrt_option_set_fn option_set
        memrt_option_check_fn option_check
        memrt_policy_option_fn policy_option
        memrt_scope_open_fn scope_open
        memrt_scope_acquire_fn scope_acquire
        memrt_scope_release_fn scope_release
        memrt_scope_enter_fn scope_enter
        memrt_scope_current_fn scope_current
        memrt_scope_policy_fn scope_policy
        memrt_scope_of_fn scope_of
        memrt_scope_next_fn scope_next
        memrt_scope_parent_fn scope_parent
        memrt_scope_name_fn scope_name
        memrt_scope_id_fn scope_id
        memrt_scope_stats_fn scope_stats
        memrt_scope_sizes_fn scope_sizes
        memrt_scope_reset_peak_fn scope_reset_peak
        memrt_acquire_as_fn acquire_as
        memrt_release_as_fn release_as
        memrt_holders_fn holders
        memrt_tracking_set_fn tracking_set
        memrt_tracking_get_fn tracking_get
        memrt_buffers_fn buffers
        memrt_set_frames_fn set_frames
        memrt_frame_new_fn frame_new
        memrt_frame_text_fn frame_text
        memrt_site_read_fn site_read
        memrt_site_frames_fn site_frames
        memrt_suppression_add_fn suppression_add
        memrt_suppression_at_fn suppression_at
        memrt_explain_shortage_fn explain_shortage
        memrt_buffer_read_fn buffer_read
        memrt_unresolved_abort_fn unresolved_abort
        memrt_symbol_slot_fn symbol_slot
        memrt_symbol_define_fn symbol_define
        memrt_symbols_unresolved_fn symbols_unresolved
        memrt_symbol_error_fn symbol_error
        memrt_set_symbol_error_fn set_symbol_error
        memrt_cuda_why_not_fn cuda_why_not
        memrt_cuda_error_fn cuda_error
        memrt_cuda_new_fn cuda_new
        memrt_cuda_adopt_fn cuda_adopt
        memrt_cuda_info_fn cuda_info
        memrt_cuda_used_fn cuda_used
        memrt_cuda_wait_fn cuda_wait
        memrt_cuda_read_fn cuda_read
        memrt_cuda_write_fn cuda_write
        memrt_cuda_stream_new_fn cuda_stream_new
        memrt_cuda_stream_free_fn cuda_stream_free
        memrt_cuda_stream_synchronize_fn cuda_stream_synchronize
        memrt_cuda_stats_fn cuda_stats
        memrt_cuda_set_limit_fn cuda_set_limit
        memrt_cuda_policy_fn cuda_policy
        memrt_allocator_pinned_fn allocator_pinned
        memrt_dlpack_export_fn dlpack_export
        memrt_dlpack_export_unversioned_fn dlpack_export_unversioned
        memrt_dlpack_adopt_fn dlpack_adopt
        memrt_dlpack_adopt_unversioned_fn dlpack_adopt_unversioned
        memrt_dlpack_new_fn dlpack_new
        memrt_arrow_export_fn arrow_export
        memrt_arrow_adopt_fn arrow_adopt
        memrt_trace_start_fn trace_start
        memrt_trace_stop_fn trace_stop
        memrt_trace_stats_fn trace_stats
        memrt_trace_mark_fn trace_mark
        memrt_threads_fn threads
        memrt_stats_sizes_fn stats_sizes
        memrt_scope_stats_sizes_fn scope_stats_sizes
        memrt_allocate_from_fn allocate_from
        memrt_limit_set_fn limit_set
        memrt_limit_read_fn limit_read
        memrt_mappings_fn mappings
        memrt_hook_add_fn hook_add
        memrt_hook_remove_fn hook_remove
        memrt_reclaim_add_fn reclaim_add
        memrt_reclaim_remove_fn reclaim_remove
        memrt_pressure_read_fn pressure_read
        memrt_pressure_add_fn pressure_add
        memrt_pressure_remove_fn pressure_remove
        memrt_memory_stats_fn memory_stats
        memrt_reference_counts_fn reference_counts
        memrt_latency_fn latency
        memrt_limit_set_soft_fn limit_set_soft
        memrt_snapshot_fn snapshot
        memrt_allocator_adaptor_fn allocator_adaptor
        memrt_policy_default_set_allocator_fn policy_default_set_allocator
        memrt_block_try_expand_fn block_try_expand
        memrt_block_usable_size_fn block_usable_size
        memrt_block_good_size_fn block_good_size
        memrt_resizable_try_expand_fn resizable_try_expand
        memrt_weak_new_fn weak_new
        memrt_weak_acquire_fn weak_acquire
        memrt_locate_fn locate
        memrt_resizable_new_reserved_fn resizable_new_reserved
        memrt_resizable_try_shrink_fn resizable_try_shrink
        memrt_set_write_frames_fn set_write_frames
        memrt_policy_option_set_fn policy_option_set
        memrt_allocator_placed_fn allocator_placed
        memrt_placement_read_fn placement_read
        memrt_policy_placement_fn policy_placement
        memrt_try_unique_fn try_unique
        memrt_freeze_fn freeze
        memrt_thaw_fn thaw
        memrt_allocator_file_fn allocator_file
        memrt_pages_cold_fn pages_cold
        memrt_failure_read_fn failure_read
        memrt_policy_reset_fn policy_reset

    ctypedef struct memrt_trace_header_t:
        char magic[8]
        uint32_t order
        uint32_t version
        uint32_t header_size
        uint32_t event_size
        uint64_t process
        uint64_t began
        uint64_t last
        char library[16]

    ctypedef enum memrt_trace_record_type_t:
        MEMRT_TRACE_TEXT
        MEMRT_TRACE_SITE
        MEMRT_TRACE_POLICY
        MEMRT_TRACE_EVENTS
        MEMRT_TRACE_END

    ctypedef struct memrt_trace_record_t:
        uint32_t type
        uint32_t size

    ctypedef struct memrt_trace_text_t:
        memrt_trace_record_t record
        uint32_t number
        uint32_t length

    ctypedef struct memrt_trace_frame_t:
        uint32_t function
        uint32_t file
        uint64_t at
        uint64_t native

    ctypedef struct memrt_trace_site_t:
        memrt_trace_record_t record
        uint32_t number
        uint32_t frames

    ctypedef struct memrt_trace_policy_t:
        memrt_trace_record_t record
        uint32_t number
        uint32_t name
        uint32_t scope
        uint32_t index
        uint64_t alignment

    ctypedef enum memrt_trace_event_type_t:
        MEMRT_TRACE_ALLOC
        MEMRT_TRACE_ADOPTION
        MEMRT_TRACE_RESIZE
        MEMRT_TRACE_FREE
        MEMRT_TRACE_FAILURE
        MEMRT_TRACE_MARK

    ctypedef struct memrt_trace_event_t:
        uint64_t time
        uint64_t size
        uint32_t block
        uint32_t site
        uint32_t policy
        uint8_t type
        uint8_t kind
        uint8_t align_log2
        uint8_t reserved

    ctypedef struct memrt_trace_events_t:
        memrt_trace_record_t record
        uint32_t thread
        uint32_t count

    ctypedef struct memrt_trace_end_t:
        memrt_trace_record_t record
        uint64_t events
        uint64_t lost
        uint64_t overwritten
        uint64_t time

    const uint64_t MEMRT_ABI_MAJOR
    const uint64_t MEMRT_ABI_MINOR
    const uint64_t MEMRT_ALIGN_MAX
    const uint64_t MEMRT_ALIGN_MIN
    const uint64_t MEMRT_ALIGN_OFFSET_MAX
    const uint64_t MEMRT_ALLOCATOR_VERSION
    const uint64_t MEMRT_CUDA_DEVICE_CURRENT
    const uint64_t MEMRT_CUDA_STREAM_LEGACY
    const uint64_t MEMRT_CUDA_STREAM_NONE
    const uint64_t MEMRT_CUDA_STREAM_PER_THREAD
    const uint64_t MEMRT_FAULT_BLOCK
    const uint64_t MEMRT_FAULT_DEVICE
    const uint64_t MEMRT_FAULT_MEMINFO
    const uint64_t MEMRT_FAULT_RECORD
    const uint64_t MEMRT_FAULT_RESIZE
    const uint64_t MEMRT_FEATURE_CHECKING
    const uint64_t MEMRT_FEATURE_COUNTERS
    const uint64_t MEMRT_FEATURE_PROBES
    const uint64_t MEMRT_FLAG_DEVICE
    const uint64_t MEMRT_FLAG_OBSERVED
    const uint64_t MEMRT_FRAMES_MAX
    const uint64_t MEMRT_HEADER_SIZE
    const uint64_t MEMRT_HOOKS_MAX
    const uint64_t MEMRT_LATENCY_BINS
    const uint64_t MEMRT_LATENCY_PATHS
    const uint64_t MEMRT_NAME_MAX
    const uint64_t MEMRT_NODES
    const uint64_t MEMRT_NO_LIMIT
    const uint64_t MEMRT_PLACEMENT_UNKNOWN
    const uint64_t MEMRT_POISON_FREED
    const uint64_t MEMRT_POISON_FRESH
    const uint64_t MEMRT_POISON_REDZONE
    const uint64_t MEMRT_PRESSURE_CALLBACKS
    const uint64_t MEMRT_PROBE
    const uint64_t MEMRT_RECLAIM_MAX
    const uint64_t MEMRT_RECLAIM_NOTHING
    const uint64_t MEMRT_SCOPES_MAX
    const uint64_t MEMRT_SIZE_BINS
    const uint64_t MEMRT_SYMBOLS_NAMED
    const uint64_t MEMRT_SYMBOL_MAX
    const uint64_t MEMRT_TINY_MAX
    const uint64_t MEMRT_TRACE_LAST_MAX
    const uint64_t MEMRT_TRACE_ORDER
    const uint64_t MEMRT_TRACE_VERSION
