#include <pthread.h>
#include <stdio.h>

#include <memrt/arrow.h>
#include <memrt/dlpack.h>

#include "api/table.h"
#include "runtime/base/check.h"
#include "runtime/base/place.h"
#include "runtime/base/poison.h"
#include "runtime/debug/live.h"
#include "runtime/meminfo/meminfo.h"
#include "runtime/meminfo/named.h"

/// The checking table: every MemInfo, block and policy that comes in is verified against the live
/// set, which under checking knows all of them. What is wrong ends the process with one line that
/// names the call and the object.

static const memrt_api_t *const plain = &memrt__plain_table;

/// "NAME", or nothing, and what follows it.
#define NAMED "%s%s%s"
#define NAME_OF(name, then)                                                                        \
    (name)[0] == '\0' ? "" : "\"", (name), (name)[0] == '\0' ? "" : "\"" then

static _Noreturn void refuse_dead(const char *call, const void *what,
                                  const memrt__live_left_t *left)
{
    char places[MEMRT__PLACES_TEXT];
    memrt__policy_tell_dead(left->key, places, sizeof(places));
    memrt__abort("%s of %p (" NAMED "%zu bytes at %p, policy %s): it is dead already; it was "
                 "released more often than acquired, or used after its last release%s",
                 call, what, NAME_OF(left->name, ", "), left->size, (void *)left->data,
                 left->policy, places);
}

static _Noreturn void refuse_stranger(const char *call, const void *what, uintptr_t key)
{
    char places[MEMRT__PLACES_TEXT];
    memrt__live_left_t left;
    const char *poison = memrt__poison_text((uintptr_t)what);
    if (poison == NULL && memrt__live_left(key, &left)) {
        refuse_dead(call, what, &left);
    }
    bool freed = poison == NULL && memrt__policy_tell_dead((uintptr_t)what, places, sizeof(places));
    memrt__abort("%s of %p: memrt made nothing that is alive at that address%s%s%s", call, what,
                 poison == NULL ? "" : "; it is ", poison == NULL ? "" : poison,
                 freed ? places : "");
}

/// Of a MemInfo whose header can be read.
static _Noreturn void refuse(const char *call, const memrt_meminfo_t *mi, const char *why)
{
    char text[256], places[MEMRT__PLACES_TEXT];
    memrt__meminfo_dump(mi, text, sizeof(text));
    memrt__block_tell(mi, places, sizeof(places));
    memrt__abort("%s of %s: %s%s", call, text, why, places);
}

static void verify_header(const char *call, const memrt_meminfo_t *mi)
{
    if (!memrt__block_is_sound(mi)) {
        char name[MEMRT_NAME_MAX + 1];
        memrt__live_name((uintptr_t)mi, name);
        memrt__abort("%s of MemInfo %p%s" NAMED
                     ": its header was overwritten, as by a write before "
                     "the start of its data at %p; what is left of it says %zu bytes at %p",
                     call, (const void *)mi, name[0] == '\0' ? "" : " ", NAME_OF(name, ""),
                     (const void *)((const char *)mi + MEMRT_HEADER_SIZE), mi->size, mi->data);
    }
}

/// The fences around a block that may die now: later the guard alone would find the damage, which
/// knows no names.
static void verify_bounds(const char *call, const memrt_meminfo_t *mi)
{
    char fault[128];
    if (memrt__block_fault(mi, fault, sizeof(fault))) {
        refuse(call, mi, fault);
    }
}

/// `mi` is one that memrt made and that has not been deleted.
static void verify_made(const char *call, const memrt_meminfo_t *mi)
{
    if (!memrt__live_contains((uintptr_t)mi)) {
        refuse_stranger(call, mi, (uintptr_t)mi);
    }
    verify_header(call, mi);
}

/// `mi` is alive: somebody holds it.
static void verify(const char *call, const memrt_meminfo_t *mi)
{
    verify_made(call, mi);
    if (memrt__meminfo_refcount(mi) == 0) {
        refuse(call, mi, "it is dying, nobody holds it any more");
    }
}

