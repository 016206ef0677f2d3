#include "runtime/meminfo/block.h"

#include <string.h>

#include "runtime/alloc/guard.h"
#include "runtime/base/check.h"
#include "runtime/base/failure.h"
#include "runtime/base/os.h"
#include "runtime/base/size.h"
#include "runtime/debug/holders.h"
#include "runtime/debug/live.h"
#include "runtime/debug/site.h"
#include "runtime/meminfo/tiny.h"
#include "runtime/meminfo/traced.h"

_Static_assert(sizeof(memrt_meminfo_t) == MEMRT_HEADER_SIZE, "the header is one line");
_Static_assert(offsetof(memrt_meminfo_t, refct) == 0, "compiled code counts at 0");
_Static_assert(offsetof(memrt_meminfo_t, dtor) == 8, "NRT's second word");
_Static_assert(offsetof(memrt_meminfo_t, dtor_info) == 16, "NRT's third word");
_Static_assert(offsetof(memrt_meminfo_t, data) == 24, "compiled code reads data at 24");
_Static_assert(offsetof(memrt_meminfo_t, size) == 32, "NRT's fifth word");
_Static_assert(offsetof(memrt_meminfo_t, external_allocator) == 40, "NRT's sixth word");
_Static_assert(MEMRT__ACCOUNTS <= UINT16_MAX + 1u, "an index fits the header");

static const memrt_watcher_t *watcher;

/// Where in a block things lie.
typedef struct layout {
    size_t lead;  ///< from the start to the data
    size_t align; ///< of start and data
    size_t bytes; ///< of the whole block
} layout_t;

/// False: the size overflows.
static bool lay_out(memrt_kind_t kind, size_t size, size_t alignment, layout_t *out)
{
    out->align = memrt__size_max(alignment, MEMRT_ALIGN_MIN);
    if (!memrt__has_data(kind)) {
        out->lead = out->bytes = MEMRT_HEADER_SIZE;
        return true;
    }
    if (size >= MEMRT__LARGE) {
        out->align = memrt__size_max(out->align, memrt__os_page_size());
    }
    out->lead = out->align;
    if (!memrt__size_add(out->lead, memrt__size_max(size, 1), &out->bytes)) {
        return false;
    }
    return size < MEMRT__LARGE ||
           memrt__size_round_up(out->bytes, memrt__os_page_size(), &out->bytes);
}

/// The layout of a block that stands. `alignment` as it was asked for gives the same again.
static layout_t layout_of(const memrt_meminfo_t *mi)
{
    layout_t layout;
    bool fits = lay_out((memrt_kind_t)mi->kind, mi->size, (size_t)1 << mi->align_log2, &layout);
    MEMRT__ASSERT(fits);
    (void)fits;
    if (mi->external_allocator != NULL) {
        layout.bytes += layout.align;
    }
    return layout;
}

bool memrt__block_is_sound(const memrt_meminfo_t *mi)
{
    unsigned known = MEMRT__FLAG_MEMINFO | MEMRT__FLAG_LISTED | MEMRT__FLAG_WATCHED |
                     MEMRT__FLAG_READONLY | MEMRT__FLAG_PART | MEMRT__FLAG_QUICK |
                     MEMRT__FLAG_PROMOTED | MEMRT__FLAG_TINY | MEMRT__FLAG_CLASS |
                     MEMRT__FLAG_HELD | MEMRT__FLAG_DEVICE | MEMRT__FLAG_TRACED;
    unsigned flags = memrt__flags_load_relaxed(&mi->flags);
    bool kinds = mi->kind >= MEMRT_KIND_INLINE && mi->kind <= MEMRT_KIND_BLOCK &&
                 mi->align_log2 <= memrt__log2(MEMRT_ALIGN_MAX);
    layout_t layout;
    return kinds && (flags & ~known) == 0 && (flags & MEMRT__FLAG_LISTED) != 0 &&
           mi->policy < MEMRT__ACCOUNTS && memrt__policies[mi->policy] != NULL &&
           (!memrt__has_data((memrt_kind_t)mi->kind) || (flags & MEMRT__FLAG_TINY) != 0 ||
            memrt__block_of(mi->data) == mi) &&
           lay_out((memrt_kind_t)mi->kind, mi->size, (size_t)1 << mi->align_log2, &layout) &&
           (mi->external_allocator != NULL || mi->lead == layout.lead);
}

