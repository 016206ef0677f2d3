#include "runtime/meminfo/meminfo.h"

#include <stdio.h>
#include <string.h>

#include "runtime/alloc/file_backed.h"
#include "runtime/base/size.h"
#include "runtime/event/guard_sampling.h"
#include "runtime/event/live_observer.h"
#include "runtime/event/user_observer.h"
#include "runtime/observe/live_set.h"

static bool is_valid_alignment(size_t alignment)
{
    return alignment == 0 || (memrt__is_power_of_two(alignment) && alignment <= MEMRT_ALIGN_MAX);
}

/// Return whether a caller's struct has all members of this version.
static bool has_all_options(const memrt_new_options_t *options)
{
    return options != NULL && options->struct_size >= sizeof(*options);
}

/// Copy the options of a caller, and set members that the caller's struct lacks to 0.
static memrt_status_t complete_options(const memrt_new_options_t *options, memrt_new_options_t *out)
{
    *out = (memrt_new_options_t){0};
    if (options != NULL) {
        if (options->struct_size < sizeof(options->struct_size)) {
            return MEMRT_EINVAL;
        }
        memcpy(out, options, memrt__size_min(options->struct_size, sizeof(*out)));
    }
    return MEMRT_OK;
}

memrt_status_t memrt__meminfo_options(const memrt_new_options_t *options, memrt_new_options_t *room,
                                      const memrt_new_options_t **out)
{
    if (!has_all_options(options)) {
        memrt_status_t status = complete_options(options, room);
        if (status != MEMRT_OK) {
            return status;
        }
        options = room;
    }
    if (!is_valid_alignment(options->alignment) ||
        options->align_offset % MEMRT__HEADER_ALIGN != 0 ||
        (options->name != NULL && !memrt__is_name(options->name))) {
        return MEMRT_EINVAL;
    }
    MEMRT__ASSERT(options->struct_size >= sizeof(*options) || options == room);
    *out = options;
    return MEMRT_OK;
}

void memrt__meminfo_fill_default(memrt_meminfo_t *mi, const memrt_new_options_t *options)
{
    mi->dtor = options->dtor;
    mi->dtor_info = options->dtor_info;
    if (options->readonly) {
        memrt__flags_set_relaxed(&mi->flags, MEMRT__FLAG_READONLY);
    }
}

memrt_status_t memrt__meminfo_fill(memrt_meminfo_t *mi, const memrt_new_options_t *options)
{
    if (options->name != NULL) {
        memrt_status_t status = memrt__meminfo_set_name(mi, options->name);
        if (status != MEMRT_OK) {
            memrt__block_refused(memrt__home_policy(options->policy), mi->size);
            return status;
        }
    }
    memrt__meminfo_fill_default(mi, options);
    return MEMRT_OK;
}

/// Allocate a block as a MemInfo, and notify observers. The way for all requests that a cache
/// cannot serve. Returns NULL when out of memory.
static memrt_meminfo_t *allocate_block(memrt_policy_t *policy, size_t nbytes,
                                       memrt_external_allocator_t *allocator,
                                       memrt__alloc_event_t event)
{
    memrt__block_request_t request = {.policy = policy,
                                      .size = nbytes,
                                      .kind = MEMRT_KIND_INLINE,
                                      .external = allocator,
                                      .event = event};
    memrt_meminfo_t *mi = memrt__block_new(&request);
    return mi == NULL ? NULL : memrt__block_notify_alloc(mi, event.site);
}

/// Slow path: no home is set for the policy, an observer is on, the request needs the allocator, or
/// a cache is empty.
MEMRT__APART static memrt_meminfo_t *allocate_slow(size_t nbytes, memrt_policy_t *named)
{
    memrt_policy_t *policy = memrt__home_policy(named);
    memrt__alloc_event_t event = memrt__tracking_alloc(nbytes);
    event.guarded = memrt__guard_is_due(policy, nbytes);
    memrt_meminfo_t *mi = event.weight != 0 || event.guarded
                              ? NULL
                              : memrt__block_new_cached(policy, nbytes, MEMRT_KIND_INLINE);
    return MEMRT__LIKELY(mi != NULL) ? mi : allocate_block(policy, nbytes, NULL, event);
}

