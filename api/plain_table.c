#include <memrt/external.h>

#include <stdio.h>
#include <string.h>

#include "api/table.h"
#include "runtime/alloc/guard/guard.h"
#include "runtime/base/size.h"
#include "runtime/config/fault_injection.h"
#include "runtime/config/options.h"
#include "runtime/cuda/buffer.h"
#include "runtime/cuda/memory.h"
#include "runtime/cuda/pinned.h"
#include "runtime/cuda/stream.h"
#include "runtime/interop/arrow_adopt.h"
#include "runtime/interop/arrow_export.h"
#include "runtime/interop/dlpack_adopt.h"
#include "runtime/interop/dlpack_export.h"
#include "runtime/meminfo/block_alloc.h"
#include "runtime/meminfo/block_api.h"
#include "runtime/meminfo/block_events.h"
#include "runtime/meminfo/lookup.h"
#include "runtime/meminfo/meminfo.h"
#include "runtime/meminfo/named.h"
#include "runtime/meminfo/references.h"
#include "runtime/meminfo/resizable.h"
#include "runtime/observe/sites.h"
#include "runtime/observe/tracking.h"
#include "runtime/policy/policy_allocators.h"
#include "runtime/policy/scope.h"
#include "runtime/report/leak_report.h"
#include "runtime/report/oom_report.h"
#include "runtime/runtime.h"
#include "runtime/stats/stats.h"
#include "runtime/symbols/symbols.h"
#include "runtime/trace/event_trace.h"

/// The table of functions without verification of arguments.

static void api_acquire(memrt_meminfo_t *mi)
{
    memrt__meminfo_acquire(mi);
}

static void api_release(memrt_meminfo_t *mi)
{
    memrt__meminfo_release(mi);
}

static void *api_get_data(memrt_meminfo_t *mi)
{
    if (MEMRT__UNLIKELY(memrt__is_probe(mi))) {
        return (void *)(uintptr_t)&memrt__plain_table;
    }
    return mi->data;
}

static int api_try_acquire(memrt_meminfo_t *mi)
{
    return memrt__meminfo_try_acquire(mi);
}

static size_t api_refcount(const memrt_meminfo_t *mi)
{
    return memrt__meminfo_refcount(mi);
}

static size_t api_size(const memrt_meminfo_t *mi)
{
    return mi->size;
}

static void *api_dtor_info(const memrt_meminfo_t *mi)
{
    return mi->dtor_info;
}

static int api_readonly(const memrt_meminfo_t *mi)
{
    return (memrt__flags_load_relaxed(&mi->flags) & MEMRT__FLAG_READONLY) != 0;
}

static memrt_external_allocator_t *api_external_allocator(const memrt_meminfo_t *mi)
{
    return mi->external_allocator;
}

static memrt_policy_t *api_policy_of(const memrt_meminfo_t *mi)
{
    return memrt__policy_of(mi)->base;
}

static memrt_policy_t *api_policy_default(void)
{
    return memrt__policy_default();
}

static const char *api_policy_name(const memrt_policy_t *policy)
{
    return policy->name;
}

static size_t api_policy_alignment(const memrt_policy_t *policy)
{
    return policy->alignment;
}

static uint32_t api_policy_index(const memrt_policy_t *policy)
{
    return policy->base->index;
}

static const memrt_allocator_t *api_allocator_default(void)
{
    return memrt__default_allocator();
}

static const memrt_allocator_t *api_allocator_system(void)
{
    return &memrt__system_allocator;
}

static const memrt_allocator_t *api_allocator_mapped(void)
{
    return &memrt__mapped_allocator;
}

/// Read the statistics of an aggregate into `out`, as far as `out->struct_size` reaches. The caller
/// sets `all->cached` before the call. MEMRT_EINVAL: struct_size is not set.
static memrt_status_t read_aggregate_stats(const memrt__level_t *level, memrt_stats_t *all,
                                           memrt_stats_t *out)
{
    size_t room = out->struct_size;
    if (room < sizeof(out->struct_size)) {
        return MEMRT_EINVAL;
    }
    memrt__stats_read(level, all);
    all->reserved += all->cached;
    all->struct_size = room;
    memcpy(out, all, memrt__size_min(room, sizeof(*all)));
    return MEMRT_OK;
}

static memrt_status_t api_stats_read(const memrt_policy_t *policy, memrt_stats_t *out)
{
    memrt_stats_t all = {.cached = memrt__policy_cached(policy)};
    return read_aggregate_stats(policy == NULL ? &memrt__process : &policy->base->level, &all, out);
}

static void api_stats_reset_peak(memrt_policy_t *policy)
{
    memrt__stats_reset_peak(policy == NULL ? &memrt__process : &policy->base->level);
}

