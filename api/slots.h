#ifndef MEMRT_API_SLOTS_H
#define MEMRT_API_SLOTS_H

#include <memrt/external.h>

#include "api/plain_slots.h"
#include "runtime/alloc/adaptors/adaptor.h"
#include "runtime/alloc/allocator.h"
#include "runtime/alloc/cold_pages.h"
#include "runtime/alloc/file_backed.h"
#include "runtime/alloc/guard/guard.h"
#include "runtime/alloc/guard/guard_report.h"
#include "runtime/alloc/placed/placed.h"
#include "runtime/config/fault_injection.h"
#include "runtime/config/options.h"
#include "runtime/config/policy_options.h"
#include "runtime/cuda/buffer.h"
#include "runtime/cuda/memory.h"
#include "runtime/cuda/stream.h"
#include "runtime/event/hooks.h"
#include "runtime/event/user_observer.h"
#include "runtime/interop/arrow_adopt.h"
#include "runtime/interop/arrow_export.h"
#include "runtime/interop/dlpack_adopt.h"
#include "runtime/interop/dlpack_export.h"
#include "runtime/meminfo/block_alloc.h"
#include "runtime/meminfo/block_api.h"
#include "runtime/meminfo/lookup.h"
#include "runtime/meminfo/meminfo.h"
#include "runtime/meminfo/access/freeze.h"
#include "runtime/meminfo/named.h"
#include "runtime/meminfo/references.h"
#include "runtime/meminfo/resizable.h"
#include "runtime/meminfo/weak.h"
#include "runtime/observe/sites.h"
#include "runtime/observe/tracking.h"
#include "runtime/os/latency.h"
#include "runtime/policy/memory_limit.h"
#include "runtime/policy/policy_allocators.h"
#include "runtime/policy/reclaim.h"
#include "runtime/policy/reference_counts.h"
#include "runtime/policy/scope.h"
#include "runtime/policy/soft_limit.h"
#include "runtime/pressure/pressure.h"
#include "runtime/report/leak_report.h"
#include "runtime/report/mappings.h"
#include "runtime/report/memory_stats.h"
#include "runtime/report/placement.h"
#include "runtime/report/policy_reset.h"
#include "runtime/report/oom_report.h"
#include "runtime/report/snapshot.h"
#include "runtime/runtime.h"
#include "runtime/stats/thread_stats.h"
#include "runtime/symbols/symbols.h"
#include "runtime/trace/event_trace.h"

/// List of the functions of the table, in the order of the slots. A row has the slot and the
/// function of the plain table. The checking table has the same function for a row of PLAIN, and
/// memrt__checked_<slot> for a row of CHECKED.