memrt_meminfo_t *memrt__meminfo_allocate(size_t nbytes)
{
    memrt__thread_t *self = memrt__self;
    memrt_meminfo_t *mi = NULL;
    if (MEMRT__LIKELY(!memrt__is_observed())) {
        mi = memrt__block_new_fast(self, &self->homes[MEMRT__DEFAULT_HOME], nbytes,
                                   MEMRT_KIND_INLINE);
    }
    return MEMRT__LIKELY(mi != NULL) ? mi : allocate_slow(nbytes, NULL);
}

/// Allocate by a home. NULL: no home is set for the policy, or the fast path does not apply.
static MEMRT__INLINE memrt_meminfo_t *allocate_at(memrt__thread_t *self, const memrt__home_t *home,
                                                  size_t nbytes, memrt_policy_t *policy)
{
    return MEMRT__LIKELY(memrt__home_is_set_for(home, policy) && !memrt__is_observed())
               ? memrt__block_new_fast(self, home, nbytes, MEMRT_KIND_INLINE)
               : NULL;
}

/// Allocate by the second home; otherwise by the slow path.
MEMRT__APART static memrt_meminfo_t *allocate_second(size_t nbytes, memrt_policy_t *policy)
{
    memrt__thread_t *self = memrt__self;
    memrt_meminfo_t *mi = allocate_at(self, &self->homes[1], nbytes, policy);
    return MEMRT__LIKELY(mi != NULL) ? mi : allocate_slow(nbytes, policy);
}

memrt_meminfo_t *memrt__meminfo_allocate_from(size_t nbytes, memrt_policy_t *policy)
{
    memrt__thread_t *self = memrt__self;
    memrt_meminfo_t *mi = allocate_at(self, &self->homes[0], nbytes, policy);
    return MEMRT__LIKELY(mi != NULL) ? mi : allocate_second(nbytes, policy);
}

memrt_meminfo_t *memrt__meminfo_allocate_external(size_t nbytes,
                                                  memrt_external_allocator_t *allocator)
{
    return allocator == NULL ? memrt__meminfo_allocate(nbytes)
                             : allocate_block(memrt__home_policy(NULL), nbytes, allocator,
                                              memrt__tracking_alloc(nbytes));
}

/// Return whether a MemInfo with the options may have the alignment at an offset.
static bool allows_align_offset(const memrt_new_options_t *options)
{
    const memrt_policy_t *policy = memrt__home_policy(options->policy);
    size_t alignment = options->alignment == 0 ? policy->alignment : options->alignment;
    return options->external == NULL && !memrt__is_file_backed(&policy->allocator) &&
           alignment <= MEMRT_ALIGN_OFFSET_MAX;
}

/// Allocate from the thread cache for memrt__meminfo_new(), for options without a step after the
/// allocation that can fail. NULL: the options or the cache do not allow it.
static memrt_meminfo_t *allocate_cached(size_t size, const memrt_new_options_t *options)
{
    if (options->name != NULL || options->external != NULL || options->alignment != 0 ||
        options->align_offset != 0 || (options->zeroed && size > MEMRT__FAST_ZERO)) {
        return NULL;
    }
    memrt_policy_t *policy = memrt__home_policy(options->policy);
    memrt_meminfo_t *mi = memrt__block_new_cached(policy, size, MEMRT_KIND_INLINE);
    if (mi != NULL) {
        MEMRT__ASSERT(mi->refct == 1 && mi->size == size);
        if (options->zeroed) {
            memset(mi->data, 0, size);
        }
        memrt__meminfo_fill_default(mi, options);
    }
    return mi;
}

