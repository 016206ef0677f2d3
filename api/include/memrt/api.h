#ifndef MEMRT_API_H
#define MEMRT_API_H

/// Function table of memrt for compiled code: all functions of memrt as slots of memrt_api_t.
///
/// The slot `f` has the type memrt_f_fn, whose comment is the contract of the function.
/// Threads: unless a function type states otherwise, every slot may be called from any thread,
///          without a GIL, at any time, also before any setup and after memrt_api_t.shutdown.

#include <stddef.h>
#include <stdint.h>

#include <memrt/allocator/allocator_functions.h>
#include <memrt/cuda.h>
#include <memrt/meminfo.h>
#include <memrt/meminfo/meminfo_functions.h>
#include <memrt/observe/observe_functions.h>
#include <memrt/process/process_functions.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Table of all functions, as memrt_get_api() returns the table. New slots are only appended.
typedef struct memrt_api {
    /* --- As in Numba's NRT_api_functions: memrt/meminfo.h and memrt/meminfo/create.h. --- */
    memrt_allocate_fn allocate;
    memrt_allocate_external_fn allocate_external;
    memrt_manage_memory_fn manage_memory;
    memrt_acquire_fn acquire;
    memrt_release_fn release;
    memrt_get_data_fn get_data;
    /* --- Properties of the table. --- */
    size_t struct_size;  ///< bytes of this table; slots beyond do not exist, see MEMRT_HAS
    uint32_t abi_major;  ///< MEMRT_ABI_MAJOR of the library
    uint32_t abi_minor;  ///< MEMRT_ABI_MINOR of the library
    uint64_t features;   ///< MEMRT_FEATURE_* bits
    const char *version; ///< "0.1.0"
    /* --- MemInfos: memrt/meminfo.h and memrt/meminfo/create.h. --- */
    memrt_meminfo_new_fn meminfo_new MEMRT_MUST_CHECK;
    memrt_meminfo_adopt_fn meminfo_adopt MEMRT_MUST_CHECK;
    memrt_try_acquire_fn try_acquire;
    memrt_call_dtor_fn call_dtor;
    memrt_refcount_fn refcount;
    memrt_size_fn size;
    memrt_dtor_info_fn dtor_info;
    memrt_readonly_fn readonly;
    memrt_external_allocator_fn external_allocator;
    memrt_set_name_fn set_name MEMRT_MUST_CHECK;
    memrt_get_name_fn get_name;
    memrt_dump_fn dump;
    memrt_policy_of_fn policy_of;
    /* --- Resizable MemInfos: memrt/meminfo/resizable.h. --- */
    memrt_resizable_new_fn resizable_new MEMRT_MUST_CHECK;
    memrt_resizable_alloc_fn resizable_alloc;
    memrt_resizable_realloc_fn resizable_realloc;
    memrt_resizable_free_fn resizable_free;
    /* --- Blocks that are identified by their data pointer: memrt/meminfo/block.h. --- */
    memrt_block_alloc_fn block_alloc;
    memrt_block_calloc_fn block_calloc;
    memrt_block_realloc_fn block_realloc;
    memrt_block_free_fn block_free;
    memrt_block_meminfo_fn block_meminfo MEMRT_MUST_CHECK;
    memrt_find_fn find MEMRT_MUST_CHECK;
    /* --- Policies: memrt/policy.h. --- */
    memrt_policy_new_fn policy_new MEMRT_MUST_CHECK;
    memrt_policy_acquire_fn policy_acquire;
    memrt_policy_release_fn policy_release;
    memrt_policy_default_fn policy_default;
    memrt_policy_name_fn policy_name;
    memrt_policy_alignment_fn policy_alignment;
    memrt_policy_index_fn policy_index;
    memrt_policy_at_fn policy_at;
    memrt_policy_limit_fn policy_limit;
    /* --- Allocators, to build policies from: memrt/allocator.h, allocator/adaptor.h. --- */
    memrt_allocator_default_fn allocator_default;
    memrt_allocator_system_fn allocator_system;
    memrt_allocator_mapped_fn allocator_mapped;
    memrt_allocator_guard_fn allocator_guard MEMRT_MUST_CHECK;
    /* --- Statistics, tracking, observer: memrt/observe. Other functions: memrt/process. --- */
    memrt_stats_read_fn stats_read MEMRT_MUST_CHECK;
    memrt_stats_reset_peak_fn stats_reset_peak;
    memrt_tracking_fn tracking;
    memrt_tracking_enabled_fn tracking_enabled;
    memrt_live_fn live MEMRT_MUST_CHECK;
    memrt_live_free_fn live_free;
    memrt_set_observer_fn set_observer;
    memrt_observe_fn observe;
    memrt_release_unused_fn release_unused;
    memrt_fail_allocations_fn fail_allocations MEMRT_MUST_CHECK;
    memrt_failure_points_fn failure_points;
    /* --- The process: memrt/process/option.h, memrt/process/process.h and memrt/status.h. --- */
    memrt_option_fn option;
    memrt_option_warning_fn option_warning;
    memrt_shutdown_fn shutdown;
    memrt_status_text_fn status_text;
    memrt_option_set_fn option_set MEMRT_MUST_CHECK;
    memrt_option_check_fn option_check MEMRT_MUST_CHECK;
    memrt_policy_option_fn policy_option;
    /* --- Scopes: memrt/scope.h. --- */
    memrt_scope_open_fn scope_open MEMRT_MUST_CHECK;
    memrt_scope_acquire_fn scope_acquire;
    memrt_scope_release_fn scope_release;
    memrt_scope_enter_fn scope_enter;
    memrt_scope_current_fn scope_current;
    memrt_scope_policy_fn scope_policy MEMRT_MUST_CHECK;
    memrt_scope_of_fn scope_of;
    memrt_scope_next_fn scope_next;
    memrt_scope_parent_fn scope_parent;
    memrt_scope_name_fn scope_name;
    memrt_scope_id_fn scope_id;
    memrt_scope_stats_fn scope_stats MEMRT_MUST_CHECK;
    memrt_scope_sizes_fn scope_sizes;
    memrt_scope_reset_peak_fn scope_reset_peak;
    /* --- Named references: memrt/meminfo/holder.h. --- */
    memrt_acquire_as_fn acquire_as MEMRT_MUST_CHECK;
    memrt_release_as_fn release_as;
    memrt_holders_fn holders;
    /* --- Tracking, sites: observe/tracking.h, site.h; explain_shortage: process/process.h. --- */
    memrt_tracking_set_fn tracking_set MEMRT_MUST_CHECK;
    memrt_tracking_get_fn tracking_get MEMRT_MUST_CHECK;
    memrt_buffers_fn buffers MEMRT_MUST_CHECK;
    memrt_set_frames_fn set_frames;
    memrt_frame_new_fn frame_new;
    memrt_frame_text_fn frame_text MEMRT_MUST_CHECK;
    memrt_site_read_fn site_read MEMRT_MUST_CHECK;
    memrt_site_frames_fn site_frames;
    memrt_suppression_add_fn suppression_add MEMRT_MUST_CHECK;
    memrt_suppression_at_fn suppression_at;
    memrt_explain_shortage_fn explain_shortage;
    memrt_buffer_read_fn buffer_read MEMRT_MUST_CHECK;
    /* --- Symbol slots: memrt/process/symbol.h. --- */
    memrt_unresolved_abort_fn unresolved_abort;
    memrt_symbol_slot_fn symbol_slot MEMRT_MUST_CHECK;
    memrt_symbol_define_fn symbol_define MEMRT_MUST_CHECK;
    memrt_symbols_unresolved_fn symbols_unresolved;
    memrt_symbol_error_fn symbol_error;
    memrt_set_symbol_error_fn set_symbol_error;
    /* --- CUDA: memrt/cuda.h. --- */
    memrt_cuda_why_not_fn cuda_why_not;
    memrt_cuda_error_fn cuda_error;
    memrt_cuda_new_fn cuda_new MEMRT_MUST_CHECK;
    memrt_cuda_adopt_fn cuda_adopt MEMRT_MUST_CHECK;
    memrt_cuda_info_fn cuda_info MEMRT_MUST_CHECK;
    memrt_cuda_used_fn cuda_used MEMRT_MUST_CHECK;
    memrt_cuda_wait_fn cuda_wait MEMRT_MUST_CHECK;
    memrt_cuda_read_fn cuda_read MEMRT_MUST_CHECK;
    memrt_cuda_write_fn cuda_write MEMRT_MUST_CHECK;
    memrt_cuda_stream_new_fn cuda_stream_new MEMRT_MUST_CHECK;
    memrt_cuda_stream_free_fn cuda_stream_free MEMRT_MUST_CHECK;
    memrt_cuda_stream_synchronize_fn cuda_stream_synchronize MEMRT_MUST_CHECK;
    memrt_cuda_stats_fn cuda_stats MEMRT_MUST_CHECK;
    memrt_cuda_set_limit_fn cuda_set_limit MEMRT_MUST_CHECK;
    memrt_cuda_policy_fn cuda_policy;
    memrt_allocator_pinned_fn allocator_pinned;
    /* --- DLPack, Arrow: memrt/meminfo/exchange.h, memrt/dlpack.h and memrt/arrow.h. --- */
    memrt_dlpack_export_fn dlpack_export MEMRT_MUST_CHECK;
    memrt_dlpack_export_unversioned_fn dlpack_export_unversioned MEMRT_MUST_CHECK;
    memrt_dlpack_adopt_fn dlpack_adopt MEMRT_MUST_CHECK;
    memrt_dlpack_adopt_unversioned_fn dlpack_adopt_unversioned MEMRT_MUST_CHECK;
    memrt_dlpack_new_fn dlpack_new MEMRT_MUST_CHECK;
    memrt_arrow_export_fn arrow_export MEMRT_MUST_CHECK;
    memrt_arrow_adopt_fn arrow_adopt MEMRT_MUST_CHECK;
    /* --- Event traces: memrt/observe/trace.h. --- */
    memrt_trace_start_fn trace_start MEMRT_MUST_CHECK;
    memrt_trace_stop_fn trace_stop MEMRT_MUST_CHECK;
    memrt_trace_stats_fn trace_stats MEMRT_MUST_CHECK;
    memrt_trace_mark_fn trace_mark MEMRT_MUST_CHECK;
    /* --- Statistics of threads, blocks by size: memrt/observe/stats.h and memrt/scope.h. --- */
    memrt_threads_fn threads MEMRT_MUST_CHECK;
    memrt_stats_sizes_fn stats_sizes MEMRT_MUST_CHECK;
    memrt_scope_stats_sizes_fn scope_stats_sizes MEMRT_MUST_CHECK;
    /* --- Limits, memory of the process, callbacks: meminfo/create.h, observe, process. --- */
    memrt_allocate_from_fn allocate_from;
    memrt_limit_set_fn limit_set MEMRT_MUST_CHECK;
    memrt_limit_read_fn limit_read MEMRT_MUST_CHECK;
    memrt_mappings_fn mappings MEMRT_MUST_CHECK;
    memrt_hook_add_fn hook_add MEMRT_MUST_CHECK;
    memrt_hook_remove_fn hook_remove MEMRT_MUST_CHECK;
    memrt_reclaim_add_fn reclaim_add MEMRT_MUST_CHECK;
    memrt_reclaim_remove_fn reclaim_remove MEMRT_MUST_CHECK;
    memrt_pressure_read_fn pressure_read MEMRT_MUST_CHECK;
    memrt_pressure_add_fn pressure_add MEMRT_MUST_CHECK;
    memrt_pressure_remove_fn pressure_remove MEMRT_MUST_CHECK;
    memrt_memory_stats_fn memory_stats MEMRT_MUST_CHECK;
    memrt_reference_counts_fn reference_counts MEMRT_MUST_CHECK;
    memrt_latency_fn latency MEMRT_MUST_CHECK;
    memrt_limit_set_soft_fn limit_set_soft MEMRT_MUST_CHECK;
    memrt_snapshot_fn snapshot MEMRT_MUST_CHECK;
    memrt_allocator_adaptor_fn allocator_adaptor MEMRT_MUST_CHECK;
    memrt_policy_default_set_allocator_fn policy_default_set_allocator MEMRT_MUST_CHECK;
    memrt_block_try_expand_fn block_try_expand MEMRT_MUST_CHECK;
    memrt_block_usable_size_fn block_usable_size;
    memrt_block_good_size_fn block_good_size;
    memrt_resizable_try_expand_fn resizable_try_expand MEMRT_MUST_CHECK;
    memrt_weak_new_fn weak_new MEMRT_MUST_CHECK;
    memrt_weak_acquire_fn weak_acquire;
    memrt_locate_fn locate MEMRT_MUST_CHECK;
    memrt_resizable_new_reserved_fn resizable_new_reserved MEMRT_MUST_CHECK;
    memrt_resizable_try_shrink_fn resizable_try_shrink MEMRT_MUST_CHECK;
    memrt_set_write_frames_fn set_write_frames;
    memrt_policy_option_set_fn policy_option_set MEMRT_MUST_CHECK;
    memrt_allocator_placed_fn allocator_placed MEMRT_MUST_CHECK;
    memrt_placement_read_fn placement_read MEMRT_MUST_CHECK;
    memrt_policy_placement_fn policy_placement MEMRT_MUST_CHECK;
    memrt_try_unique_fn try_unique;
    memrt_freeze_fn freeze MEMRT_MUST_CHECK;
    memrt_thaw_fn thaw MEMRT_MUST_CHECK;
    memrt_allocator_file_fn allocator_file MEMRT_MUST_CHECK;
    memrt_pages_cold_fn pages_cold MEMRT_MUST_CHECK;
    memrt_failure_read_fn failure_read MEMRT_MUST_CHECK;
    memrt_policy_reset_fn policy_reset MEMRT_MUST_CHECK;
} memrt_api_t;

#ifdef __cplusplus
}
#endif

#endif
