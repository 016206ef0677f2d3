#include "runtime/meminfo/named.h"

#include "runtime/observe/named_refs.h"

static bool is_valid_holder(memrt_holder_kind_t kind, const char *name)
{
    return (kind == MEMRT_HOLDER_REFERENCE || kind == MEMRT_HOLDER_EXPORT) && name != NULL &&
           name[0] != '\0' && memrt__is_name(name);
}

static bool has_named_references(const memrt_meminfo_t *mi)
{
    return (memrt__flags_load_relaxed(&mi->flags) & MEMRT__FLAG_HELD) != 0;
}

bool memrt__named_note(memrt_meminfo_t *mi, memrt_holder_kind_t kind, const char *name)
{
    MEMRT__ASSERT(name[0] != '\0' && memrt__is_name(name));
    bool noted = memrt__named_refs_add((uintptr_t)mi, kind, name);
    if (noted) {
        memrt__flags_set_relaxed(&mi->flags, MEMRT__FLAG_HELD);
        if (kind == MEMRT_HOLDER_EXPORT) {
            memrt__tally_t tally = memrt__tally(&memrt__policy_of(mi)->account);
            memrt__tally_in(&tally, &tally.shard->exported_in, 1);
        }
    }
    return noted;
}

memrt_status_t memrt__named_acquire(memrt_meminfo_t *mi, memrt_holder_kind_t kind, const char *name)
{
    if (!is_valid_holder(kind, name)) {
        return MEMRT_EINVAL;
    }
    if (!memrt__named_note(mi, kind, name)) {
        return MEMRT_ENOMEM;
    }
    memrt__meminfo_acquire(mi);
    return MEMRT_OK;
}

bool memrt__named_drop(memrt_meminfo_t *mi, memrt_holder_kind_t kind, const char *name)
{
    bool dropped = name != NULL && has_named_references(mi) &&
                   memrt__named_refs_remove((uintptr_t)mi, kind, name);
    if (dropped && kind == MEMRT_HOLDER_EXPORT) {
        memrt__tally_t tally = memrt__tally(&memrt__policy_of(mi)->account);
        memrt__tally_out(&tally, &tally.shard->exported_out, 1);
    }
    return dropped;
}

void memrt__named_release(memrt_meminfo_t *mi, memrt_holder_kind_t kind, const char *name)
{
    (void)memrt__named_drop(mi, kind, name);
    memrt__meminfo_release(mi);
}

size_t memrt__named_holders(const memrt_meminfo_t *mi, memrt_holder_t *rows, size_t row_size,
                            size_t room)
{
    return has_named_references(mi) ? memrt__named_refs_list((uintptr_t)mi, rows, row_size, room)
                                    : 0;
}
