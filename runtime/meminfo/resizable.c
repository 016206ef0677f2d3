#include "runtime/meminfo/resizable.h"

#include "runtime/meminfo/raw.h"

/// The alignment that was asked for stands in the header and holds for every data block.
static memrt_meminfo_t *unborn_data(const memrt_meminfo_t *mi, size_t size, bool zeroed)
{
    memrt__block_request_t request = {.policy = memrt__policy_of(mi),
                                      .size = size,
                                      .alignment = (size_t)1 << mi->align_log2,
                                      .kind = MEMRT_KIND_BLOCK,
                                      .zeroed = zeroed,
                                      .part = true,
                                      .birth = memrt__tracking_part()};
    return memrt__block_new(&request);
}

static void *set_data(memrt_meminfo_t *mi, const memrt_meminfo_t *data)
{
    memrt__block_set_data(mi, data->data, data->size);
    return mi->data;
}

/// The short way, for what needs nothing that can fail after its two blocks are there. NULL: not
/// open.
static memrt_meminfo_t *new_plain(size_t size, const memrt_new_options_t *options)
{
    if (options->name != NULL || options->alignment != 0 || options->zeroed) {
        return NULL;
    }
    memrt_meminfo_t *mi =
        memrt__header_new_quick(memrt__policy_here(options->policy), MEMRT_KIND_RESIZABLE);
    if (mi == NULL) {
        return NULL;
    }
    memrt_meminfo_t *data =
        memrt__block_new_plain(memrt__policy_here(options->policy), size, MEMRT_KIND_BLOCK);
    if (data == NULL) {
        memrt__header_undo_quick(mi);
        return NULL;
    }
    data->flags |= MEMRT__FLAG_PART;
    memrt__meminfo_dress_plainly(mi, options);
    set_data(mi, data);
    return mi;
}

memrt_status_t memrt__resizable_new(size_t size, const memrt_new_options_t *options,
                                    memrt_meminfo_t **out)
{
    memrt_new_options_t room;
    const memrt_new_options_t *all;
    memrt_status_t status = memrt__meminfo_options(options, &room, &all);
    if (status != MEMRT_OK) {
        return status;
    }
    if (all->external != NULL) {
        return MEMRT_EINVAL;
    }
    memrt__birth_t birth = memrt__tracking_birth(size);
    memrt_meminfo_t *plain = birth.share != 0 ? NULL : new_plain(size, all);
    if (plain != NULL) {
        *out = plain;
        return MEMRT_OK;
    }
    memrt__block_request_t request = {.policy = memrt__policy_here(all->policy),
                                      .alignment = all->alignment,
                                      .kind = MEMRT_KIND_RESIZABLE,
                                      .behind = size,
                                      .birth = birth};
    memrt_meminfo_t *mi = memrt__block_new(&request);
    if (mi == NULL) {
        return MEMRT_ENOMEM;
    }
    memrt_meminfo_t *data = unborn_data(mi, size, all->zeroed != 0);
    if (data == NULL) {
        status = MEMRT_ENOMEM;
        goto discard_header;
    }
    status = memrt__meminfo_dress(mi, all);
    if (status != MEMRT_OK) {
        goto discard_data;
    }
    set_data(mi, memrt__block_born(data, birth.site));
    *out = memrt__block_born(mi, birth.site);
    return MEMRT_OK;

discard_data:
    memrt__block_discard(data);
discard_header:
    memrt__block_discard(mi);
    return status;
}

void *memrt__resizable_alloc(memrt_meminfo_t *mi, size_t size)
{
    memrt_meminfo_t *data = unborn_data(mi, size, false);
    if (data == NULL) {
        return NULL;
    }
    if (mi->data != NULL) { /* the caller's from now on */
        memrt__flags_clear_relaxed(&memrt__block_of(mi->data)->flags, MEMRT__FLAG_PART);
    }
    return set_data(mi, memrt__block_born(data, memrt__tracking_traced_site()));
}

void *memrt__resizable_realloc(memrt_meminfo_t *mi, size_t size)
{
    if (mi->data == NULL) {
        return memrt__resizable_alloc(mi, size);
    }
    void *data = memrt__raw_realloc(memrt__policy_of(mi), mi->data, size);
    if (data == NULL) {
        return NULL;
    }
    memrt__flags_set_relaxed(&memrt__block_of(data)->flags, MEMRT__FLAG_PART);
    return set_data(mi, memrt__block_of(data));
}

void memrt__resizable_free(memrt_meminfo_t *mi, void *data)
{
    if (data == mi->data) {
        memrt__block_set_data(mi, NULL, 0);
    }
    memrt__raw_free(memrt__policy_of(mi), data, 0);
}
