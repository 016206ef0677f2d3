/// Pins the offsets and sizes of everything that callers compile in. A change here breaks existing
/// callers.

#include <memrt/arrow.h>
#include <memrt/dlpack.h>
#include <memrt/memrt.h>

#include <stdint.h>
#include <string.h>

#include "expect.h"

#define AT(type, member, offset)                                                                   \
    _Static_assert(offsetof(type, member) == (offset), #type "." #member " moved")
#define SIZE(type, size) _Static_assert(sizeof(type) == (size), #type " changed in size")
#define SLOT(slot, word) AT(memrt_api_t, slot, (word) * 8)

SIZE(memrt_tracking_t, 40);
AT(memrt_tracking_t, on, 8);
AT(memrt_tracking_t, frames, 12);
AT(memrt_tracking_t, native, 16);
AT(memrt_tracking_t, sample, 24);
AT(memrt_tracking_t, allocations, 32);

SIZE(memrt_frame_text_t, 48);
AT(memrt_frame_text_t, function, 8);
AT(memrt_frame_text_t, file, 16);
AT(memrt_frame_text_t, line, 24);
AT(memrt_frame_text_t, offset, 32);
AT(memrt_frame_text_t, native, 40);

SIZE(memrt_site_t, 32);
AT(memrt_site_t, allocations, 8);
AT(memrt_site_t, bytes, 16);
AT(memrt_site_t, frames, 24);

SIZE(memrt_buffer_t, 152);
AT(memrt_buffer_t, scope, 128);
AT(memrt_buffer_t, site, 132);
AT(memrt_buffer_t, weight, 136);
AT(memrt_buffer_t, inherited, 144);

SIZE(memrt_meminfo_t, 64);
AT(memrt_meminfo_t, refct, 0);
AT(memrt_meminfo_t, dtor, 8);
AT(memrt_meminfo_t, dtor_info, 16);
AT(memrt_meminfo_t, data, 24);
AT(memrt_meminfo_t, size, 32);
AT(memrt_meminfo_t, external_allocator, 40);
AT(memrt_meminfo_t, policy, 48);
AT(memrt_meminfo_t, kind, 50);
AT(memrt_meminfo_t, align_log2, 51);
AT(memrt_meminfo_t, flags, 52);
AT(memrt_meminfo_t, lead, 56);
AT(memrt_meminfo_t, bin, 60);

SIZE(memrt_external_allocator_t, 32);
AT(memrt_external_allocator_t, malloc, 0);
AT(memrt_external_allocator_t, realloc, 8);
AT(memrt_external_allocator_t, free, 16);
AT(memrt_external_allocator_t, opaque_data, 24);

SIZE(memrt_allocator_t, 112);
AT(memrt_allocator_t, version, 8);
AT(memrt_allocator_t, name, 16);
AT(memrt_allocator_t, ctx, 24);
AT(memrt_allocator_t, alloc, 32);
AT(memrt_allocator_t, alloc_zeroed, 40);
AT(memrt_allocator_t, realloc, 48);
AT(memrt_allocator_t, free, 56);
AT(memrt_allocator_t, release_unused, 64);
AT(memrt_allocator_t, usage, 72);
AT(memrt_allocator_t, destroy, 80);
AT(memrt_allocator_t, try_expand, 88);
AT(memrt_allocator_t, usable_size, 96);
AT(memrt_allocator_t, good_size, 104);

SIZE(memrt_policy_options_t, 64);
AT(memrt_policy_options_t, name, 8);
AT(memrt_policy_options_t, alignment, 16);
AT(memrt_policy_options_t, allocator, 24);
AT(memrt_policy_options_t, cache_limit, 32);
AT(memrt_policy_options_t, decay, 40);
AT(memrt_policy_options_t, hugepages, 48);
AT(memrt_policy_options_t, guard_sample, 56);

SIZE(memrt_new_options_t, 64);
AT(memrt_new_options_t, policy, 8);
AT(memrt_new_options_t, alignment, 16);
AT(memrt_new_options_t, zeroed, 24);
AT(memrt_new_options_t, readonly, 28);
AT(memrt_new_options_t, dtor, 32);
AT(memrt_new_options_t, dtor_info, 40);
AT(memrt_new_options_t, external, 48);
AT(memrt_new_options_t, name, 56);

SIZE(memrt_stats_t, 144);
AT(memrt_stats_t, alloc, 8);
AT(memrt_stats_t, free, 16);
AT(memrt_stats_t, mi_alloc, 24);
AT(memrt_stats_t, mi_free, 32);
AT(memrt_stats_t, realloc, 40);
AT(memrt_stats_t, failed, 48);
AT(memrt_stats_t, live, 56);
AT(memrt_stats_t, peak, 64);
AT(memrt_stats_t, peak_error, 72);
AT(memrt_stats_t, total, 80);
AT(memrt_stats_t, adopted, 88);
AT(memrt_stats_t, cached, 96);
AT(memrt_stats_t, reserved, 104);
AT(memrt_stats_t, inherited, 112);
AT(memrt_stats_t, inherited_blocks, 120);
AT(memrt_stats_t, inherited_error, 128);
AT(memrt_stats_t, exported, 136);

SIZE(memrt_live_t, 128);
AT(memrt_live_t, meminfo, 8);
AT(memrt_live_t, data, 16);
AT(memrt_live_t, size, 24);
AT(memrt_live_t, refcount, 32);
AT(memrt_live_t, age_ns, 40);
AT(memrt_live_t, thread, 48);
AT(memrt_live_t, policy, 56);
AT(memrt_live_t, kind, 60);
AT(memrt_live_t, name, 64);

SIZE(memrt_failure_plan_t, 32);
AT(memrt_failure_plan_t, nth, 8);
AT(memrt_failure_plan_t, every, 16);
AT(memrt_failure_plan_t, this_thread_only, 24);

SIZE(memrt_weak_t, 16);
AT(memrt_weak_t, id, 8);

SIZE(memrt_location_t, 48);
AT(memrt_location_t, data, 8);
AT(memrt_location_t, size, 16);
AT(memrt_location_t, meminfo, 24);
AT(memrt_location_t, id, 32);
AT(memrt_location_t, scope, 40);
AT(memrt_location_t, policy, 44);

SIZE(memrt_option_t, 48);
AT(memrt_option_t, value, 8);
AT(memrt_option_t, help, 40);
SIZE(memrt_observer_t, 32);
AT(memrt_observer_t, resize, 8);
AT(memrt_observer_t, free, 16);
AT(memrt_observer_t, observe, 24);

/* Slots are only ever appended: a line here never changes. */
SLOT(allocate, 0);
SLOT(allocate_external, 1);
SLOT(manage_memory, 2);
SLOT(acquire, 3);
SLOT(release, 4);
SLOT(get_data, 5);
SLOT(struct_size, 6);
SLOT(abi_major, 7);
AT(memrt_api_t, abi_minor, 7 * 8 + 4);
SLOT(features, 8);
SLOT(version, 9);
SLOT(meminfo_new, 10);
SLOT(meminfo_adopt, 11);
SLOT(try_acquire, 12);
SLOT(call_dtor, 13);
SLOT(refcount, 14);
SLOT(size, 15);
SLOT(dtor_info, 16);
SLOT(readonly, 17);
SLOT(external_allocator, 18);
SLOT(set_name, 19);
SLOT(get_name, 20);
SLOT(dump, 21);
SLOT(policy_of, 22);
SLOT(resizable_new, 23);
SLOT(resizable_alloc, 24);
SLOT(resizable_realloc, 25);
SLOT(resizable_free, 26);
SLOT(block_alloc, 27);
SLOT(block_calloc, 28);
SLOT(block_realloc, 29);
SLOT(block_free, 30);
SLOT(block_meminfo, 31);
SLOT(find, 32);
SLOT(policy_new, 33);
SLOT(policy_acquire, 34);
SLOT(policy_release, 35);
SLOT(policy_default, 36);
SLOT(policy_name, 37);
SLOT(policy_alignment, 38);
SLOT(policy_index, 39);
SLOT(policy_at, 40);
SLOT(policy_limit, 41);
SLOT(allocator_default, 42);
SLOT(allocator_system, 43);
SLOT(allocator_mapped, 44);
SLOT(allocator_guard, 45);
SLOT(stats_read, 46);
SLOT(stats_reset_peak, 47);
SLOT(tracking, 48);
SLOT(tracking_enabled, 49);
SLOT(live, 50);
SLOT(live_free, 51);
SLOT(set_observer, 52);
SLOT(observe, 53);
SLOT(release_unused, 54);
SLOT(fail_allocations, 55);
SLOT(failure_points, 56);
SLOT(option, 57);
SLOT(option_warning, 58);
SLOT(shutdown, 59);
SLOT(status_text, 60);
SLOT(option_set, 61);
SLOT(option_check, 62);
SLOT(policy_option, 63);
SLOT(scope_open, 64);
SLOT(scope_acquire, 65);
SLOT(scope_release, 66);
SLOT(scope_enter, 67);
SLOT(scope_current, 68);
SLOT(scope_policy, 69);
SLOT(scope_of, 70);
SLOT(scope_next, 71);
SLOT(scope_parent, 72);
SLOT(scope_name, 73);
SLOT(scope_id, 74);
SLOT(scope_stats, 75);
SLOT(scope_sizes, 76);
SLOT(scope_reset_peak, 77);

SIZE(memrt_holder_t, 96);
AT(memrt_holder_t, count, 0);
AT(memrt_holder_t, age_ns, 8);
AT(memrt_holder_t, thread, 16);
AT(memrt_holder_t, kind, 24);
AT(memrt_holder_t, name, 28);
SLOT(acquire_as, 78);
SLOT(release_as, 79);
SLOT(holders, 80);
SLOT(tracking_set, 81);
SLOT(tracking_get, 82);
SLOT(buffers, 83);
SLOT(set_frames, 84);
SLOT(frame_new, 85);
SLOT(frame_text, 86);
SLOT(site_read, 87);
SLOT(site_frames, 88);
SLOT(suppression_add, 89);
SLOT(suppression_at, 90);
SLOT(explain_shortage, 91);
SLOT(buffer_read, 92);
SLOT(unresolved_abort, 93);
SLOT(symbol_slot, 94);
SLOT(symbol_define, 95);
SLOT(symbols_unresolved, 96);
SLOT(symbol_error, 97);
SLOT(set_symbol_error, 98);
SLOT(cuda_why_not, 99);
SLOT(cuda_error, 100);
SLOT(cuda_new, 101);
SLOT(cuda_adopt, 102);
SLOT(cuda_info, 103);
SLOT(cuda_used, 104);
SLOT(cuda_wait, 105);
SLOT(cuda_read, 106);
SLOT(cuda_write, 107);
SLOT(cuda_stream_new, 108);
SLOT(cuda_stream_free, 109);
SLOT(cuda_stream_synchronize, 110);
SLOT(cuda_stats, 111);
SLOT(cuda_set_limit, 112);
SLOT(cuda_policy, 113);
SLOT(allocator_pinned, 114);
_Static_assert(MEMRT_HOLDER_REFERENCE == 1 && MEMRT_HOLDER_EXPORT == 2, "kinds have fixed numbers");
SIZE(memrt_cuda_options_t, 64);
AT(memrt_cuda_options_t, policy, 56);
AT(memrt_cuda_options_t, memory, 8);
AT(memrt_cuda_options_t, device, 12);
AT(memrt_cuda_options_t, stream, 16);
AT(memrt_cuda_options_t, readonly, 24);
AT(memrt_cuda_options_t, dtor, 32);
AT(memrt_cuda_options_t, dtor_info, 40);
AT(memrt_cuda_options_t, name, 48);
SIZE(memrt_cuda_info_t, 32);
AT(memrt_cuda_info_t, memory, 8);
AT(memrt_cuda_info_t, device, 12);
AT(memrt_cuda_info_t, stream, 16);
AT(memrt_cuda_info_t, adopted, 24);
SIZE(memrt_cuda_stats_t, 72);
AT(memrt_cuda_stats_t, live, 8);
AT(memrt_cuda_stats_t, peak, 16);
AT(memrt_cuda_stats_t, limit, 24);
AT(memrt_cuda_stats_t, alloc, 32);
AT(memrt_cuda_stats_t, free, 40);
AT(memrt_cuda_stats_t, failed, 48);
AT(memrt_cuda_stats_t, lost, 56);
AT(memrt_cuda_stats_t, cached, 64);
_Static_assert(MEMRT_MEMORY_DEVICE == 1 && MEMRT_MEMORY_PINNED == 3 && MEMRT_FLAG_DEVICE == 1 << 17,
               "memory kinds have fixed numbers");

_Static_assert(MEMRT_EINVAL == 2 && MEMRT_ENOTSUP == 6 && MEMRT_EDEVICE == 7 && MEMRT_EIO == 8,
               "statuses have fixed numbers");
SIZE(memrt_dlpack_view_t, 56);
AT(memrt_dlpack_view_t, dtype, 8);
AT(memrt_dlpack_view_t, device, 12);
AT(memrt_dlpack_view_t, ndim, 20);
AT(memrt_dlpack_view_t, offset, 24);
AT(memrt_dlpack_view_t, flags, 32);
AT(memrt_dlpack_view_t, shape, 40);
AT(memrt_dlpack_view_t, strides, 48);
SLOT(dlpack_export, 115);
SLOT(dlpack_export_unversioned, 116);
SLOT(dlpack_adopt, 117);
SLOT(dlpack_adopt_unversioned, 118);
SLOT(dlpack_new, 119);

/* Source: the structures of the specifications of Arrow's C data interface and C device data
 * interface. */
SIZE(struct ArrowSchema, 72);
AT(struct ArrowSchema, release, 56);
SIZE(struct ArrowArray, 80);
AT(struct ArrowArray, buffers, 40);
AT(struct ArrowArray, release, 64);
SIZE(struct ArrowArrayStream, 40);
AT(struct ArrowArrayStream, release, 24);
SIZE(struct ArrowDeviceArray, 128);
AT(struct ArrowDeviceArray, device_type, 88);
AT(struct ArrowDeviceArray, sync_event, 96);
SIZE(memrt_arrow_view_t, 80);
AT(memrt_arrow_view_t, format, 8);
AT(memrt_arrow_view_t, name, 16);
AT(memrt_arrow_view_t, flags, 24);
AT(memrt_arrow_view_t, offset, 32);
AT(memrt_arrow_view_t, length, 40);
AT(memrt_arrow_view_t, null_count, 48);
AT(memrt_arrow_view_t, validity, 56);
AT(memrt_arrow_view_t, first_bit, 64);
AT(memrt_arrow_view_t, validity_owner, 72);
SLOT(arrow_export, 120);
SLOT(arrow_adopt, 121);
SIZE(memrt_trace_options_t, 40);
AT(memrt_trace_options_t, path, 8);
AT(memrt_trace_options_t, replace, 16);
AT(memrt_trace_options_t, frames, 20);
AT(memrt_trace_options_t, native, 24);
AT(memrt_trace_options_t, last, 32);
SIZE(memrt_trace_stats_t, 48);
AT(memrt_trace_stats_t, on, 8);
AT(memrt_trace_stats_t, error, 12);
AT(memrt_trace_stats_t, events, 16);
AT(memrt_trace_stats_t, lost, 24);
AT(memrt_trace_stats_t, overwritten, 32);
AT(memrt_trace_stats_t, bytes, 40);
SIZE(memrt_trace_header_t, 64);
AT(memrt_trace_header_t, process, 24);
AT(memrt_trace_header_t, library, 48);
SIZE(memrt_trace_event_t, 32);
AT(memrt_trace_event_t, block, 16);
AT(memrt_trace_event_t, type, 28);
SIZE(memrt_trace_text_t, 16);
SIZE(memrt_trace_frame_t, 24);
SIZE(memrt_trace_site_t, 16);
SIZE(memrt_trace_policy_t, 32);
SIZE(memrt_trace_events_t, 16);
SIZE(memrt_trace_end_t, 40);
SLOT(trace_start, 122);
SLOT(trace_stop, 123);
SLOT(trace_stats, 124);
SLOT(trace_mark, 125);
SLOT(threads, 126);
SIZE(memrt_thread_stats_t, 56);
AT(memrt_thread_stats_t, id, 8);
AT(memrt_thread_stats_t, freed, 48);
SLOT(stats_sizes, 127);
SLOT(scope_stats_sizes, 128);
SIZE(memrt_sizes_t, 776);
AT(memrt_sizes_t, allocated, 8);
AT(memrt_sizes_t, live, 392);
SLOT(allocate_from, 129);
SLOT(limit_set, 130);
SLOT(limit_read, 131);
SIZE(memrt_limit_t, 48);
AT(memrt_limit_t, limit, 8);
AT(memrt_limit_t, live, 16);
AT(memrt_limit_t, held, 24);
AT(memrt_limit_t, soft, 32);
AT(memrt_limit_t, rises, 40);
SLOT(mappings, 132);
SLOT(hook_add, 133);
SLOT(hook_remove, 134);
SIZE(memrt_hook_t, 48);
AT(memrt_hook_t, call, 8);
AT(memrt_hook_t, context, 16);
AT(memrt_hook_t, policy, 24);
AT(memrt_hook_t, sample, 32);
AT(memrt_hook_t, wants, 40);
SIZE(memrt_hook_event_t, 80);
AT(memrt_hook_event_t, type, 8);
AT(memrt_hook_event_t, policy, 16);
AT(memrt_hook_event_t, data, 24);
AT(memrt_hook_event_t, size, 32);
AT(memrt_hook_event_t, old_data, 40);
AT(memrt_hook_event_t, old_size, 48);
AT(memrt_hook_event_t, weight, 56);
AT(memrt_hook_event_t, scope, 64);
AT(memrt_hook_event_t, site, 72);
SLOT(reclaim_add, 135);
SLOT(reclaim_remove, 136);
SIZE(memrt_mapping_t, 32);
AT(memrt_mapping_t, use, 24);
SLOT(pressure_read, 137);
SLOT(pressure_add, 138);
SLOT(pressure_remove, 139);
SIZE(memrt_pressure_t, 64);
AT(memrt_pressure_t, level, 8);
AT(memrt_pressure_t, source, 16);
AT(memrt_pressure_t, limit, 24);
AT(memrt_pressure_t, used, 32);
AT(memrt_pressure_t, headroom, 40);
AT(memrt_pressure_t, of, 48);
AT(memrt_pressure_t, above_soft, 56);
SLOT(memory_stats, 140);
SIZE(memrt_memory_stats_t, 104);
AT(memrt_memory_stats_t, requested, 8);
AT(memrt_memory_stats_t, headers, 16);
AT(memrt_memory_stats_t, allocated, 24);
AT(memrt_memory_stats_t, active, 32);
AT(memrt_memory_stats_t, cached, 40);
AT(memrt_memory_stats_t, tables, 48);
AT(memrt_memory_stats_t, mapped, 56);
AT(memrt_memory_stats_t, retained, 64);
AT(memrt_memory_stats_t, resident, 72);
AT(memrt_memory_stats_t, records, 80);
AT(memrt_memory_stats_t, metadata, 88);
AT(memrt_memory_stats_t, outside, 96);
SLOT(reference_counts, 141);
SIZE(memrt_reference_counts_t, 32);
AT(memrt_reference_counts_t, counting, 8);
AT(memrt_reference_counts_t, acquired, 16);
AT(memrt_reference_counts_t, released, 24);
SLOT(latency, 142);
SIZE(memrt_latency_t, 352);
AT(memrt_latency_t, count, 8);
AT(memrt_latency_t, nanoseconds, 16);
AT(memrt_latency_t, bins, 24);
SLOT(limit_set_soft, 143);
SLOT(snapshot, 144);
SLOT(allocator_adaptor, 145);
SLOT(policy_default_set_allocator, 146);
SLOT(block_try_expand, 147);
SLOT(block_usable_size, 148);
SLOT(block_good_size, 149);
SLOT(resizable_try_expand, 150);
SLOT(weak_new, 151);
SLOT(weak_acquire, 152);
SLOT(locate, 153);
SLOT(resizable_new_reserved, 154);
SLOT(resizable_try_shrink, 155);
SLOT(set_write_frames, 156);
SLOT(policy_option_set, 157);
SIZE(memrt_adaptor_counts_t, 48);
AT(memrt_adaptor_counts_t, resizes, 8);
AT(memrt_adaptor_counts_t, frees, 16);
AT(memrt_adaptor_counts_t, refusals, 24);
AT(memrt_adaptor_counts_t, in_use, 32);
AT(memrt_adaptor_counts_t, peak, 40);
SIZE(memrt_adaptor_options_t, 48);
AT(memrt_adaptor_options_t, kind, 8);
AT(memrt_adaptor_options_t, file, 12);
AT(memrt_adaptor_options_t, amount, 16);
AT(memrt_adaptor_options_t, counts, 24);
AT(memrt_adaptor_options_t, failed, 32);
AT(memrt_adaptor_options_t, context, 40);
SIZE(memrt_level_stats_t, 240);
AT(memrt_level_stats_t, kind, 8);
AT(memrt_level_stats_t, id, 16);
AT(memrt_level_stats_t, parent, 24);
AT(memrt_level_stats_t, name, 32);
AT(memrt_level_stats_t, stats, 96);
SIZE(memrt_snapshot_t, 56);
AT(memrt_snapshot_t, levels, 8);
AT(memrt_snapshot_t, level_count, 16);
AT(memrt_snapshot_t, threads, 24);
AT(memrt_snapshot_t, thread_count, 32);
AT(memrt_snapshot_t, readings, 40);
AT(memrt_snapshot_t, nanoseconds, 48);

_Static_assert(MEMRT_KIND_INLINE == 1 && MEMRT_KIND_BLOCK == 4, "kinds have fixed numbers");
_Static_assert(MEMRT_HEADER_SIZE == 64 && MEMRT_NAME_MAX == 63, "callers compile in the limits");

/// Count a reference as compiled code does: the count is the word at 0, the data pointer is the
/// word at 24.
static void count_as_compiled_code_does(const memrt_api_t *api)
{
    memrt_meminfo_t *mi = api->allocate(16);
    char *raw = (char *)mi;
    size_t count;
    void *data;
    memcpy(&count, raw, sizeof(count));
    memcpy(&data, raw + 24, sizeof(data));
    EXPECT(count == 1);
    EXPECT(data == api->get_data(mi) && data == raw + 64);
    __atomic_fetch_add((size_t *)(void *)raw, 1, __ATOMIC_RELAXED);
    EXPECT(api->refcount(mi) == 2);
    api->release(mi);
    EXPECT(__atomic_fetch_sub((size_t *)(void *)raw, 1, __ATOMIC_RELEASE) == 1);
    api->call_dtor(mi);
}

int main(void)
{
    const memrt_api_t *api = memrt_get_api(MEMRT_ABI_MAJOR, NULL);
    EXPECT(api != NULL);
    EXPECT(api->struct_size == sizeof(memrt_api_t));
    count_as_compiled_code_does(api);
    return 0;
}