#define MEMRT__SLOTS(PLAIN, CHECKED)                                                               \
    PLAIN(allocate, memrt__meminfo_allocate)                                                       \
    PLAIN(allocate_external, memrt__meminfo_allocate_external)                                     \
    PLAIN(manage_memory, memrt__meminfo_manage_memory)                                             \
    CHECKED(acquire, memrt__meminfo_acquire)                                                       \
    CHECKED(release, memrt__meminfo_release)                                                       \
    CHECKED(get_data, memrt__plain_get_data)                                                       \
    CHECKED(meminfo_new, memrt__meminfo_new)                                                       \
    CHECKED(meminfo_adopt, memrt__meminfo_adopt)                                                   \
    CHECKED(try_acquire, memrt__plain_try_acquire)                                                 \
    CHECKED(call_dtor, memrt__meminfo_destroy)                                                     \
    CHECKED(refcount, memrt__meminfo_refcount)                                                     \
    CHECKED(size, memrt__plain_size)                                                               \
    CHECKED(dtor_info, memrt__plain_dtor_info)                                                     \
    CHECKED(readonly, memrt__plain_readonly)                                                       \
    CHECKED(external_allocator, memrt__plain_external_allocator)                                   \
    CHECKED(set_name, memrt__meminfo_set_name)                                                     \
    CHECKED(get_name, memrt__meminfo_get_name)                                                     \
    CHECKED(dump, memrt__meminfo_dump)                                                             \
    CHECKED(policy_of, memrt__plain_policy_of)                                                     \
    CHECKED(resizable_new, memrt__resizable_new)                                                   \
    CHECKED(resizable_alloc, memrt__resizable_alloc)                                               \
    CHECKED(resizable_realloc, memrt__resizable_realloc)                                           \
    CHECKED(resizable_free, memrt__resizable_free)                                                 \
    CHECKED(block_alloc, memrt__block_alloc)                                                       \
    CHECKED(block_calloc, memrt__block_calloc)                                                     \
    CHECKED(block_realloc, memrt__block_api_realloc)                                               \
    CHECKED(block_free, memrt__block_api_free)                                                     \
    CHECKED(block_meminfo, memrt__block_api_meminfo)                                               \
    PLAIN(find, memrt__lookup_find)                                                                \
    PLAIN(policy_new, memrt__policy_new)                                                           \
    CHECKED(policy_acquire, memrt__policy_acquire)                                                 \
    CHECKED(policy_release, memrt__policy_release)                                                 \
    PLAIN(policy_default, memrt__policy_default)                                                   \
    CHECKED(policy_name, memrt__plain_policy_name)                                                 \
    CHECKED(policy_alignment, memrt__plain_policy_alignment)                                       \
    CHECKED(policy_index, memrt__plain_policy_index)                                               \
    PLAIN(policy_at, memrt__policy_at)                                                             \
    PLAIN(policy_limit, memrt__policy_limit)                                                       \
    PLAIN(allocator_default, memrt__default_allocator)                                             \
    PLAIN(allocator_system, memrt__plain_allocator_system)                                         \
    PLAIN(allocator_mapped, memrt__plain_allocator_mapped)                                         \
    PLAIN(allocator_guard, memrt__guard_new)                                                       \
    CHECKED(stats_read, memrt__plain_stats_read)                                                   \
    CHECKED(stats_reset_peak, memrt__plain_stats_reset_peak)                                       \
    PLAIN(tracking, memrt__plain_tracking)                                                         \
    PLAIN(tracking_enabled, memrt__plain_tracking_enabled)                                         \
    PLAIN(live, memrt__lookup_live)                                                                \
    PLAIN(live_free, memrt__lookup_live_free)                                                      \
    PLAIN(set_observer, memrt__user_observer_set)                                                  \
    CHECKED(observe, memrt__meminfo_observe)                                                       \
    PLAIN(release_unused, memrt__runtime_release_unused)                                           \
    CHECKED(fail_allocations, memrt__fault_set)                                                    \
    PLAIN(failure_points, memrt__fault_points)                                                     \
    PLAIN(option, memrt__plain_option)                                                             \
    PLAIN(option_warning, memrt__options_warning)                                                  \
    PLAIN(shutdown, memrt__dtor_shutdown)                                                          \
    PLAIN(status_text, memrt__plain_status_text)                                                   \
    PLAIN(option_set, memrt__runtime_set_option)                                                   \
    PLAIN(option_check, memrt__options_check)                                                      \
    CHECKED(policy_option, memrt__plain_policy_option)                                             \
    CHECKED(scope_open, memrt__scope_open)                                                         \
    CHECKED(scope_acquire, memrt__scope_acquire)                                                   \
    CHECKED(scope_release, memrt__scope_release)                                                   \
    CHECKED(scope_enter, memrt__scope_enter)                                                       \
    PLAIN(scope_current, memrt__scope_current)                                                     \
    CHECKED(scope_policy, memrt__scope_policy)                                                     \
    CHECKED(scope_of, memrt__plain_scope_of)                                                       \
    CHECKED(scope_next, memrt__scope_next)                                                         \
    CHECKED(scope_parent, memrt__plain_scope_parent)                                               \
    CHECKED(scope_name, memrt__plain_scope_name)                                                   \
    CHECKED(scope_id, memrt__plain_scope_id)                                                       \
    CHECKED(scope_stats, memrt__plain_scope_stats)                                                 \
    CHECKED(scope_sizes, memrt__plain_scope_sizes)                                                 \
    CHECKED(scope_reset_peak, memrt__plain_scope_reset_peak)                                       \
    CHECKED(acquire_as, memrt__named_acquire)                                                      \
    CHECKED(release_as, memrt__named_release)                                                      \
    CHECKED(holders, memrt__named_holders)                                                         \
    PLAIN(tracking_set, memrt__tracking_set)                                                       \
    PLAIN(tracking_get, memrt__tracking_get)                                                       \
    PLAIN(buffers, memrt__lookup_buffers)                                                          \
    PLAIN(set_frames, memrt__site_set_frames)                                                      \
    PLAIN(frame_new, memrt__frame_new)                                                             \
    PLAIN(frame_text, memrt__frame_text)                                                           \
    PLAIN(site_read, memrt__site_read)                                                             \
    PLAIN(site_frames, memrt__site_frames)                                                         \
    PLAIN(suppression_add, memrt__suppression_add)                                                 \
    PLAIN(suppression_at, memrt__suppression_at)                                                   \
    CHECKED(explain_shortage, memrt__oom_report_write)                                             \
    CHECKED(buffer_read, memrt__lookup_buffer_read)                                                \
    PLAIN(unresolved_abort, memrt__unresolved_abort)                                               \
    PLAIN(symbol_slot, memrt__symbol_slot)                                                         \
    PLAIN(symbol_define, memrt__symbol_define)                                                     \
    PLAIN(symbols_unresolved, memrt__symbols_unresolved)                                           \
    PLAIN(symbol_error, memrt__symbol_error)                                                       \
    PLAIN(set_symbol_error, memrt__set_symbol_error)                                               \
    PLAIN(cuda_why_not, memrt__plain_cuda_why_not)                                                 \
    PLAIN(cuda_error, memrt__driver_error)                                                         \
    CHECKED(cuda_new, memrt__buffer_new)                                                           \
    CHECKED(cuda_adopt, memrt__buffer_adopt)                                                       \
    CHECKED(cuda_info, memrt__buffer_info)                                                         \
    CHECKED(cuda_used, memrt__buffer_used)                                                         \
    CHECKED(cuda_wait, memrt__buffer_wait)                                                         \
    CHECKED(cuda_read, memrt__buffer_read)                                                         \
    CHECKED(cuda_write, memrt__buffer_write)                                                       \
    PLAIN(cuda_stream_new, memrt__stream_new)                                                      \
    PLAIN(cuda_stream_free, memrt__stream_free)                                                    \
    PLAIN(cuda_stream_synchronize, memrt__stream_synchronize)                                      \
    PLAIN(cuda_stats, memrt__memory_stats)                                                         \
    PLAIN(cuda_set_limit, memrt__memory_set_limit)                                                 \
    PLAIN(cuda_policy, memrt__memory_policy)                                                       \
    PLAIN(allocator_pinned, memrt__plain_allocator_pinned)                                         \
    CHECKED(dlpack_export, memrt__dlpack_export)                                                   \
    CHECKED(dlpack_export_unversioned, memrt__dlpack_export_unversioned)                           \
    CHECKED(dlpack_adopt, memrt__dlpack_adopt)                                                     \
    CHECKED(dlpack_adopt_unversioned, memrt__dlpack_adopt_unversioned)                             \
    CHECKED(dlpack_new, memrt__dlpack_new)                                                         \
    CHECKED(arrow_export, memrt__arrow_export)                                                     \
    CHECKED(arrow_adopt, memrt__arrow_adopt)                                                       \
    PLAIN(trace_start, memrt__trace_start)                                                         \
    PLAIN(trace_stop, memrt__trace_stop)                                                           \
    PLAIN(trace_stats, memrt__trace_stats)                                                         \
    PLAIN(trace_mark, memrt__trace_mark)                                                           \
    PLAIN(threads, memrt__thread_stats_read)                                                       \
    CHECKED(stats_sizes, memrt__plain_stats_sizes)                                                 \
    CHECKED(scope_stats_sizes, memrt__plain_scope_stats_sizes)                                     \
    CHECKED(allocate_from, memrt__meminfo_allocate_from)                                           \
    CHECKED(limit_set, memrt__limit_set)                                                           \
    CHECKED(limit_read, memrt__limit_read)                                                         \
    PLAIN(mappings, memrt__mappings_read)                                                          \
    CHECKED(hook_add, memrt__hook_add)                                                             \
    PLAIN(hook_remove, memrt__hook_remove)                                                         \
    PLAIN(reclaim_add, memrt__reclaim_add)                                                         \
    PLAIN(reclaim_remove, memrt__reclaim_remove)                                                   \
    PLAIN(pressure_read, memrt__pressure_read)                                                     \
    PLAIN(pressure_add, memrt__pressure_add)                                                       \
    PLAIN(pressure_remove, memrt__pressure_remove)                                                 \
    PLAIN(memory_stats, memrt__memory_stats_read)                                                  \
    CHECKED(reference_counts, memrt__reference_counts_read)                                        \
    PLAIN(latency, memrt__latency_read)                                                            \
    CHECKED(limit_set_soft, memrt__soft_limit_set)                                                 \
    PLAIN(snapshot, memrt__snapshot_read)                                                          \
    PLAIN(allocator_adaptor, memrt__adaptor_new)                                                   \
    PLAIN(policy_default_set_allocator, memrt__policy_default_set_allocator)                       \
    CHECKED(block_try_expand, memrt__block_api_try_expand)                                         \
    CHECKED(block_usable_size, memrt__block_api_usable_size)                                       \
    CHECKED(block_good_size, memrt__block_good_size)                                               \
    CHECKED(resizable_try_expand, memrt__resizable_try_expand)                                     \
    CHECKED(weak_new, memrt__weak_new)                                                             \
    PLAIN(weak_acquire, memrt__weak_acquire)                                                       \
    PLAIN(locate, memrt__lookup_locate)                                                            \
    CHECKED(resizable_new_reserved, memrt__resizable_new_reserved)                                 \
    CHECKED(resizable_try_shrink, memrt__resizable_try_shrink)                                     \
    PLAIN(set_write_frames, memrt__set_write_frames)                                               \
    CHECKED(policy_option_set, memrt__policy_set_option)                                           \
    PLAIN(allocator_placed, memrt__placed_new)                                                     \
    PLAIN(placement_read, memrt__placement_read)                                                   \
    CHECKED(policy_placement, memrt__policy_placement)                                             \
    CHECKED(try_unique, memrt__meminfo_try_unique)                                                 \
    CHECKED(freeze, memrt__freeze)                                                                 \
    CHECKED(thaw, memrt__thaw)                                                                     \
    PLAIN(allocator_file, memrt__file_backed_new)                                                  \
    PLAIN(pages_cold, memrt__pages_cold)                                                           \
    PLAIN(failure_read, memrt__fault_read)                                                         \
    CHECKED(policy_reset, memrt__policy_reset)

/// Properties of both tables, except for `features`, and the features that both tables have.
#define MEMRT__PROPERTIES                                                                          \
    .struct_size = sizeof(memrt_api_t), .abi_major = MEMRT_ABI_MAJOR,                              \
    .abi_minor = MEMRT_ABI_MINOR, .version = MEMRT_VERSION
#define MEMRT__FEATURES                                                                            \
    ((MEMRT_COUNTERS ? MEMRT_FEATURE_COUNTERS : 0) | (MEMRT_PROBES ? MEMRT_FEATURE_PROBES : 0))

#endif