/// Where the guarded block starts that a header stands in. NULL: no guard made it.
static const char *guarded_start(const memrt_meminfo_t *mi)
{
    if (mi->external_allocator != NULL || !memrt__is_guard(&memrt__policy_of(mi)->allocator)) {
        return NULL;
    }
    return (const char *)mi + MEMRT_HEADER_SIZE - mi->lead;
}

bool memrt__block_fault(const memrt_meminfo_t *mi, char *text, size_t length)
{
    const char *start = guarded_start(mi);
    if (start == NULL) {
        return false;
    }
    layout_t layout = layout_of(mi);
    return memrt__guard_fault(start, layout.bytes, layout.align, text, length);
}

void memrt__block_tell(const memrt_meminfo_t *mi, char *text, size_t length)
{
    const char *start = guarded_start(mi);
    text[0] = '\0';
    if (start != NULL) {
        memrt__guard_tell(start, text, length);
    }
}

/// An external allocator aligns to nothing in particular: ask for more and place the data inside.
static char *obtain_external(const memrt__block_request_t *request, layout_t *layout)
{
    size_t bytes;
    if (!memrt__size_add(layout->bytes, layout->align, &bytes)) {
        return NULL;
    }
    char *start = request->external->malloc(bytes, request->external->opaque_data);
    if (start == NULL) {
        return NULL;
    }
    size_t shift = (size_t)(-(uintptr_t)start & (layout->align - 1));
    layout->lead += shift;
    layout->bytes = bytes;
    if (request->zeroed) {
        memset(start + layout->lead, 0, request->size);
    }
    return start;
}

static char *obtain(const memrt__block_request_t *request, layout_t *layout)
{
    if (memrt__failure_due()) {
        return NULL;
    }
    if (request->external != NULL) {
        return obtain_external(request, layout);
    }
    return memrt__allocator_alloc(&request->policy->allocator, layout->bytes, layout->align,
                                  request->zeroed);
}

static void give_back(memrt_meminfo_t *mi, size_t bytes, size_t align)
{
    char *start = (char *)mi + MEMRT_HEADER_SIZE - mi->lead;
    if (mi->external_allocator != NULL) {
        mi->external_allocator->free(start, mi->external_allocator->opaque_data);
    } else {
        memrt__allocator_free(&memrt__policy_of(mi)->allocator, start, bytes, align);
    }
}

/// Blocks that came the long way go back the short one where they can.
static unsigned flags_for(const memrt__block_request_t *request, const layout_t *layout)
{
    bool data = memrt__has_data(request->kind);
    bool quick = request->policy->quick && request->external == NULL &&
                 layout->align == MEMRT_HEADER_SIZE &&
                 (!data || memrt__is_quick_size(request->size));
    unsigned part = request->part ? MEMRT__FLAG_PART : 0;
    if (quick) {
        unsigned class = data ? memrt__class_of_data(request->size) : 0;
        return memrt__quick_flags(request->kind, class) | part;
    }
    return request->kind == MEMRT_KIND_BLOCK ? part : MEMRT__FLAG_MEMINFO;
}

static memrt_meminfo_t *write_header(char *start, const memrt__block_request_t *request,
                                     const layout_t *layout, size_t alignment)
{
    memrt_meminfo_t *mi = (memrt_meminfo_t *)(start + layout->lead - MEMRT_HEADER_SIZE);
    *mi = (memrt_meminfo_t){
        .refct = 0,
        .data = memrt__has_data(request->kind) ? start + layout->lead : NULL,
        .size = memrt__has_data(request->kind) ? request->size : 0,
        .external_allocator = request->external,
        .policy = (uint16_t)request->policy->account.index,
        .kind = (uint8_t)request->kind,
        .align_log2 = (uint8_t)memrt__log2(alignment),
        .lead = (uint32_t)layout->lead,
        .flags = flags_for(request, layout),
    };
    return mi;
}

