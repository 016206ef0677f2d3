#include "runtime/meminfo/resizable.h"

#include "runtime/event/guard_sampling.h"
#include "runtime/meminfo/block_api.h"
#include "runtime/meminfo/block_resize.h"
#include "runtime/observe/tracking.h"

/// Allocate an unpublished data block for `mi`, with `reserve` bytes of addresses or none. The
/// header keeps the requested alignment, which applies to every data block. NULL: out of memory.
static memrt_meminfo_t *alloc_data_block(const memrt_meminfo_t *mi, size_t size, size_t reserve,
                                         bool zeroed, bool guarded)
{
    memrt__alloc_event_t event = memrt__tracking_data_block();
    event.guarded = guarded;
    memrt__block_request_t request = {.policy = memrt__policy_of(mi),
                                      .size = size,
                                      .alignment = (size_t)1 << mi->align_log2,
                                      .kind = MEMRT_KIND_BLOCK,
                                      .zeroed = zeroed,
                                      .is_data_block = true,
                                      .reserve = reserve,
                                      .event = event};
    return memrt__block_new(&request);
}

static void *set_data(memrt_meminfo_t *mi, const memrt_meminfo_t *data)
{
    MEMRT__ASSERT(mi->kind == MEMRT_KIND_RESIZABLE && data->kind == MEMRT_KIND_BLOCK);
    memrt__block_set_data(mi, data->data, data->size);
    return mi->data;
}

/// Fast path of memrt__resizable_new(), for options without a step after the two allocations that
/// can fail. NULL: the fast path does not apply.
static memrt_meminfo_t *create_fast(size_t size, const memrt_new_options_t *options)
{
    if (options->name != NULL || options->alignment != 0 || options->zeroed) {
        return NULL;
    }
    memrt_policy_t *policy = memrt__home_policy(options->policy);
    memrt_meminfo_t *mi = memrt__header_new_fast(policy, MEMRT_KIND_RESIZABLE);
    if (mi == NULL) {
        return NULL;
    }
    memrt_meminfo_t *data = memrt__block_new_cached(policy, size, MEMRT_KIND_BLOCK);
    if (data == NULL) {
        memrt__header_undo_fast(mi);
        return NULL;
    }
    MEMRT__ASSERT(memrt__block_of(data->data) == data);
    data->flags |= MEMRT__FLAG_DATA_BLOCK;
    memrt__meminfo_fill_default(mi, options);
    set_data(mi, data);
    return mi;
}

/// Slow path: create the header, then the data, with all options.
static memrt_status_t create_slow(size_t size, size_t reserve, const memrt_new_options_t *all,
                                  memrt__alloc_event_t event, memrt_meminfo_t **out)
{
    memrt_status_t status;
    bool guarded = event.guarded;
    event.guarded = false; /* guard pages are for the data, not for the header */
    memrt__block_request_t request = {.policy = memrt__home_policy(all->policy),
                                      .alignment = all->alignment,
                                      .kind = MEMRT_KIND_RESIZABLE,
                                      .behind = size,
                                      .event = event};
    memrt_meminfo_t *mi = memrt__block_new(&request);
    if (mi == NULL) {
        return MEMRT_ENOMEM;
    }
    memrt_meminfo_t *data = alloc_data_block(mi, size, reserve, all->zeroed != 0, guarded);
    if (data == NULL) {
        status = MEMRT_ENOMEM;
        goto discard_header;
    }
    status = memrt__meminfo_fill(mi, all);
    if (status != MEMRT_OK) {
        goto discard_data;
    }
    set_data(mi, memrt__block_notify_alloc(data, event.site));
    *out = memrt__block_notify_alloc(mi, event.site);
    return MEMRT_OK;

discard_data:
    memrt__block_discard(data);
discard_header:
    memrt__block_discard(mi);
    return status;
}

