#include "api/verify_meminfo.h"

#include "runtime/base/check.h"
#include "runtime/meminfo/block_check.h"
#include "runtime/meminfo/block_layout.h"
#include "runtime/meminfo/meminfo.h"
#include "runtime/meminfo/references.h"
#include "runtime/observe/address_hint.h"
#include "runtime/observe/call_stack.h"
#include "runtime/observe/live_set.h"
#include "runtime/observe/sites.h"
#include "runtime/policy/policy_allocators.h"

/// Format and arguments for a name in quotes, followed by the text `then`. An empty name prints
/// nothing.
#define NAMED "%s%s%s"
#define NAME_OF(name, then)                                                                        \
    (name)[0] == '\0' ? "" : "\"", (name), (name)[0] == '\0' ? "" : "\"" then

/// Abort: the object at `what` was freed already. `removed` describes the object.
static _Noreturn void refuse_freed_object(const char *call, const void *what,
                                          const memrt__live_removed_t *removed)
{
    char stacks[MEMRT__CALL_STACKS_TEXT];
    memrt__policy_explain_dead(removed->key, stacks, sizeof(stacks));
    memrt__abort("%s of %p (" NAMED
                 "%zu bytes at %p, policy %s): the buffer must be live, but was freed: "
                 "released more often than acquired, or used after the last release%s",
                 call, what, NAME_OF(removed->name, ", "), removed->size, (void *)removed->data,
                 removed->policy, stacks);
}

/// Abort: no live object is at `what`. The message describes a freed object or poison bytes, where
/// known. `key` is the address of the MemInfo that belongs to `what`.
static _Noreturn void refuse_unknown_address(const char *call, const void *what, uintptr_t key)
{
    char stacks[MEMRT__CALL_STACKS_TEXT];
    memrt__live_removed_t removed;
    const char *poison = memrt__address_hint((uintptr_t)what);
    if (poison == NULL && memrt__live_find_removed(key, &removed)) {
        refuse_freed_object(call, what, &removed);
    }
    bool freed =
        poison == NULL && memrt__policy_explain_dead((uintptr_t)what, stacks, sizeof(stacks));
    memrt__abort("%s of %p: no live buffer of memrt is at the address%s%s%s", call, what,
                 poison == NULL ? "" : "; the address is ", poison == NULL ? "" : poison,
                 freed ? stacks : "");
}

_Noreturn void memrt__refuse_meminfo(const char *call, const memrt_meminfo_t *mi, const char *why)
{
    char text[256], stacks[MEMRT__CALL_STACKS_TEXT];
    memrt__meminfo_dump(mi, text, sizeof(text));
    memrt__block_explain(mi, stacks, sizeof(stacks));
    memrt__abort("%s of %s: %s%s", call, text, why, stacks);
}

static void copy_site(const memrt__live_entry_t *entry, void *context)
{
    *(uint32_t *)context = entry->site;
}

/// Abort: the header of `mi` was overwritten. The live set knows the interpreter calls of the
/// allocation; a damaged header does not lead to the record with the native calls.
static _Noreturn void refuse_damaged_header(const char *call, const memrt_meminfo_t *mi)
{
    char name[MEMRT_NAME_MAX + 1], lines[MEMRT__CALL_STACK_TEXT];
    uint32_t site = 0;
    memrt__live_name((uintptr_t)mi, name);
    memrt__live_visit((uintptr_t)mi, copy_site, &site);
    size_t used = memrt__site_text(site, lines, sizeof(lines));
    memrt__abort("%s of MemInfo %p%s" NAMED ": the header was overwritten, as by a write before "
                 "the start of the data at %p; the damaged header reads %zu bytes at %p%s%.*s",
                 call, (const void *)mi, name[0] == '\0' ? "" : " ", NAME_OF(name, ""),
                 (const void *)((const char *)mi + MEMRT_HEADER_SIZE), mi->size, mi->data,
                 used == 0 ? "" : "\n  allocated at\n", used == 0 ? 0 : (int)used - 1, lines);
}

/// Abort if the header of `mi` was overwritten.
static void verify_header(const char *call, const memrt_meminfo_t *mi)
{
    if (!memrt__block_is_sound(mi)) {
        refuse_damaged_header(call, mi);
    }
}

void memrt__verify_redzones(const char *call, const memrt_meminfo_t *mi)
{
    char fault[128];
    if (memrt__block_fault(mi, fault, sizeof(fault))) {
        memrt__refuse_meminfo(call, mi, fault);
    }
}

void memrt__verify_meminfo(const char *call, const memrt_meminfo_t *mi)
{
    if (!memrt__live_contains((uintptr_t)mi)) {
        refuse_unknown_address(call, mi, (uintptr_t)mi);
    }
    verify_header(call, mi);
}

void memrt__verify_held_meminfo(const char *call, const memrt_meminfo_t *mi)
{
    memrt__verify_meminfo(call, mi);
    if (memrt__meminfo_refcount(mi) == 0) {
        memrt__refuse_meminfo(
            call, mi,
            "the reference count must be at least 1, got 0: the last reference was released "
            "before");
    }
}

const memrt_meminfo_t *memrt__verify_data(const char *call, const void *data)
{
    const memrt_meminfo_t *mi = memrt__block_of(data);
    if (!memrt__live_contains((uintptr_t)mi)) {
        refuse_unknown_address(call, data, (uintptr_t)mi);
    }
    memrt__verify_held_meminfo(call, mi);
    return mi;
}

void memrt__verify_block(const char *call, const void *data)
{
    const memrt_meminfo_t *mi = memrt__verify_data(call, data);
    if (mi->kind != MEMRT_KIND_BLOCK) {
        memrt__refuse_meminfo(
            call, mi,
            "the buffer must be a block, but was allocated as a MemInfo: release the MemInfo");
    }
    memrt__verify_redzones(call, mi);
}

/// Abort unless `mi` counts as a MemInfo: a block may be released only after its MemInfo was
/// requested. Otherwise the block must be freed by block_free.
static void verify_meminfo_was_requested(const char *call, const memrt_meminfo_t *mi)
{
    if ((memrt__flags_load_relaxed(&mi->flags) & MEMRT__FLAG_MEMINFO) == 0) {
        memrt__refuse_meminfo(
            call, mi, "the MemInfo of the block was never requested: free the block by block_free");
    }
}

void memrt__verify_resizable_meminfo(const char *call, const memrt_meminfo_t *mi)
{
    memrt__verify_meminfo(call, mi);
    if (mi->kind != MEMRT_KIND_RESIZABLE) {
        memrt__refuse_meminfo(call, mi, "the MemInfo must be resizable");
    }
}

void memrt__verify_release(const char *call, const memrt_meminfo_t *mi)
{
    memrt__verify_held_meminfo(call, mi);
    verify_meminfo_was_requested(call, mi);
    memrt__verify_redzones(call, mi);
}