/// What a block takes from its allocator beyond its header and data: of the ways of the pool's
/// caches nothing is known.
static size_t extra_of(const memrt_meminfo_t *mi, size_t bytes)
{
    size_t data = memrt__has_data((memrt_kind_t)mi->kind) ? mi->size : 0;
    return bytes - MEMRT_HEADER_SIZE - data;
}

static void count_birth(const memrt_meminfo_t *mi)
{
    memrt__tally_t tally = memrt__tally(&memrt__policy_of(mi)->account);
    memrt__tally_in(&tally, &tally.shard->made[mi->kind], 1);
    if ((memrt__flags_load_relaxed(&mi->flags) & MEMRT__FLAG_QUICK) == 0) {
        memrt__tally_in(&tally, &tally.shard->extra_in, extra_of(mi, layout_of(mi).bytes));
    }
    if (memrt__has_data((memrt_kind_t)mi->kind)) {
        memrt__tally_grow(&tally, mi->size);
        memrt__tally_size(&tally, mi->size);
    }
}

/// What is left to count of a block after its memory is gone.
typedef struct death {
    memrt__account_t *account;
    uint32_t index; ///< of the account
    const void *data;
    memrt_kind_t kind;
    bool promoted;
    size_t size, extra;
} death_t;

/// `freed` comes last: the policy may be gone after it.
static void count_death(const death_t *death)
{
    memrt__tally_t tally = memrt__tally(death->account);
    memrt__tally_out(&tally, &tally.shard->promoted_out, death->promoted);
    memrt__tally_out(&tally, &tally.shard->extra_out, death->extra);
    if (memrt__has_data(death->kind)) {
        memrt__tally_shrink(&tally, death->size);
    } else if (death->kind == MEMRT_KIND_ADOPTED) {
        memrt__tally_out(&tally, &tally.shard->adopted_out, death->size);
    }
    memrt__tally_out(&tally, &tally.shard->freed[death->kind], 1);
    if (death->kind != MEMRT_KIND_RESIZABLE) {
        memrt__probe_death(death->data, death->size, death->index, death->kind);
    }
}

void memrt__block_refused(memrt_policy_t *policy, size_t size)
{
    memrt__probe_failure(size, policy->account.index);
    if (memrt__trace_is_on()) {
        memrt__traced_failure(policy, size);
    }
    memrt__tally_t tally = memrt__tally(&policy->account);
    memrt__tally_in(&tally, &tally.shard->failed, 1);
}

static bool is_listed(const memrt_meminfo_t *mi)
{
    return (memrt__flags_load_relaxed(&mi->flags) & MEMRT__FLAG_LISTED) != 0;
}

/// Take a block out of the live set; what it was is remembered for who verifies pointers.
static void unlist(const memrt_meminfo_t *mi)
{
    memrt__live_trace_t trace = {
        .data = (uintptr_t)mi->data, .size = mi->size, .policy = memrt__policy_of(mi)->name};
    memrt__live_remove((uintptr_t)mi, memrt__options.check ? &trace : NULL);
}

bool memrt__block_set_name(memrt_meminfo_t *mi, const char *name)
{
    if (name == NULL && !is_listed(mi)) {
        return true;
    }
    if (!memrt__live_set_name((uintptr_t)mi, name)) {
        return false;
    }
    memrt__flags_set_relaxed(&mi->flags, MEMRT__FLAG_LISTED);
    return true;
}

/// Put an unborn block into the live set. False: no memory.
static bool list(memrt_meminfo_t *mi, const memrt__block_request_t *request)
{
    mi->flags |= MEMRT__FLAG_LISTED; /* nobody else knows the block yet */
    if (!memrt__live_insert((uintptr_t)mi, request->birth.site, request->birth.share)) {
        mi->flags &= ~MEMRT__FLAG_LISTED;
        return false;
    }
    memrt__site_count(request->birth.site, request->size + request->behind);
    return true;
}