/// Check the options of a new resizable MemInfo, as memrt__meminfo_options().
static memrt_status_t check_options(const memrt_new_options_t *options, memrt_new_options_t *room,
                                    const memrt_new_options_t **all)
{
    memrt_status_t status = memrt__meminfo_options(options, room, all);
    bool applies = status != MEMRT_OK || ((*all)->external == NULL && (*all)->align_offset == 0);
    return applies ? status : MEMRT_EINVAL;
}

memrt_status_t memrt__resizable_new(size_t size, const memrt_new_options_t *options,
                                    memrt_meminfo_t **out)
{
    memrt_new_options_t room;
    const memrt_new_options_t *all;
    memrt_status_t status = check_options(options, &room, &all);
    if (status != MEMRT_OK) {
        return status;
    }
    memrt__alloc_event_t event = memrt__tracking_alloc(size);
    event.guarded =
        memrt__guard_is_on() && memrt__guard_pick(memrt__home_policy(all->policy), size);
    memrt_meminfo_t *plain = event.weight != 0 || event.guarded ? NULL : create_fast(size, all);
    if (plain != NULL) {
        *out = plain;
        return MEMRT_OK;
    }
    return create_slow(size, 0, all, event, out);
}

memrt_status_t memrt__resizable_new_reserved(size_t size, size_t reserve,
                                             const memrt_new_options_t *options,
                                             memrt_meminfo_t **out)
{
    memrt_new_options_t room;
    const memrt_new_options_t *all;
    memrt_status_t status = check_options(options, &room, &all);
    if (status == MEMRT_OK && (reserve == 0 || reserve < size)) {
        status = MEMRT_EINVAL;
    }
    return status != MEMRT_OK ? status
                              : create_slow(size, reserve, all, memrt__tracking_alloc(size), out);
}

void *memrt__resizable_alloc(memrt_meminfo_t *mi, size_t size)
{
    bool guarded = memrt__guard_is_due(memrt__policy_of(mi), size);
    memrt_meminfo_t *data = alloc_data_block(mi, size, 0, false, guarded);
    if (data == NULL) {
        return NULL;
    }
    if (mi->data != NULL) { /* the caller owns the old data block from now on */
        memrt__flags_clear_relaxed(&memrt__block_of(mi->data)->flags, MEMRT__FLAG_DATA_BLOCK);
    }
    return set_data(mi, memrt__block_notify_alloc(data, memrt__tracking_traced_site()));
}

void *memrt__resizable_realloc(memrt_meminfo_t *mi, size_t size)
{
    if (mi->data == NULL) {
        return memrt__resizable_alloc(mi, size);
    }
    void *data = memrt__block_api_realloc(memrt__policy_of(mi), mi->data, size);
    if (data == NULL) {
        return NULL;
    }
    return set_data(mi, memrt__block_of(data));
}

memrt_status_t memrt__resizable_try_expand(memrt_meminfo_t *mi, size_t size)
{
    if (mi->data == NULL) {
        return MEMRT_ENOMEM;
    }
    memrt_status_t status = memrt__block_api_try_expand(mi->data, size);
    if (status == MEMRT_OK) {
        memrt__block_set_size(mi, memrt__block_of(mi->data)->size);
    }
    return status;
}

memrt_status_t memrt__resizable_try_shrink(memrt_meminfo_t *mi, size_t size)
{
    if (mi->data == NULL || !memrt__block_is_reserved(memrt__block_of(mi->data))) {
        return MEMRT_ENOTSUP;
    }
    if (size >= mi->size) {
        return MEMRT_OK;
    }
    if (!memrt__block_claim(mi)) {
        return MEMRT_EBUSY;
    }
    void *data = memrt__block_api_realloc(memrt__policy_of(mi), mi->data, size);
    if (data != NULL) { /* NULL: another holder has the data block */
        set_data(mi, memrt__block_of(data));
    }
    memrt__block_publish(mi);
    return data != NULL ? MEMRT_OK : MEMRT_EBUSY;
}

void memrt__resizable_free(memrt_meminfo_t *mi, void *data)
{
    if (data == mi->data) {
        memrt__block_set_data(mi, NULL, 0);
    }
    memrt__block_api_free(memrt__policy_of(mi), data, 0);
}