static int api_tracking(int on)
{
    return memrt__tracking_switch(on != 0);
}

static int api_tracking_enabled(void)
{
    return memrt__tracking_is_on();
}

static memrt_status_t api_fail_allocations(const memrt_failure_plan_t *plan)
{
    if (plan != NULL && plan->struct_size < sizeof(*plan)) {
        return MEMRT_EINVAL;
    }
    memrt__fault_set(plan);
    return MEMRT_OK;
}

static int api_option(size_t index, memrt_option_t *out)
{
    return memrt__options_row(index, out);
}

static const char *api_status_text(memrt_status_t status)
{
    static const char *const texts[] = {
        [MEMRT_OK] = "done",
        [MEMRT_ENOMEM] = "out of memory, or the size overflows with header and alignment",
        [MEMRT_EINVAL] = "an argument has a value that the call does not allow",
        [MEMRT_ENOENT] = "no object has the given pointer or name",
        [MEMRT_EBUSY] = "another holder or user has the object",
        [MEMRT_ELIMIT] = ("a limit of memrt is reached: 4095 policies, 4096 scopes, 64 suppression "
                          "patterns, or a million symbols"),
        [MEMRT_ENOTSUP] =
            "the kind of the object does not support the call, or the CUDA driver was not found",
        [MEMRT_EDEVICE] = "the CUDA driver refused a call",
        [MEMRT_EIO] = "the system refused a call on the file",
    };
    size_t index = (size_t)status;
    return index < sizeof(texts) / sizeof(texts[0]) ? texts[index] : "unknown status";
}

static int api_policy_option(const memrt_policy_t *policy, size_t index, memrt_option_t *out)
{
    return memrt__limits_row(&policy->limits, index, out);
}

static memrt_scope_t *api_scope_of(const memrt_meminfo_t *mi)
{
    return memrt__policy_of(mi)->scope;
}

static memrt_scope_t *api_scope_parent(const memrt_scope_t *scope)
{
    return scope->parent;
}

static const char *api_scope_name(const memrt_scope_t *scope)
{
    return scope->name;
}

static uint32_t api_scope_id(const memrt_scope_t *scope)
{
    return scope->id;
}

static memrt_status_t api_scope_stats(const memrt_scope_t *scope, memrt_stats_t *out)
{
    memrt_stats_t all = {0};
    return read_aggregate_stats(&scope->level, &all, out);
}

static void api_scope_sizes(const memrt_scope_t *scope, uint64_t *out)
{
    memrt__stats_sizes(&scope->level, out);
}

static void api_scope_reset_peak(memrt_scope_t *scope)
{
    memrt__stats_reset_peak(&scope->level);
}

static size_t api_cuda_why_not(char *text, size_t length)
{
    char why[MEMRT__TEXT_MAX];
    if (memrt__driver(why, sizeof(why)) != NULL) {
        return 0;
    }
    return (size_t)snprintf(text, length, "%s", why);
}

static const memrt_allocator_t *api_allocator_pinned(void)
{
    return &memrt__pinned_allocator;
}