static void verify_block(const char *call, const void *data)
{
    const memrt_meminfo_t *mi = memrt__block_of(data);
    if (!memrt__live_contains((uintptr_t)mi)) {
        refuse_stranger(call, data, (uintptr_t)mi);
    }
    verify(call, mi);
    if (mi->kind != MEMRT_KIND_BLOCK) {
        refuse(call, mi, "it was not made as a block, release the MemInfo");
    }
    verify_bounds(call, mi);
}

/// A block's MemInfo is released by who asked for it; the block itself is freed.
static void verify_is_meminfo(const char *call, const memrt_meminfo_t *mi)
{
    if ((memrt__flags_load_relaxed(&mi->flags) & MEMRT__FLAG_MEMINFO) == 0) {
        refuse(call, mi, "nobody asked for its MemInfo: it is a block, give it to block_free");
    }
}

static void verify_resizable(const char *call, const memrt_meminfo_t *mi)
{
    verify_made(call, mi);
    if (mi->kind != MEMRT_KIND_RESIZABLE) {
        refuse(call, mi, "it is not resizable");
    }
}

static void verify_policy(const char *call, const memrt_policy_t *policy)
{
    if (!memrt__policy_is_held(policy)) {
        memrt__abort(
            "%s of %p: no policy of memrt's lives at that address that anybody holds; it was "
            "released more often than acquired, or never was one",
            call, (const void *)policy);
    }
}

static void checked_acquire(memrt_meminfo_t *mi)
{
    verify("acquire", mi);
    plain->acquire(mi);
}

static void verify_release(const char *call, const memrt_meminfo_t *mi)
{
    verify(call, mi);
    verify_is_meminfo(call, mi);
    verify_bounds(call, mi);
}

static void checked_release(memrt_meminfo_t *mi)
{
    verify_release("release", mi);
    plain->release(mi);
}

/// Asked of what is not alive; what is known to be dead, or to be no address, is not read.
static bool is_probe(const memrt_meminfo_t *mi)
{
    memrt__live_left_t left;
    return !memrt__live_contains((uintptr_t)mi) && !memrt__live_left((uintptr_t)mi, &left) &&
           memrt__poison_text((uintptr_t)mi) == NULL && memrt__is_probe(mi);
}

static void *checked_get_data(memrt_meminfo_t *mi)
{
    if (is_probe(mi)) {
        return (void *)(uintptr_t)memrt__checking_table();
    }
    verify_made("get_data", mi);
    return plain->get_data(mi);
}

static int checked_try_acquire(memrt_meminfo_t *mi)
{
    verify_made("try_acquire", mi);
    return plain->try_acquire(mi);
}

static void checked_call_dtor(memrt_meminfo_t *mi)
{
    verify_made("call_dtor", mi);
    if (memrt__meminfo_refcount(mi) != 0) {
        refuse("call_dtor", mi, "its count must be zero");
    }
    verify_bounds("call_dtor", mi);
    plain->call_dtor(mi);
}

static size_t checked_refcount(const memrt_meminfo_t *mi)
{
    verify_made("refcount", mi);
    return plain->refcount(mi);
}

static size_t checked_size(const memrt_meminfo_t *mi)
{
    verify_made("size", mi);
    return plain->size(mi);
}

static void *checked_dtor_info(const memrt_meminfo_t *mi)
{
    verify_made("dtor_info", mi);
    return plain->dtor_info(mi);
}

static int checked_readonly(const memrt_meminfo_t *mi)
{
    verify_made("readonly", mi);
    return plain->readonly(mi);
}

static memrt_external_allocator_t *checked_external_allocator(const memrt_meminfo_t *mi)
{
    verify_made("external_allocator", mi);
    return plain->external_allocator(mi);
}

static memrt_status_t checked_set_name(memrt_meminfo_t *mi, const char *name)
{
    verify("set_name", mi);
    return plain->set_name(mi, name);
}

static void checked_get_name(const memrt_meminfo_t *mi, char *buffer)
{
    verify_made("get_name", mi);
    plain->get_name(mi, buffer);
}

static size_t checked_dump(const memrt_meminfo_t *mi, char *buffer, size_t length)
{
    verify_made("dump", mi);
    return plain->dump(mi, buffer, length);
}