memrt_status_t memrt__meminfo_prepare(size_t size, const memrt_new_options_t *options,
                                      memrt__alloc_event_t event, memrt_meminfo_t **out)
{
    if (options->align_offset != 0 && !allows_align_offset(options)) {
        return MEMRT_EINVAL;
    }
    memrt__block_request_t request = {.policy = memrt__home_policy(options->policy),
                                      .size = size,
                                      .alignment = options->alignment,
                                      .align_offset = options->align_offset,
                                      .kind = MEMRT_KIND_INLINE,
                                      .zeroed = options->zeroed != 0,
                                      .external = options->external,
                                      .event = event};
    memrt_meminfo_t *mi = memrt__block_new(&request);
    if (mi == NULL) {
        return MEMRT_ENOMEM;
    }
    memrt_status_t status = memrt__meminfo_fill(mi, options);
    if (status != MEMRT_OK) {
        memrt__block_discard(mi);
        return status;
    }
    *out = mi;
    return MEMRT_OK;
}

/// Slow path of memrt__meminfo_new(): any options, or the first home is not set for the policy.
MEMRT__APART static memrt_status_t new_slow(size_t size, const memrt_new_options_t *options,
                                            memrt_meminfo_t **out)
{
    memrt_new_options_t room;
    const memrt_new_options_t *all;
    memrt_status_t status = memrt__meminfo_options(options, &room, &all);
    if (status != MEMRT_OK) {
        return status;
    }
    memrt__alloc_event_t event = memrt__tracking_alloc(size);
    event.guarded =
        memrt__guard_is_on() && memrt__guard_pick(memrt__home_policy(all->policy), size);
    memrt_meminfo_t *mi = event.weight != 0 || event.guarded ? NULL : allocate_cached(size, all);
    if (mi != NULL) {
        *out = mi;
        return MEMRT_OK;
    }
    status = memrt__meminfo_prepare(size, all, event, &mi);
    if (status == MEMRT_OK) {
        *out = memrt__block_notify_alloc(mi, event.site);
    }
    return status;
}

_Static_assert(offsetof(memrt_new_options_t, readonly) ==
                   offsetof(memrt_new_options_t, zeroed) + sizeof(int),
               "one load reads both");

/// Return whether options have no more than a policy and a destructor.
static inline bool allows_fast_path(const memrt_new_options_t *options)
{
    if (!has_all_options(options)) {
        return false;
    }
    uint64_t zeroed_readonly;
    memcpy(&zeroed_readonly, (const char *)options + offsetof(memrt_new_options_t, zeroed),
           sizeof(zeroed_readonly));
    return ((size_t)options->name | (size_t)options->external | options->alignment |
            options->align_offset | zeroed_readonly) == 0;
}

memrt_status_t memrt__meminfo_new(size_t size, const memrt_new_options_t *options,
                                  memrt_meminfo_t **out)
{
    memrt__thread_t *self = memrt__self;
    memrt_meminfo_t *mi = NULL;
    if (MEMRT__LIKELY(allows_fast_path(options))) {
        mi = allocate_at(self, &self->homes[0], size, options->policy);
    }
    if (MEMRT__UNLIKELY(mi == NULL)) {
        return new_slow(size, options, out);
    }
    mi->dtor = options->dtor;
    mi->dtor_info = options->dtor_info;
    *out = mi;
    return MEMRT_OK;
}

/// Attach adopted data to a header, and count the data in the account as adopted.
static void attach_adopted_data(memrt_meminfo_t *mi, void *data, size_t size)
{
    MEMRT__ASSERT(mi->kind == MEMRT_KIND_ADOPTED && mi->data == NULL);
    memrt__tally_t tally = memrt__tally(&memrt__policy_of(mi)->account);
    memrt__tally_in(&tally, &tally.shard->adopted_in, size);
    memrt__block_set_data(mi, data, size);
}