/// An unborn block from what the thread keeps. NULL: the request needs more than that, as a part
/// does, which names its alignment.
static memrt_meminfo_t *take_kept(const memrt__block_request_t *request)
{
    memrt__thread_t *self = memrt__self;
    if (self == NULL || !request->policy->quick || !memrt__has_data(request->kind) ||
        !memrt__is_quick_size(request->size) || request->alignment != 0 || request->zeroed ||
        request->external != NULL || memrt__is_watched(MEMRT__WATCH_FAILURE)) {
        return NULL;
    }
    memrt_meminfo_t *mi = memrt__bin_pop(&self->bins[memrt__class_of_data(request->size)]);
    if (mi != NULL) {
        memrt__quick_write(mi, request->policy->account.index, request->size, request->kind, 0);
    }
    return mi;
}

/// The same from the allocator. NULL: out of memory.
static memrt_meminfo_t *make(const memrt__block_request_t *request)
{
    size_t alignment = request->alignment == 0 ? request->policy->alignment : request->alignment;
    layout_t layout;
    char *start = NULL;
    if (lay_out(request->kind, request->size, alignment, &layout)) {
        start = obtain(request, &layout);
    }
    return start == NULL ? NULL : write_header(start, request, &layout, alignment);
}

memrt_meminfo_t *memrt__block_new(const memrt__block_request_t *request)
{
    memrt_meminfo_t *mi = take_kept(request);
    mi = mi == NULL ? make(request) : mi;
    if (mi != NULL && request->birth.share != 0 && !list(mi, request)) {
        memrt__block_discard(mi);
        mi = NULL;
    }
    if (mi == NULL) {
        memrt__block_refused(request->policy, request->size);
    }
    return mi;
}

/// Hand a block that nobody else can hold to its holder. Partner of the release: the acquire in
/// try_acquire.
static memrt_meminfo_t *hold(memrt_meminfo_t *mi)
{
    memrt__store_release(&mi->refct, 1);
    return mi;
}

memrt_meminfo_t *memrt__block_born(memrt_meminfo_t *mi, uint32_t site)
{
    count_birth(mi);
    if (mi->kind != MEMRT_KIND_RESIZABLE) {
        memrt__probe_birth(mi->data, mi->size, mi->policy, mi->kind);
    }
    if (memrt__trace_is_on() && memrt__traced_birth(mi, site)) {
        memrt__flags_set_relaxed(&mi->flags, MEMRT__FLAG_TRACED);
    }
    return hold(mi);
}

void memrt__block_discard(memrt_meminfo_t *mi)
{
    if (is_listed(mi)) {
        unlist(mi);
    }
    layout_t layout = layout_of(mi);
    give_back(mi, layout.bytes, layout.align);
}

void memrt__block_promote(memrt_meminfo_t *mi)
{
    unsigned before = memrt__flags_set_relaxed(&mi->flags, MEMRT__FLAG_MEMINFO);
    if ((before & MEMRT__FLAG_MEMINFO) == 0) {
        memrt__tally_t tally = memrt__tally(&memrt__policy_of(mi)->account);
        memrt__tally_in(&tally, &tally.shard->promoted_in, 1);
        memrt__flags_set_relaxed(&mi->flags, MEMRT__FLAG_PROMOTED);
    }
}

/// The layout of a header alone, until it stands for the block.
#define KIND_HEADER MEMRT_KIND_ADOPTED

memrt_meminfo_t *memrt__block_new_tiny(memrt_policy_t *policy, void *data, size_t size)
{
    memrt__block_request_t request = {.policy = policy, .kind = KIND_HEADER};
    layout_t layout;
    char *start = NULL;
    if (lay_out(request.kind, 0, policy->alignment, &layout)) {
        start = obtain(&request, &layout);
    }
    if (start == NULL) {
        memrt__block_refused(policy, 0);
        return NULL;
    }
    memrt_meminfo_t *mi = write_header(start, &request, &layout, policy->alignment);
    mi->kind = MEMRT_KIND_BLOCK;
    mi->flags = MEMRT__FLAG_MEMINFO | MEMRT__FLAG_PROMOTED | MEMRT__FLAG_TINY;
    memrt__block_set_data(mi, data, size);
    mi->refct = 2;
    return mi;
}

