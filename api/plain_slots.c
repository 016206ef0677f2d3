#include "api/plain_slots.h"

#include <stdio.h>
#include <string.h>

#include "runtime/alloc/allocator.h"
#include "runtime/base/atomics.h"
#include "runtime/base/size.h"
#include "runtime/config/fault_injection.h"
#include "runtime/config/options.h"
#include "runtime/config/policy_options.h"
#include "runtime/cuda/driver.h"
#include "runtime/cuda/pinned.h"
#include "runtime/meminfo/block_layout.h"
#include "runtime/meminfo/references.h"
#include "runtime/observe/tracking.h"
#include "runtime/policy/policy_allocators.h"
#include "runtime/policy/scope.h"
#include "runtime/stats/stats.h"

int memrt__plain_try_acquire(memrt_meminfo_t *mi)
{
    return memrt__meminfo_try_acquire(mi);
}

size_t memrt__plain_size(const memrt_meminfo_t *mi)
{
    return memrt__load_relaxed(&mi->size); /* another holder may grow the data at its address */
}

void *memrt__plain_dtor_info(const memrt_meminfo_t *mi)
{
    return mi->dtor_info;
}

int memrt__plain_readonly(const memrt_meminfo_t *mi)
{
    return (memrt__flags_load_relaxed(&mi->flags) & MEMRT__FLAG_READONLY) != 0;
}

memrt_external_allocator_t *memrt__plain_external_allocator(const memrt_meminfo_t *mi)
{
    return mi->external_allocator;
}

memrt_policy_t *memrt__plain_policy_of(const memrt_meminfo_t *mi)
{
    return memrt__policy_of(mi)->base;
}

const char *memrt__plain_policy_name(const memrt_policy_t *policy)
{
    return policy->name;
}

size_t memrt__plain_policy_alignment(const memrt_policy_t *policy)
{
    return policy->alignment;
}

uint32_t memrt__plain_policy_index(const memrt_policy_t *policy)
{
    return policy->base->index;
}

const memrt_allocator_t *memrt__plain_allocator_system(void)
{
    return &memrt__system_allocator;
}

const memrt_allocator_t *memrt__plain_allocator_mapped(void)
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

memrt_status_t memrt__plain_stats_read(const memrt_policy_t *policy, memrt_stats_t *out)
{
    memrt_stats_t all = {.cached = memrt__policy_cached(policy)};
    return read_aggregate_stats(policy == NULL ? &memrt__process : &policy->base->level, &all, out);
}

static memrt_status_t read_sizes(const memrt__level_t *level, memrt_sizes_t *out)
{
    memrt_sizes_t all = {.struct_size = out->struct_size};
    if (all.struct_size < sizeof(all.struct_size)) {
        return MEMRT_EINVAL;
    }
    memrt__stats_sizes(level, &all);
    memcpy(out, &all, memrt__size_min(all.struct_size, sizeof(all)));
    return MEMRT_OK;
}

memrt_status_t memrt__plain_stats_sizes(const memrt_policy_t *policy, memrt_sizes_t *out)
{
    return read_sizes(policy == NULL ? &memrt__process : &policy->base->level, out);
}

void memrt__plain_stats_reset_peak(memrt_policy_t *policy)
{
    memrt__stats_reset_peak(policy == NULL ? &memrt__process : &policy->base->level);
}

int memrt__plain_tracking(int on)
{
    return memrt__tracking_switch(on != 0);
}

int memrt__plain_tracking_enabled(void)
{
    return memrt__tracking_is_on();
}

int memrt__plain_option(size_t index, memrt_option_t *out)
{
    return memrt__options_row(index, out);
}

const char *memrt__plain_status_text(memrt_status_t status)
{
    static const char *const texts[] = {
        [MEMRT_OK] = "done",
        [MEMRT_ENOMEM] = "out of memory, or the size overflows with header and alignment",
        [MEMRT_EINVAL] = "an argument has a value that the call does not allow",
        [MEMRT_ENOENT] = "no object has the given pointer or name",
        [MEMRT_EBUSY] = "another holder or user has the object",
        [MEMRT_ELIMIT] =
            ("a limit of memrt is reached: 4095 policies, 4096 scopes, 8 hooks, 32 "
             "callbacks for memory pressure, 64 callbacks for refusals, 64 suppression "
             "patterns, 4096 frozen arrays, or a million symbols"),
        [MEMRT_ENOTSUP] =
            "the kind of the object does not support the call, or the CUDA driver was not found",
        [MEMRT_EDEVICE] = "the CUDA driver refused a call",
        [MEMRT_EIO] = "the system refused a call on the file",
    };
    size_t index = (size_t)status;
    return index < sizeof(texts) / sizeof(texts[0]) ? texts[index] : "unknown status";
}

int memrt__plain_policy_option(const memrt_policy_t *policy, size_t index, memrt_option_t *out)
{
    return memrt__limits_row(&policy->base->limits, index, out);
}

memrt_scope_t *memrt__plain_scope_of(const memrt_meminfo_t *mi)
{
    return memrt__policy_of(mi)->scope;
}

memrt_scope_t *memrt__plain_scope_parent(const memrt_scope_t *scope)
{
    return scope->parent;
}

const char *memrt__plain_scope_name(const memrt_scope_t *scope)
{
    return scope->name;
}

uint32_t memrt__plain_scope_id(const memrt_scope_t *scope)
{
    return scope->id;
}

memrt_status_t memrt__plain_scope_stats(const memrt_scope_t *scope, memrt_stats_t *out)
{
    memrt_stats_t all = {0};
    return read_aggregate_stats(&scope->level, &all, out);
}

void memrt__plain_scope_sizes(const memrt_scope_t *scope, uint64_t *out)
{
    memrt_sizes_t sizes;
    memrt__stats_sizes(&scope->level, &sizes);
    memcpy(out, sizes.allocated, sizeof(sizes.allocated));
}

memrt_status_t memrt__plain_scope_stats_sizes(const memrt_scope_t *scope, memrt_sizes_t *out)
{
    return read_sizes(&scope->level, out);
}

void memrt__plain_scope_reset_peak(memrt_scope_t *scope)
{
    memrt__stats_reset_peak(&scope->level);
}

size_t memrt__plain_cuda_why_not(char *text, size_t length)
{
    char why[MEMRT__TEXT_MAX];
    if (memrt__driver(why, sizeof(why)) != NULL) {
        return 0;
    }
    return (size_t)snprintf(text, length, "%s", why);
}

const memrt_allocator_t *memrt__plain_allocator_pinned(void)
{
    return &memrt__pinned_allocator;
}