static memrt_policy_t *checked_policy_of(const memrt_meminfo_t *mi)
{
    verify_made("policy_of", mi);
    return plain->policy_of(mi);
}

static memrt_scope_t *checked_scope_of(const memrt_meminfo_t *mi)
{
    verify_made("scope_of", mi);
    return plain->scope_of(mi);
}

static void *checked_resizable_alloc(memrt_meminfo_t *mi, size_t size)
{
    verify_resizable("resizable_alloc", mi);
    return plain->resizable_alloc(mi, size);
}

static void *checked_resizable_realloc(memrt_meminfo_t *mi, size_t size)
{
    verify_resizable("resizable_realloc", mi);
    return plain->resizable_realloc(mi, size);
}

static void checked_resizable_free(memrt_meminfo_t *mi, void *data)
{
    verify_resizable("resizable_free", mi);
    if (data != NULL) {
        verify_block("resizable_free", data);
    }
    plain->resizable_free(mi, data);
}

static void *checked_block_realloc(void *policy, void *data, size_t size)
{
    if (data != NULL) {
        verify_block("block_realloc", data);
    }
    return plain->block_realloc(policy, data, size);
}

static void checked_block_free(void *policy, void *data, size_t size)
{
    if (data != NULL) {
        verify_block("block_free", data);
    }
    plain->block_free(policy, data, size);
}

static memrt_status_t checked_block_meminfo(void *data, memrt_meminfo_t **out)
{
    const memrt_meminfo_t *mi = memrt__block_of(data);
    if (!memrt__live_contains((uintptr_t)mi)) {
        refuse_stranger("block_meminfo", data, (uintptr_t)mi);
    }
    verify("block_meminfo", mi);
    return plain->block_meminfo(data, out);
}

static void checked_policy_acquire(memrt_policy_t *policy)
{
    verify_policy("policy_acquire", policy);
    plain->policy_acquire(policy);
}

static void checked_policy_release(memrt_policy_t *policy)
{
    verify_policy("policy_release", policy);
    plain->policy_release(policy);
}

static void checked_watch(memrt_meminfo_t *mi)
{
    verify("watch", mi);
    plain->watch(mi);
}

static void verify_scope(const char *call, const memrt_scope_t *scope)
{
    if (!memrt__scope_is_live(scope)) {
        memrt__abort(
            "%s of %p: no scope of memrt's lives at that address that anybody holds; it was "
            "released too often, or is none",
            call, (const void *)scope);
    }
}

static void checked_scope_acquire(memrt_scope_t *scope)
{
    verify_scope("scope_acquire", scope);
    plain->scope_acquire(scope);
}

static void checked_scope_release(memrt_scope_t *scope)
{
    verify_scope("scope_release", scope);
    plain->scope_release(scope);
}

static memrt_status_t checked_scope_enter(memrt_scope_t *scope, memrt_scope_t **before)
{
    if (scope != NULL) {
        verify_scope("scope_enter", scope);
    }
    return plain->scope_enter(scope, before);
}

static memrt_status_t checked_acquire_as(memrt_meminfo_t *mi, memrt_holder_kind_t kind,
                                         const char *name)
{
    verify("acquire_as", mi);
    return plain->acquire_as(mi, kind, name);
}

static void checked_release_as(memrt_meminfo_t *mi, memrt_holder_kind_t kind, const char *name)
{
    verify_release("release_as", mi);
    if (!memrt__named_drop(mi, kind, name)) {
        char why[MEMRT_NAME_MAX + 80];
        snprintf(why, sizeof(why), "no reference of it is held under the name \"%.*s\"",
                 (int)MEMRT_NAME_MAX, name == NULL ? "" : name);
        refuse("release_as", mi, why);
    }
    plain->release(mi);
}

static size_t checked_holders(const memrt_meminfo_t *mi, memrt_holder_t *rows, size_t row_size,
                              size_t room)
{
    verify_made("holders", mi);
    return plain->holders(mi, rows, row_size, room);
}

static memrt_status_t checked_buffer_read(const memrt_meminfo_t *mi, size_t row_size, void *out)
{
    verify_made("buffer_read", mi);
    return plain->buffer_read(mi, row_size, out);
}

