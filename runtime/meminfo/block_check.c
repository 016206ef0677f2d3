#include "runtime/meminfo/block_check.h"

#include "runtime/alloc/guard/guard.h"
#include "runtime/base/size.h"
#include "runtime/meminfo/block_layout.h"
#include "runtime/policy/policy.h"

bool memrt__block_is_sound(const memrt_meminfo_t *mi)
{
    unsigned known = MEMRT__FLAG_KNOWN | MEMRT__FLAG_MEMINFO | MEMRT__FLAG_READONLY |
                     MEMRT__FLAG_DATA_BLOCK | MEMRT__FLAG_FAST | MEMRT__FLAG_PROMOTED |
                     MEMRT__FLAG_TINY | MEMRT__FLAG_BARE | MEMRT__FLAG_DEVICE |
                     MEMRT__FLAG_RESERVED | MEMRT__FLAG_WEAK | MEMRT__FLAG_FROZEN;
    unsigned flags = memrt__flags_load_relaxed(&mi->flags);
    bool kinds = mi->kind >= MEMRT_KIND_INLINE && mi->kind <= MEMRT_KIND_BLOCK &&
                 mi->align_log2 <= memrt__log2(MEMRT_ALIGN_MAX);
    memrt__block_layout_t layout;
    return kinds && (flags & ~known) == 0 && (flags & MEMRT__FLAG_LISTED) != 0 &&
           ((flags & MEMRT__FLAG_TRACED) != 0 || mi->bin == memrt__block_bin(mi)) &&
           mi->policy < MEMRT__ACCOUNTS && memrt__policies[mi->policy] != NULL &&
           (!memrt__has_data((memrt_kind_t)mi->kind) || (flags & MEMRT__FLAG_TINY) != 0 ||
            memrt__block_of(mi->data) == mi || memrt__load_relaxed(&mi->refct) == 0) &&
           memrt__block_shift_of(mi) % MEMRT__HEADER_ALIGN == 0 &&
           memrt__block_layout_resize(mi, mi->size, &layout) &&
           (mi->external_allocator != NULL || mi->lead == layout.lead);
}

/// Return the start of the guarded block around a header. NULL: no guard allocated the block.
static const char *find_guarded_start(const memrt_meminfo_t *mi)
{
    bool own = mi->external_allocator == NULL && !memrt__block_is_reserved(mi);
    if (!own || !memrt__is_guard(&memrt__policy_of(mi)->allocator)) {
        return NULL;
    }
    return memrt__block_start(mi);
}

bool memrt__block_fault(const memrt_meminfo_t *mi, char *text, size_t length)
{
    const char *start = find_guarded_start(mi);
    if (start == NULL) {
        return false;
    }
    memrt__block_layout_t layout = memrt__block_layout_of(mi);
    return memrt__guard_fault(start, layout.bytes, layout.align, text, length);
}

void memrt__block_explain(const memrt_meminfo_t *mi, char *text, size_t length)
{
    const char *start = find_guarded_start(mi);
    text[0] = '\0';
    if (start != NULL) {
        memrt__guard_explain(start, text, length);
    }
}