memrt_status_t memrt__meminfo_adopt(void *data, size_t size, const memrt_new_options_t *options,
                                    memrt_meminfo_t **out)
{
    memrt_new_options_t room;
    const memrt_new_options_t *all;
    memrt_status_t status = memrt__meminfo_options(options, &room, &all);
    if (status != MEMRT_OK) {
        return status;
    }
    if ((data == NULL && size != 0) || all->zeroed || all->alignment != 0 ||
        all->align_offset != 0 || all->external != NULL) {
        return MEMRT_EINVAL;
    }
    memrt__alloc_event_t event = memrt__tracking_alloc(size);
    if (all->name == NULL && event.weight == 0) {
        memrt_meminfo_t *mi =
            memrt__header_new_fast(memrt__home_policy(all->policy), MEMRT_KIND_ADOPTED);
        if (mi != NULL) {
            memrt__meminfo_fill_default(mi, all);
            attach_adopted_data(mi, data, size);
            memrt__probe_alloc(data, size, mi->policy, MEMRT_KIND_ADOPTED);
            *out = mi;
            return MEMRT_OK;
        }
    }
    memrt__block_request_t request = {.policy = memrt__home_policy(all->policy),
                                      .kind = MEMRT_KIND_ADOPTED,
                                      .behind = size,
                                      .event = event};
    memrt_meminfo_t *mi = memrt__block_new(&request);
    if (mi == NULL) {
        return MEMRT_ENOMEM;
    }
    status = memrt__meminfo_fill(mi, all);
    if (status != MEMRT_OK) {
        memrt__block_discard(mi);
        return status;
    }
    attach_adopted_data(mi, data, size);
    *out = memrt__block_notify_alloc(mi, event.site);
    return MEMRT_OK;
}

/// Adapter for manage_memory: `dtor_info` holds the caller's destructor, which has one argument.
static void managed_dtor(void *data, size_t size, void *dtor_info)
{
    (void)size;
    memrt_managed_dtor_fn dtor;
    memcpy(&dtor, &dtor_info, sizeof(dtor));
    dtor(data);
}

memrt_meminfo_t *memrt__meminfo_manage_memory(void *data, memrt_managed_dtor_fn dtor)
{
    memrt_new_options_t options = {.struct_size = sizeof(options)};
    if (dtor != NULL) {
        options.dtor = managed_dtor;
        memcpy(&options.dtor_info, &dtor, sizeof(dtor));
    }
    memrt_meminfo_t *mi;
    return memrt__meminfo_adopt(data, 0, &options, &mi) == MEMRT_OK ? mi : NULL;
}

memrt_status_t memrt__meminfo_set_name(memrt_meminfo_t *mi, const char *name)
{
    if (name != NULL && name[0] == '\0') {
        name = NULL;
    }
    if (name != NULL && !memrt__is_name(name)) {
        return MEMRT_EINVAL;
    }
    return memrt__block_set_name(mi, name) ? MEMRT_OK : MEMRT_ENOMEM;
}

void memrt__meminfo_observe(memrt_meminfo_t *mi)
{
    memrt__flags_set_relaxed(&mi->flags, MEMRT_FLAG_OBSERVED);
    if (mi->kind == MEMRT_KIND_RESIZABLE && mi->data != NULL) {
        memrt__flags_set_relaxed(&memrt__block_of(mi->data)->flags, MEMRT_FLAG_OBSERVED);
    }
    if (mi->data != NULL) {
        memrt__user_observer_mark(mi);
    }
}

void memrt__meminfo_get_name(const memrt_meminfo_t *mi, char *buffer)
{
    buffer[0] = '\0';
    if ((memrt__flags_load_relaxed(&mi->flags) & MEMRT__FLAG_LISTED) != 0) {
        memrt__live_name((uintptr_t)mi, buffer);
    }
}

const char *memrt__kind_text(uint32_t kind)
{
    static const char *const texts[] = {"unknown", "inline", "adopted", "resizable", "block"};
    return texts[kind < sizeof(texts) / sizeof(texts[0]) ? kind : 0];
}

size_t memrt__meminfo_dump(const memrt_meminfo_t *mi, char *buffer, size_t length)
{
    char name[MEMRT_NAME_MAX + 1];
    memrt__meminfo_get_name(mi, name);
    int needed =
        snprintf(buffer, length, "MemInfo %p: %s%s%s%zu bytes at %p, refcount %zu, %s, policy %s",
                 (const void *)mi, name[0] == '\0' ? "" : "\"", name, name[0] == '\0' ? "" : "\", ",
                 mi->size, mi->data, memrt__meminfo_refcount(mi), memrt__kind_text(mi->kind),
                 memrt__policy_of(mi)->name);
    return needed < 0 ? 0 : (size_t)needed;
}