void memrt__block_born_tiny(const memrt_meminfo_t *mi)
{
    memrt__tally_t tally = memrt__tally(&memrt__policy_of(mi)->account);
    memrt__tally_in(&tally, &tally.shard->promoted_in, 1);
    memrt__tally_in(&tally, &tally.shard->extra_in, MEMRT_HEADER_SIZE);
}

void memrt__block_discard_tiny(memrt_meminfo_t *mi)
{
    mi->kind = KIND_HEADER;
    layout_t layout = layout_of(mi);
    give_back(mi, layout.bytes, layout.align);
}

/// The header goes first: with the block, the policy may be gone.
static void delete_tiny(memrt_meminfo_t *mi)
{
    void *data = mi->data;
    memrt__tally_t tally = memrt__tally(&memrt__policy_of(mi)->account);
    memrt__tally_out(&tally, &tally.shard->promoted_out, 1);
    memrt__tally_out(&tally, &tally.shard->extra_out, MEMRT_HEADER_SIZE);
    memrt__block_discard_tiny(mi);
    memrt__tiny_end(data);
}

void memrt__watcher_set(const memrt_watcher_t *next)
{
    memrt__store_release((size_t *)&watcher, (size_t)next);
}

static const memrt_watcher_t *watcher_now(void)
{
    return (const memrt_watcher_t *)memrt__load_acquire((const size_t *)&watcher);
}

static void tell_death(const memrt_meminfo_t *mi)
{
    const memrt_watcher_t *now = watcher_now();
    if (now != NULL) {
        now->death(mi->data);
    }
}

static void tell_resize(void *old_data, const memrt_meminfo_t *mi)
{
    const memrt_watcher_t *now = watcher_now();
    if (now != NULL) {
        now->resize(old_data, mi->data, mi->size);
    }
}

/// Flags of what others know of a block by its address.
#define KNOWN_BY_OTHERS                                                                            \
    (MEMRT__FLAG_LISTED | MEMRT__FLAG_WATCHED | MEMRT__FLAG_HELD | MEMRT__FLAG_TRACED)

/// Holders that are noted still, of references that others gave up.
static void drop_names(const memrt_meminfo_t *mi)
{
    size_t exports = memrt__holders_forget((uintptr_t)mi);
    if (exports != 0) {
        memrt__tally_t tally = memrt__tally(&memrt__policy_of(mi)->account);
        memrt__tally_out(&tally, &tally.shard->exported_out, exports);
    }
}

static void part_from_others(memrt_meminfo_t *mi, unsigned flags)
{
    if ((flags & MEMRT__FLAG_WATCHED) != 0 && mi->data != NULL) {
        tell_death(mi);
    }
    if ((flags & MEMRT__FLAG_TRACED) != 0 && memrt__trace_is_on()) {
        memrt__traced_death(mi);
    }
    if ((flags & MEMRT__FLAG_HELD) != 0) {
        drop_names(mi);
    }
    if ((flags & MEMRT__FLAG_LISTED) != 0) {
        unlist(mi);
    }
}

void memrt__block_delete(memrt_meminfo_t *mi)
{
    unsigned flags = memrt__flags_load_relaxed(&mi->flags);
    if (MEMRT__UNLIKELY((flags & KNOWN_BY_OTHERS) != 0)) {
        part_from_others(mi, flags);
        mi->flags = flags & ~KNOWN_BY_OTHERS; /* nobody else knows the block any more */
        if (memrt__block_delete_quick(mi)) {
            return;
        }
    }
    if (MEMRT__UNLIKELY((flags & MEMRT__FLAG_TINY) != 0)) {
        delete_tiny(mi);
        return;
    }
    memrt__thread_t *self = memrt__thread_self();
    bool quick = (flags & MEMRT__FLAG_QUICK) != 0 && self != NULL;
    layout_t layout = {0};
    if (!quick) {
        layout = layout_of(mi);
    }
    death_t death = {
        .account = &memrt__policy_of(mi)->account,
        .index = mi->policy,
        .data = mi->data,
        .kind = (memrt_kind_t)mi->kind,
        .promoted = (flags & MEMRT__FLAG_PROMOTED) != 0,
        .size = mi->size,
        .extra = quick ? 0 : extra_of(mi, layout.bytes),
    };
    if (quick) {
        memrt__store_relaxed(&mi->refct, 0);
        memrt__cache_give(self, memrt__class_in(flags), mi);
    } else {
        give_back(mi, layout.bytes, layout.align);
    }
    count_death(&death);
}