const memrt_api_t memrt__plain_table = {
    .allocate = memrt__meminfo_allocate,
    .allocate_external = memrt__meminfo_allocate_external,
    .manage_memory = memrt__meminfo_manage_memory,
    .acquire = api_acquire,
    .release = api_release,
    .get_data = api_get_data,
    .struct_size = sizeof(memrt_api_t),
    .abi_major = MEMRT_ABI_MAJOR,
    .abi_minor = MEMRT_ABI_MINOR,
    .features =
        (MEMRT_COUNTERS ? MEMRT_FEATURE_COUNTERS : 0) | (MEMRT_PROBES ? MEMRT_FEATURE_PROBES : 0),
    .version = MEMRT_VERSION,
    .meminfo_new = memrt__meminfo_new,
    .meminfo_adopt = memrt__meminfo_adopt,
    .try_acquire = api_try_acquire,
    .call_dtor = memrt__dtor_call,
    .refcount = api_refcount,
    .size = api_size,
    .dtor_info = api_dtor_info,
    .readonly = api_readonly,
    .external_allocator = api_external_allocator,
    .set_name = memrt__meminfo_set_name,
    .get_name = memrt__meminfo_get_name,
    .dump = memrt__meminfo_dump,
    .policy_of = api_policy_of,
    .resizable_new = memrt__resizable_new,
    .resizable_alloc = memrt__resizable_alloc,
    .resizable_realloc = memrt__resizable_realloc,
    .resizable_free = memrt__resizable_free,
    .block_alloc = memrt__block_alloc,
    .block_calloc = memrt__block_calloc,
    .block_realloc = memrt__block_api_realloc,
    .block_free = memrt__block_api_free,
    .block_meminfo = memrt__block_api_meminfo,
    .find = memrt__lookup_find,
    .policy_new = memrt__policy_new,
    .policy_acquire = memrt__policy_acquire,
    .policy_release = memrt__policy_release,
    .policy_default = api_policy_default,
    .policy_name = api_policy_name,
    .policy_alignment = api_policy_alignment,
    .policy_index = api_policy_index,
    .policy_at = memrt__policy_at,
    .policy_limit = memrt__policy_limit,
    .allocator_default = api_allocator_default,
    .allocator_system = api_allocator_system,
    .allocator_mapped = api_allocator_mapped,
    .allocator_guard = memrt__guard_new,
    .stats_read = api_stats_read,
    .stats_reset_peak = api_stats_reset_peak,
    .tracking = api_tracking,
    .tracking_enabled = api_tracking_enabled,
    .live = memrt__lookup_live,
    .live_free = memrt__lookup_live_free,
    .set_watcher = memrt__watcher_set,
    .watch = memrt__meminfo_observe,
    .release_unused = memrt__policy_release_unused,
    .fail_allocations = api_fail_allocations,
    .failure_points = memrt__fault_points,
    .option = api_option,
    .option_warning = memrt__options_warning,
    .shutdown = memrt__dtor_shutdown,
    .status_text = api_status_text,
    .option_set = memrt__runtime_set_option,
    .option_check = memrt__options_check,
    .policy_option = api_policy_option,
    .scope_open = memrt__scope_open,
    .scope_acquire = memrt__scope_acquire,
    .scope_release = memrt__scope_release,
    .scope_enter = memrt__scope_enter,
    .scope_current = memrt__scope_current,
    .scope_policy = memrt__scope_policy,
    .scope_of = api_scope_of,
    .scope_next = memrt__scope_next,
    .scope_parent = api_scope_parent,
    .scope_name = api_scope_name,
    .scope_id = api_scope_id,
    .scope_stats = api_scope_stats,
    .scope_sizes = api_scope_sizes,
    .scope_reset_peak = api_scope_reset_peak,
    .acquire_as = memrt__named_acquire,
    .release_as = memrt__named_release,
    .holders = memrt__named_holders,
    .tracking_set = memrt__tracking_set,
    .tracking_get = memrt__tracking_get,
    .buffers = memrt__lookup_buffers,
    .set_frames = memrt__site_set_frames,
    .frame_new = memrt__frame_new,
    .frame_text = memrt__frame_text,
    .site_read = memrt__site_read,
    .site_frames = memrt__site_frames,
    .suppression_add = memrt__suppression_add,
    .suppression_at = memrt__suppression_at,
    .explain_shortage = memrt__oom_report_write,
    .buffer_read = memrt__lookup_buffer_read,
    .unresolved_abort = memrt__unresolved_abort,
    .symbol_slot = memrt__symbol_slot,
    .symbol_define = memrt__symbol_define,
    .symbols_unresolved = memrt__symbols_unresolved,
    .symbol_error = memrt__symbol_error,
    .set_symbol_error = memrt__set_symbol_error,
    .cuda_why_not = api_cuda_why_not,
    .cuda_error = memrt__driver_error,
    .cuda_new = memrt__buffer_new,
    .cuda_adopt = memrt__buffer_adopt,
    .cuda_info = memrt__buffer_info,
    .cuda_used = memrt__buffer_used,
    .cuda_wait = memrt__buffer_wait,
    .cuda_read = memrt__buffer_read,
    .cuda_write = memrt__buffer_write,
    .cuda_stream_new = memrt__stream_new,
    .cuda_stream_free = memrt__stream_free,
    .cuda_stream_synchronize = memrt__stream_synchronize,
    .cuda_stats = memrt__memory_stats,
    .cuda_set_limit = memrt__memory_set_limit,
    .cuda_policy = memrt__memory_policy,
    .allocator_pinned = api_allocator_pinned,
    .dlpack_export = memrt__dlpack_export,
    .dlpack_export_unversioned = memrt__dlpack_export_unversioned,
    .dlpack_adopt = memrt__dlpack_adopt,
    .dlpack_adopt_unversioned = memrt__dlpack_adopt_unversioned,
    .dlpack_new = memrt__dlpack_new,
    .arrow_export = memrt__arrow_export,
    .arrow_adopt = memrt__arrow_adopt,
    .trace_start = memrt__trace_start,
    .trace_stop = memrt__trace_stop,
    .trace_stats = memrt__trace_stats,
    .trace_mark = memrt__trace_mark,
};