static memrt_status_t checked_cuda_info(const memrt_meminfo_t *mi, memrt_cuda_info_t *out)
{
    verify_made("cuda_info", mi);
    return plain->cuda_info(mi, out);
}

static memrt_status_t checked_cuda_used(memrt_meminfo_t *mi, uintptr_t stream)
{
    verify("cuda_used", mi);
    return plain->cuda_used(mi, stream);
}

static memrt_status_t checked_cuda_wait(memrt_meminfo_t *mi, uintptr_t stream)
{
    verify("cuda_wait", mi);
    return plain->cuda_wait(mi, stream);
}

static memrt_status_t checked_cuda_read(memrt_meminfo_t *mi, size_t offset, void *out, size_t size,
                                        uintptr_t stream)
{
    verify("cuda_read", mi);
    return plain->cuda_read(mi, offset, out, size, stream);
}

static memrt_status_t checked_cuda_write(memrt_meminfo_t *mi, size_t offset, const void *data,
                                         size_t size, uintptr_t stream)
{
    verify("cuda_write", mi);
    return plain->cuda_write(mi, offset, data, size, stream);
}

static memrt_status_t checked_dlpack_export(memrt_meminfo_t *mi, const memrt_dlpack_view_t *view,
                                            DLManagedTensorVersioned **out, const char **why)
{
    verify("dlpack_export", mi);
    return plain->dlpack_export(mi, view, out, why);
}

static memrt_status_t checked_dlpack_export_unversioned(memrt_meminfo_t *mi,
                                                        const memrt_dlpack_view_t *view,
                                                        DLManagedTensor **out, const char **why)
{
    verify("dlpack_export_unversioned", mi);
    return plain->dlpack_export_unversioned(mi, view, out, why);
}

static memrt_status_t checked_arrow_export(memrt_meminfo_t *mi, const memrt_arrow_view_t *view,
                                           struct ArrowSchema *schema, struct ArrowArray *array,
                                           const char **why)
{
    verify("arrow_export", mi);
    if (view->validity_owner != NULL) {
        verify("arrow_export", view->validity_owner);
    }
    return plain->arrow_export(mi, view, schema, array, why);
}

static memrt_api_t table;

static void fill_table(void)
{
    table = memrt__plain_table;
    table.features |= MEMRT_FEATURE_CHECKING;
    table.acquire = checked_acquire;
    table.release = checked_release;
    table.get_data = checked_get_data;
    table.try_acquire = checked_try_acquire;
    table.call_dtor = checked_call_dtor;
    table.refcount = checked_refcount;
    table.size = checked_size;
    table.dtor_info = checked_dtor_info;
    table.readonly = checked_readonly;
    table.external_allocator = checked_external_allocator;
    table.set_name = checked_set_name;
    table.get_name = checked_get_name;
    table.dump = checked_dump;
    table.policy_of = checked_policy_of;
    table.resizable_alloc = checked_resizable_alloc;
    table.resizable_realloc = checked_resizable_realloc;
    table.resizable_free = checked_resizable_free;
    table.block_realloc = checked_block_realloc;
    table.block_free = checked_block_free;
    table.block_meminfo = checked_block_meminfo;
    table.policy_acquire = checked_policy_acquire;
    table.policy_release = checked_policy_release;
    table.watch = checked_watch;
    table.scope_acquire = checked_scope_acquire;
    table.scope_release = checked_scope_release;
    table.scope_enter = checked_scope_enter;
    table.scope_of = checked_scope_of;
    table.acquire_as = checked_acquire_as;
    table.release_as = checked_release_as;
    table.holders = checked_holders;
    table.buffer_read = checked_buffer_read;
    table.cuda_info = checked_cuda_info;
    table.cuda_used = checked_cuda_used;
    table.cuda_wait = checked_cuda_wait;
    table.cuda_read = checked_cuda_read;
    table.cuda_write = checked_cuda_write;
    table.dlpack_export = checked_dlpack_export;
    table.dlpack_export_unversioned = checked_dlpack_export_unversioned;
    table.arrow_export = checked_arrow_export;
}

const memrt_api_t *memrt__checking_table(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, fill_table);
    return &table;
}