/// Who is not listed can be found by nobody, so a count of one stays one. Acquire: what former
/// holders did before their release is done before the block moves.
bool memrt__block_claim(memrt_meminfo_t *mi)
{
    return is_listed(mi) ? memrt__cas_acquire(&mi->refct, 1, 0)
                         : memrt__load_acquire(&mi->refct) == 1;
}

/// A resize that keeps the block's place in everything but its address.
static memrt_meminfo_t *relocate(memrt_meminfo_t *mi, size_t size, layout_t *layout)
{
    memrt__block_request_t request = {.policy = memrt__policy_of(mi), .size = size};
    char *start = obtain(&request, layout);
    if (start == NULL) {
        return NULL;
    }
    memrt_meminfo_t *moved = (memrt_meminfo_t *)(start + layout->lead - MEMRT_HEADER_SIZE);
    memcpy(moved, mi, MEMRT_HEADER_SIZE + memrt__size_min(mi->size, size));
    moved->lead = (uint32_t)layout->lead;
    memrt__block_set_data(moved, start + layout->lead, size);
    bool listed = is_listed(mi);
    if (listed && !memrt__live_insert((uintptr_t)moved, 0, 0)) {
        memrt__allocator_free(&request.policy->allocator, start, layout->bytes, layout->align);
        return NULL;
    }
    layout_t old = layout_of(mi);
    if (listed) {
        memrt__live_inherit((uintptr_t)mi, (uintptr_t)moved);
        unlist(mi);
    }
    give_back(mi, old.bytes, old.align);
    return moved;
}

/// The allocator's own resize moves the header along with the data.
static memrt_meminfo_t *resize_in_allocator(memrt_meminfo_t *mi, const layout_t *old,
                                            const layout_t *layout, size_t size)
{
    if (memrt__failure_due()) {
        return NULL;
    }
    char *start = (char *)mi + MEMRT_HEADER_SIZE - mi->lead;
    start = memrt__allocator_realloc(&memrt__policy_of(mi)->allocator, start, old->bytes,
                                     layout->bytes, layout->align);
    if (start == NULL) {
        return NULL;
    }
    memrt_meminfo_t *moved = (memrt_meminfo_t *)(start + layout->lead - MEMRT_HEADER_SIZE);
    memrt__block_set_data(moved, start + layout->lead, size);
    return moved;
}

static void count_resize(const memrt_meminfo_t *mi, size_t old_size, size_t old_extra)
{
    memrt__tally_t tally = memrt__tally(&memrt__policy_of(mi)->account);
    memrt__tally_in(&tally, &tally.shard->realloc, 1);
    memrt__tally_in(&tally, &tally.shard->extra_in, extra_of(mi, layout_of(mi).bytes));
    memrt__tally_out(&tally, &tally.shard->extra_out, old_extra);
    if (mi->size > old_size) {
        memrt__tally_grow(&tally, mi->size - old_size);
    } else {
        memrt__tally_shrink(&tally, old_size - mi->size);
    }
}

/// The class that a quick block says it is of is that of its size.
static void renew_class(memrt_meminfo_t *mi)
{
    unsigned flags = memrt__flags_load_relaxed(&mi->flags);
    if ((flags & MEMRT__FLAG_QUICK) == 0) {
        return;
    }
    memrt__flags_clear_relaxed(&mi->flags, MEMRT__FLAG_QUICK | MEMRT__FLAG_CLASS);
    if (memrt__is_quick_size(mi->size)) {
        unsigned class = memrt__class_of_data(mi->size);
        memrt__flags_set_relaxed(&mi->flags, MEMRT__FLAG_QUICK | class << MEMRT__FLAG_CLASS_AT);
    }
}

