#include <memrt/external.h>

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "api/table.h"
#include "runtime/alloc/guard.h"
#include "runtime/alloc/scope.h"
#include "runtime/arrow.h"
#include "runtime/base/failure.h"
#include "runtime/base/options.h"
#include "runtime/base/size.h"
#include "runtime/debug/site.h"
#include "runtime/debug/trace.h"
#include "runtime/debug/tracking.h"
#include "runtime/device/buffer.h"
#include "runtime/device/memory.h"
#include "runtime/device/pinned.h"
#include "runtime/device/stream.h"
#include "runtime/dlpack.h"
#include "runtime/leaks.h"
#include "runtime/meminfo/meminfo.h"
#include "runtime/meminfo/named.h"
#include "runtime/meminfo/owner.h"
#include "runtime/meminfo/raw.h"
#include "runtime/meminfo/resizable.h"
#include "runtime/runtime.h"
#include "runtime/shortage.h"
#include "runtime/stats/stats.h"
#include "runtime/symbols.h"

#define SLOT_AT(slot, word)                                                                        \
    _Static_assert(offsetof(memrt_api_t, slot) == (word) * 8, #slot " moved")
SLOT_AT(allocate, 0);
SLOT_AT(allocate_external, 1);
SLOT_AT(manage_memory, 2);
SLOT_AT(acquire, 3);
SLOT_AT(release, 4);
SLOT_AT(get_data, 5);
SLOT_AT(struct_size, 6);
SLOT_AT(abi_major, 7);
SLOT_AT(features, 8);
SLOT_AT(version, 9);
SLOT_AT(meminfo_new, 10);
SLOT_AT(status_text, 60);
SLOT_AT(policy_option, 63);
SLOT_AT(scope_reset_peak, 77);
SLOT_AT(holders, 80);
SLOT_AT(buffer_read, 92);
SLOT_AT(set_symbol_error, 98);
SLOT_AT(allocator_pinned, 114);
SLOT_AT(dlpack_new, 119);
SLOT_AT(arrow_adopt, 121);
SLOT_AT(trace_mark, 125);
_Static_assert(sizeof(memrt_api_t) == 126 * 8, "slots are only ever appended");

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

/// `all` has what is kept for reuse.
static memrt_status_t read_level(const memrt__level_t *level, memrt_stats_t *all,
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
    return read_level(policy == NULL ? &memrt__process : &policy->base->level, &all, out);
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
    memrt__failure_set(plan);
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
        [MEMRT_EINVAL] = "an argument is outside what the call allows",
        [MEMRT_ENOENT] = "nothing is known under that pointer or name",
        [MEMRT_EBUSY] = "somebody else holds or uses the object",
        [MEMRT_ELIMIT] = "a limit of memrt is reached: 4095 policies are live",
        [MEMRT_ENOTSUP] = "this kind of object cannot do that, or there is no CUDA driver",
        [MEMRT_EDEVICE] = "the CUDA driver refused",
        [MEMRT_EIO] = "the system refused the file",
    };
    size_t index = (size_t)status;
    return index < sizeof(texts) / sizeof(texts[0]) ? texts[index] : "not a status of this version";
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
    return read_level(&scope->level, &all, out);
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
    .block_alloc = memrt__raw_alloc,
    .block_calloc = memrt__raw_calloc,
    .block_realloc = memrt__raw_realloc,
    .block_free = memrt__raw_free,
    .block_meminfo = memrt__raw_meminfo,
    .find = memrt__owner_find,
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
    .live = memrt__owner_live,
    .live_free = memrt__owner_live_free,
    .set_watcher = memrt__watcher_set,
    .watch = memrt__meminfo_watch,
    .release_unused = memrt__policy_release_unused,
    .fail_allocations = api_fail_allocations,
    .failure_points = memrt__failure_points,
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
    .buffers = memrt__owner_buffers,
    .set_frames = memrt__site_set_frames,
    .frame_new = memrt__frame_new,
    .frame_text = memrt__frame_text,
    .site_read = memrt__site_read,
    .site_frames = memrt__site_frames,
    .lasting_add = memrt__lasting_add,
    .lasting_at = memrt__lasting_at,
    .explain_shortage = memrt__shortage_explain,
    .buffer_read = memrt__owner_buffer_read,
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

static char refusal[160];

static void write_refusal(void)
{
    snprintf(refusal, sizeof(refusal),
             "memrt %s offers ABI %u and was asked for another: rebuild the caller against this "
             "memrt's headers, or install a memrt with the caller's ABI",
             MEMRT_VERSION, MEMRT_ABI_MAJOR);
}

const memrt_api_t *memrt_get_api(uint32_t abi_major, const char **why)
{
    static pthread_once_t written = PTHREAD_ONCE_INIT;
    if (abi_major != MEMRT_ABI_MAJOR) {
        pthread_once(&written, write_refusal);
        if (why != NULL) {
            *why = refusal;
        }
        return NULL;
    }
    memrt__runtime_start();
    return memrt__options.check ? memrt__checking_table() : &memrt__plain_table;
}

const char *memrt_version(void)
{
    return MEMRT_VERSION;
}