/// To another class: header and data move, the old block goes to the cache. NULL: the bin of the
/// new class is empty.
static memrt_meminfo_t *move_quick(memrt__thread_t *self, memrt_meminfo_t *mi, unsigned class,
                                   size_t size)
{
    memrt_meminfo_t *moved = memrt__bin_pop(&self->bins[class]);
    if (moved == NULL) {
        return NULL;
    }
    unsigned old_class = memrt__class_in(mi->flags);
    memcpy(moved, mi, MEMRT_HEADER_SIZE + memrt__size_min(mi->size, size));
    moved->data = moved + 1;
    moved->flags = (moved->flags & ~MEMRT__FLAG_CLASS) | class << MEMRT__FLAG_CLASS_AT;
    memrt__store_relaxed(&mi->refct, 0);
    memrt__cache_give(self, old_class, mi);
    return moved;
}

memrt_meminfo_t *memrt__block_resize_quick(memrt_meminfo_t *mi, size_t size)
{
    unsigned flags = memrt__flags_load_relaxed(&mi->flags);
    memrt__thread_t *self = memrt__self;
    if ((flags & (MEMRT__FLAG_QUICK | KNOWN_BY_OTHERS)) != MEMRT__FLAG_QUICK || self == NULL ||
        !memrt__is_quick_size(size) || memrt__is_watched(MEMRT__WATCH_SLOWLY)) {
        return NULL;
    }
    memrt__account_t *account = &memrt__policy_of(mi)->account;
    memrt__shard_t *shard = memrt__thread_shard(self, account->index);
    unsigned class = memrt__class_of_data(size);
    const void *old_data = mi->data;
    size_t old_size = mi->size;
    if (shard != NULL && class != memrt__class_in(flags)) {
        mi = move_quick(self, mi, class, size);
    }
    if (shard == NULL || mi == NULL) {
        return NULL;
    }
    mi->size = size;
    memrt__count_in(&shard->realloc, 1);
    if (size > old_size) {
        memrt__shard_grow(shard, account, size - old_size);
    } else {
        memrt__shard_shrink(shard, account, old_size - size);
    }
    memrt__probe_resize(old_data, mi->data, old_size, size);
    return mi;
}

/// A claimed block is held by who claimed it alone: what is noted of others is left over.
static void forget_holders(memrt_meminfo_t *mi)
{
    if ((memrt__flags_load_relaxed(&mi->flags) & MEMRT__FLAG_HELD) != 0) {
        drop_names(mi);
        memrt__flags_clear_relaxed(&mi->flags, MEMRT__FLAG_HELD);
    }
}

memrt_meminfo_t *memrt__block_resize(memrt_meminfo_t *mi, size_t size)
{
    MEMRT__ASSERT(mi->external_allocator == NULL && memrt__has_data((memrt_kind_t)mi->kind));
    void *old_data = mi->data;
    size_t old_size = mi->size;
    memrt_policy_t *policy = memrt__policy_of(mi);
    forget_holders(mi);
    layout_t old = layout_of(mi);
    size_t old_extra = extra_of(mi, old.bytes);
    layout_t layout;
    memrt_meminfo_t *moved = NULL;
    if (lay_out((memrt_kind_t)mi->kind, size, (size_t)1 << mi->align_log2, &layout)) {
        moved = is_listed(mi) || layout.lead != old.lead
                    ? relocate(mi, size, &layout)
                    : resize_in_allocator(mi, &old, &layout, size);
    }
    if (moved == NULL) {
        hold(mi);
        memrt__block_refused(policy, size);
        return NULL;
    }
    renew_class(moved);
    count_resize(moved, old_size, old_extra);
    memrt__probe_resize(old_data, moved->data, old_size, size);
    unsigned flags = memrt__flags_load_relaxed(&moved->flags);
    if ((flags & MEMRT__FLAG_WATCHED) != 0) {
        tell_resize(old_data, moved);
    }
    if ((flags & MEMRT__FLAG_TRACED) != 0 && memrt__trace_is_on()) {
        memrt__traced_resize(moved);
    }
    return hold(moved);
}
