#include <pthread.h>
#include <stdio.h>

#include <memrt/arrow.h>
#include <memrt/dlpack.h>

#include "api/table.h"
#include "runtime/base/check.h"
#include "runtime/meminfo/block_check.h"
#include "runtime/meminfo/meminfo.h"
#include "runtime/meminfo/named.h"
#include "runtime/observe/address_hint.h"
#include "runtime/observe/call_stack.h"
#include "runtime/observe/live_set.h"
#include "runtime/policy/policy_allocators.h"

/// The checking table: each slot verifies every MemInfo, block, policy and scope among its
/// arguments and then calls the slot of the plain table. MemInfos and blocks are looked up in the
/// live set, which has all MemInfos and blocks in checking mode. Misuse ends the process with a
/// message about the call and the object.

static const memrt_api_t *const plain = &memrt__plain_table;

/// Format and arguments for a name in quotes, followed by the text `then`. An empty name prints
/// nothing.
#define NAMED "%s%s%s"
#define NAME_OF(name, then)                                                                        \
    (name)[0] == '\0' ? "" : "\"", (name), (name)[0] == '\0' ? "" : "\"" then

/// Abort: the object at `what` was freed already. `left` describes the object.
static _Noreturn void refuse_freed_object(const char *call, const void *what,
                                          const memrt__live_left_t *left)
{
    char places[MEMRT__CALL_STACKS_TEXT];
    memrt__policy_explain_dead(left->key, places, sizeof(places));
    memrt__abort("%s of %p (" NAMED
                 "%zu bytes at %p, policy %s): the buffer must be live, but was freed: "
                 "released more often than acquired, or used after the last release%s",
                 call, what, NAME_OF(left->name, ", "), left->size, (void *)left->data,
                 left->policy, places);
}

/// Abort: no live object is at `what`. The message describes a freed object or poison bytes, where
/// known. `key` is the address of the MemInfo that belongs to `what`.
static _Noreturn void refuse_unknown_address(const char *call, const void *what, uintptr_t key)
{
    char places[MEMRT__CALL_STACKS_TEXT];
    memrt__live_left_t left;
    const char *poison = memrt__address_hint((uintptr_t)what);
    if (poison == NULL && memrt__live_left(key, &left)) {
        refuse_freed_object(call, what, &left);
    }
    bool freed =
        poison == NULL && memrt__policy_explain_dead((uintptr_t)what, places, sizeof(places));
    memrt__abort("%s of %p: no live buffer of memrt is at the address%s%s%s", call, what,
                 poison == NULL ? "" : "; the address is ", poison == NULL ? "" : poison,
                 freed ? places : "");
}

/// Abort with `why` and a description of `mi`, whose header must be readable.
static _Noreturn void refuse_meminfo(const char *call, const memrt_meminfo_t *mi, const char *why)
{
    char text[256], places[MEMRT__CALL_STACKS_TEXT];
    memrt__meminfo_dump(mi, text, sizeof(text));
    memrt__block_explain(mi, places, sizeof(places));
    memrt__abort("%s of %s: %s%s", call, text, why, places);
}

/// Abort if the header of `mi` was overwritten.
static void verify_header(const char *call, const memrt_meminfo_t *mi)
{
    if (!memrt__block_is_sound(mi)) {
        char name[MEMRT_NAME_MAX + 1];
        memrt__live_name((uintptr_t)mi, name);
        memrt__abort("%s of MemInfo %p%s" NAMED
                     ": the header was overwritten, as by a write before "
                     "the start of the data at %p; the damaged header reads %zu bytes at %p",
                     call, (const void *)mi, name[0] == '\0' ? "" : " ", NAME_OF(name, ""),
                     (const void *)((const char *)mi + MEMRT_HEADER_SIZE), mi->size, mi->data);
    }
}

/// Verify the redzones around a block before the call may free the block. Later, only the guard
/// would find the damage, and the guard does not know the block's name.
static void verify_redzones(const char *call, const memrt_meminfo_t *mi)
{
    char fault[128];
    if (memrt__block_fault(mi, fault, sizeof(fault))) {
        refuse_meminfo(call, mi, fault);
    }
}

/// Abort unless `mi` was made by memrt and is not freed.
static void verify_meminfo(const char *call, const memrt_meminfo_t *mi)
{
    if (!memrt__live_contains((uintptr_t)mi)) {
        refuse_unknown_address(call, mi, (uintptr_t)mi);
    }
    verify_header(call, mi);
}

/// Abort unless `mi` is live with at least one reference.
static void verify_held_meminfo(const char *call, const memrt_meminfo_t *mi)
{
    verify_meminfo(call, mi);
    if (memrt__meminfo_refcount(mi) == 0) {
        refuse_meminfo(
            call, mi,
            "the reference count must be at least 1, got 0: the last reference was released "
            "before");
    }
}

/// Abort unless `data` is the data pointer of a live block with intact redzones.
static void verify_block(const char *call, const void *data)
{
    const memrt_meminfo_t *mi = memrt__block_of(data);
    if (!memrt__live_contains((uintptr_t)mi)) {
        refuse_unknown_address(call, data, (uintptr_t)mi);
    }
    verify_held_meminfo(call, mi);
    if (mi->kind != MEMRT_KIND_BLOCK) {
        refuse_meminfo(
            call, mi,
            "the buffer must be a block, but was allocated as a MemInfo: release the MemInfo");
    }
    verify_redzones(call, mi);
}

/// Abort unless `mi` counts as a MemInfo: a block may be released only after its MemInfo was
/// requested. Otherwise the block must be freed by block_free.
static void verify_meminfo_was_requested(const char *call, const memrt_meminfo_t *mi)
{
    if ((memrt__flags_load_relaxed(&mi->flags) & MEMRT__FLAG_MEMINFO) == 0) {
        refuse_meminfo(
            call, mi, "the MemInfo of the block was never requested: free the block by block_free");
    }
}

/// Abort unless `mi` was made by memrt, is not freed, and is resizable.
static void verify_resizable_meminfo(const char *call, const memrt_meminfo_t *mi)
{
    verify_meminfo(call, mi);
    if (mi->kind != MEMRT_KIND_RESIZABLE) {
        refuse_meminfo(call, mi, "the MemInfo must be resizable");
    }
}

/// Abort: the policy or scope `object` does not satisfy `rule`.
static _Noreturn void refuse_policy_or_scope(const char *call, const char *kind, const void *object,
                                             const char *rule)
{
    memrt__abort("%s of %s %p: the %s must be %s, but was released more often than acquired, or "
                 "is not from memrt",
                 call, kind, object, kind, rule);
}

/// Verify that `policy` is held, the precondition of acquire, release and allocation.
static void verify_policy(const char *call, const memrt_policy_t *policy)
{
    if (!memrt__policy_is_held(policy)) {
        refuse_policy_or_scope(call, "policy", policy, "held");
    }
}

/// Verify that `policy` is held or has live blocks, from which a caller may have the policy.
static void verify_known_policy(const char *call, const memrt_policy_t *policy)
{
    if (!memrt__policy_is_known(policy)) {
        refuse_policy_or_scope(call, "policy", policy, "held or have live blocks");
    }
}

/// Verify a policy to allocate from; NULL: the default policy.
static void verify_source_policy(const char *call, const memrt_policy_t *policy)
{
    if (policy != NULL) {
        verify_policy(call, policy);
    }
}

/// Verify a policy to report on; NULL: the process or the default policy.
static void verify_report_policy(const char *call, const memrt_policy_t *policy)
{
    if (policy != NULL) {
        verify_known_policy(call, policy);
    }
}

/// Test whether the struct of a caller is large enough to have `member`.
#define HAS_MEMBER(options, member)                                                                \
    ((options) != NULL && (options)->struct_size >= offsetof(__typeof__(*(options)), member) +     \
                                                        sizeof((options)->member))

static void verify_options(const char *call, const memrt_new_options_t *options)
{
    if (HAS_MEMBER(options, policy)) {
        verify_source_policy(call, options->policy);
    }
}

static void verify_cuda_options(const char *call, const memrt_cuda_options_t *options)
{
    if (HAS_MEMBER(options, policy)) {
        verify_source_policy(call, options->policy);
    }
}

/// Verify that `scope` is held, the precondition of acquire, release and allocation.
static void verify_scope(const char *call, const memrt_scope_t *scope)
{
    if (!memrt__scope_is_live(scope)) {
        refuse_policy_or_scope(call, "scope", scope, "held");
    }
}

/// Verify that `scope` is held or has live blocks, from which a caller may have the scope.
static void verify_known_scope(const char *call, const memrt_scope_t *scope)
{
    if (!memrt__scope_is_known(scope)) {
        refuse_policy_or_scope(call, "scope", scope, "held or have live blocks");
    }
}

/// Verify a scope argument that may be NULL.
static void verify_optional_scope(const char *call, const memrt_scope_t *scope)
{
    if (scope != NULL) {
        verify_scope(call, scope);
    }
}

static memrt_status_t checked_meminfo_new(size_t size, const memrt_new_options_t *options,
                                          memrt_meminfo_t **out)
{
    verify_options("meminfo_new", options);
    return plain->meminfo_new(size, options, out);
}

static memrt_status_t checked_meminfo_adopt(void *data, size_t size,
                                            const memrt_new_options_t *options,
                                            memrt_meminfo_t **out)
{
    verify_options("meminfo_adopt", options);
    return plain->meminfo_adopt(data, size, options, out);
}

static memrt_status_t checked_resizable_new(size_t size, const memrt_new_options_t *options,
                                            memrt_meminfo_t **out)
{
    verify_options("resizable_new", options);
    return plain->resizable_new(size, options, out);
}

static void checked_acquire(memrt_meminfo_t *mi)
{
    verify_held_meminfo("acquire", mi);
    plain->acquire(mi);
}

static void verify_release(const char *call, const memrt_meminfo_t *mi)
{
    verify_held_meminfo(call, mi);
    verify_meminfo_was_requested(call, mi);
    verify_redzones(call, mi);
}

static void checked_release(memrt_meminfo_t *mi)
{
    verify_release("release", mi);
    plain->release(mi);
}

/// Return whether `mi` is the probe of memrt_api_of_nrt(). The memory at `mi` is read only if the
/// address is not live, was not freed lately, and does not consist of poison bytes.
static bool is_probe(const memrt_meminfo_t *mi)
{
    memrt__live_left_t left;
    return !memrt__live_contains((uintptr_t)mi) && !memrt__live_left((uintptr_t)mi, &left) &&
           memrt__address_hint((uintptr_t)mi) == NULL && memrt__is_probe(mi);
}

static void *checked_get_data(memrt_meminfo_t *mi)
{
    if (is_probe(mi)) {
        return (void *)(uintptr_t)memrt__checking_table();
    }
    verify_meminfo("get_data", mi);
    return plain->get_data(mi);
}

static int checked_try_acquire(memrt_meminfo_t *mi)
{
    verify_meminfo("try_acquire", mi);
    return plain->try_acquire(mi);
}

static void checked_call_dtor(memrt_meminfo_t *mi)
{
    verify_meminfo("call_dtor", mi);
    if (memrt__meminfo_refcount(mi) != 0) {
        refuse_meminfo("call_dtor", mi, "the reference count must be 0");
    }
    verify_redzones("call_dtor", mi);
    plain->call_dtor(mi);
}

static size_t checked_refcount(const memrt_meminfo_t *mi)
{
    verify_meminfo("refcount", mi);
    return plain->refcount(mi);
}

static size_t checked_size(const memrt_meminfo_t *mi)
{
    verify_meminfo("size", mi);
    return plain->size(mi);
}

static void *checked_dtor_info(const memrt_meminfo_t *mi)
{
    verify_meminfo("dtor_info", mi);
    return plain->dtor_info(mi);
}

static int checked_readonly(const memrt_meminfo_t *mi)
{
    verify_meminfo("readonly", mi);
    return plain->readonly(mi);
}

static memrt_external_allocator_t *checked_external_allocator(const memrt_meminfo_t *mi)
{
    verify_meminfo("external_allocator", mi);
    return plain->external_allocator(mi);
}

static memrt_status_t checked_set_name(memrt_meminfo_t *mi, const char *name)
{
    verify_held_meminfo("set_name", mi);
    return plain->set_name(mi, name);
}

static void checked_get_name(const memrt_meminfo_t *mi, char *buffer)
{
    verify_meminfo("get_name", mi);
    plain->get_name(mi, buffer);
}

static size_t checked_dump(const memrt_meminfo_t *mi, char *buffer, size_t length)
{
    verify_meminfo("dump", mi);
    return plain->dump(mi, buffer, length);
}

static memrt_policy_t *checked_policy_of(const memrt_meminfo_t *mi)
{
    verify_meminfo("policy_of", mi);
    return plain->policy_of(mi);
}

static memrt_scope_t *checked_scope_of(const memrt_meminfo_t *mi)
{
    verify_meminfo("scope_of", mi);
    return plain->scope_of(mi);
}

static void *checked_resizable_alloc(memrt_meminfo_t *mi, size_t size)
{
    verify_resizable_meminfo("resizable_alloc", mi);
    return plain->resizable_alloc(mi, size);
}

static void *checked_resizable_realloc(memrt_meminfo_t *mi, size_t size)
{
    verify_resizable_meminfo("resizable_realloc", mi);
    return plain->resizable_realloc(mi, size);
}

static void checked_resizable_free(memrt_meminfo_t *mi, void *data)
{
    verify_resizable_meminfo("resizable_free", mi);
    if (data != NULL) {
        verify_block("resizable_free", data);
    }
    plain->resizable_free(mi, data);
}

static void *checked_block_alloc(void *policy, size_t size)
{
    verify_source_policy("block_alloc", policy);
    return plain->block_alloc(policy, size);
}

static void *checked_block_calloc(void *policy, size_t count, size_t size)
{
    verify_source_policy("block_calloc", policy);
    return plain->block_calloc(policy, count, size);
}

static void *checked_block_realloc(void *policy, void *data, size_t size)
{
    if (data == NULL) {
        verify_source_policy("block_realloc", policy);
    } else {
        verify_report_policy("block_realloc", policy);
        verify_block("block_realloc", data);
    }
    return plain->block_realloc(policy, data, size);
}

static void checked_block_free(void *policy, void *data, size_t size)
{
    verify_report_policy("block_free", policy);
    if (data != NULL) {
        verify_block("block_free", data);
    }
    plain->block_free(policy, data, size);
}

static memrt_status_t checked_block_meminfo(void *data, memrt_meminfo_t **out)
{
    const memrt_meminfo_t *mi = memrt__block_of(data);
    if (!memrt__live_contains((uintptr_t)mi)) {
        refuse_unknown_address("block_meminfo", data, (uintptr_t)mi);
    }
    verify_held_meminfo("block_meminfo", mi);
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

static const char *checked_policy_name(const memrt_policy_t *policy)
{
    verify_known_policy("policy_name", policy);
    return plain->policy_name(policy);
}

static size_t checked_policy_alignment(const memrt_policy_t *policy)
{
    verify_known_policy("policy_alignment", policy);
    return plain->policy_alignment(policy);
}

static uint32_t checked_policy_index(const memrt_policy_t *policy)
{
    verify_known_policy("policy_index", policy);
    return plain->policy_index(policy);
}

static int checked_policy_option(const memrt_policy_t *policy, size_t index, memrt_option_t *out)
{
    verify_known_policy("policy_option", policy);
    return plain->policy_option(policy, index, out);
}

static memrt_status_t checked_stats_read(const memrt_policy_t *policy, memrt_stats_t *out)
{
    verify_report_policy("stats_read", policy);
    return plain->stats_read(policy, out);
}

static void checked_stats_reset_peak(memrt_policy_t *policy)
{
    verify_report_policy("stats_reset_peak", policy);
    plain->stats_reset_peak(policy);
}

static size_t checked_explain_shortage(const memrt_policy_t *policy, size_t size, char *text,
                                       size_t length)
{
    verify_report_policy("explain_shortage", policy);
    return plain->explain_shortage(policy, size, text, length);
}

static void checked_watch(memrt_meminfo_t *mi)
{
    verify_held_meminfo("watch", mi);
    plain->watch(mi);
}

static memrt_status_t checked_scope_open(memrt_scope_t *parent, const char *name,
                                         memrt_scope_t **out)
{
    verify_optional_scope("scope_open", parent);
    return plain->scope_open(parent, name, out);
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
    verify_optional_scope("scope_enter", scope);
    return plain->scope_enter(scope, before);
}

static memrt_status_t checked_scope_policy(memrt_scope_t *scope, memrt_policy_t *policy,
                                           memrt_policy_t **out)
{
    verify_scope("scope_policy", scope);
    verify_source_policy("scope_policy", policy);
    return plain->scope_policy(scope, policy, out);
}

static memrt_scope_t *checked_scope_next(memrt_scope_t *scope)
{
    verify_optional_scope("scope_next", scope);
    return plain->scope_next(scope);
}

static memrt_scope_t *checked_scope_parent(const memrt_scope_t *scope)
{
    verify_known_scope("scope_parent", scope);
    return plain->scope_parent(scope);
}

static const char *checked_scope_name(const memrt_scope_t *scope)
{
    verify_known_scope("scope_name", scope);
    return plain->scope_name(scope);
}

static uint32_t checked_scope_id(const memrt_scope_t *scope)
{
    verify_known_scope("scope_id", scope);
    return plain->scope_id(scope);
}

static memrt_status_t checked_scope_stats(const memrt_scope_t *scope, memrt_stats_t *out)
{
    verify_known_scope("scope_stats", scope);
    return plain->scope_stats(scope, out);
}

static void checked_scope_sizes(const memrt_scope_t *scope, uint64_t *out)
{
    verify_known_scope("scope_sizes", scope);
    plain->scope_sizes(scope, out);
}

static void checked_scope_reset_peak(memrt_scope_t *scope)
{
    verify_known_scope("scope_reset_peak", scope);
    plain->scope_reset_peak(scope);
}

static memrt_status_t checked_acquire_as(memrt_meminfo_t *mi, memrt_holder_kind_t kind,
                                         const char *name)
{
    verify_held_meminfo("acquire_as", mi);
    return plain->acquire_as(mi, kind, name);
}

static void checked_release_as(memrt_meminfo_t *mi, memrt_holder_kind_t kind, const char *name)
{
    verify_release("release_as", mi);
    if (!memrt__named_drop(mi, kind, name)) {
        char why[MEMRT_NAME_MAX + 80];
        snprintf(why, sizeof(why),
                 "the MemInfo has no reference of the given kind with the name \"%.*s\"",
                 (int)MEMRT_NAME_MAX, name == NULL ? "" : name);
        refuse_meminfo("release_as", mi, why);
    }
    plain->release(mi);
}

static size_t checked_holders(const memrt_meminfo_t *mi, memrt_holder_t *rows, size_t row_size,
                              size_t room)
{
    verify_meminfo("holders", mi);
    return plain->holders(mi, rows, row_size, room);
}

static memrt_status_t checked_buffer_read(const memrt_meminfo_t *mi, size_t row_size, void *out)
{
    verify_meminfo("buffer_read", mi);
    return plain->buffer_read(mi, row_size, out);
}

static memrt_status_t checked_cuda_new(size_t size, const memrt_cuda_options_t *options,
                                       memrt_meminfo_t **out)
{
    verify_cuda_options("cuda_new", options);
    return plain->cuda_new(size, options, out);
}

static memrt_status_t checked_cuda_adopt(uintptr_t address, size_t size,
                                         const memrt_cuda_options_t *options, memrt_meminfo_t **out)
{
    verify_cuda_options("cuda_adopt", options);
    return plain->cuda_adopt(address, size, options, out);
}

static memrt_status_t checked_cuda_info(const memrt_meminfo_t *mi, memrt_cuda_info_t *out)
{
    verify_meminfo("cuda_info", mi);
    return plain->cuda_info(mi, out);
}

static memrt_status_t checked_cuda_used(memrt_meminfo_t *mi, uintptr_t stream)
{
    verify_held_meminfo("cuda_used", mi);
    return plain->cuda_used(mi, stream);
}

static memrt_status_t checked_cuda_wait(memrt_meminfo_t *mi, uintptr_t stream)
{
    verify_held_meminfo("cuda_wait", mi);
    return plain->cuda_wait(mi, stream);
}

static memrt_status_t checked_cuda_read(memrt_meminfo_t *mi, size_t offset, void *out, size_t size,
                                        uintptr_t stream)
{
    verify_held_meminfo("cuda_read", mi);
    return plain->cuda_read(mi, offset, out, size, stream);
}

static memrt_status_t checked_cuda_write(memrt_meminfo_t *mi, size_t offset, const void *data,
                                         size_t size, uintptr_t stream)
{
    verify_held_meminfo("cuda_write", mi);
    return plain->cuda_write(mi, offset, data, size, stream);
}

static memrt_status_t checked_dlpack_export(memrt_meminfo_t *mi, const memrt_dlpack_view_t *view,
                                            DLManagedTensorVersioned **out, const char **why)
{
    verify_held_meminfo("dlpack_export", mi);
    return plain->dlpack_export(mi, view, out, why);
}

static memrt_status_t checked_dlpack_export_unversioned(memrt_meminfo_t *mi,
                                                        const memrt_dlpack_view_t *view,
                                                        DLManagedTensor **out, const char **why)
{
    verify_held_meminfo("dlpack_export_unversioned", mi);
    return plain->dlpack_export_unversioned(mi, view, out, why);
}

static memrt_status_t checked_dlpack_adopt(DLManagedTensorVersioned *tensor,
                                           const memrt_new_options_t *options,
                                           memrt_dlpack_view_t *view, memrt_meminfo_t **out,
                                           const char **why)
{
    verify_options("dlpack_adopt", options);
    return plain->dlpack_adopt(tensor, options, view, out, why);
}

static memrt_status_t checked_dlpack_adopt_unversioned(DLManagedTensor *tensor,
                                                       const memrt_new_options_t *options,
                                                       memrt_dlpack_view_t *view,
                                                       memrt_meminfo_t **out, const char **why)
{
    verify_options("dlpack_adopt_unversioned", options);
    return plain->dlpack_adopt_unversioned(tensor, options, view, out, why);
}

static memrt_status_t checked_dlpack_new(const memrt_dlpack_view_t *view,
                                         const memrt_new_options_t *options,
                                         DLManagedTensorVersioned **out, const char **why)
{
    verify_options("dlpack_new", options);
    return plain->dlpack_new(view, options, out, why);
}

static memrt_status_t checked_arrow_adopt(const struct ArrowSchema *schema,
                                          struct ArrowArray *array,
                                          const memrt_new_options_t *options,
                                          memrt_arrow_view_t *view, memrt_meminfo_t **out,
                                          const char **why)
{
    verify_options("arrow_adopt", options);
    return plain->arrow_adopt(schema, array, options, view, out, why);
}

static memrt_status_t checked_arrow_export(memrt_meminfo_t *mi, const memrt_arrow_view_t *view,
                                           struct ArrowSchema *schema, struct ArrowArray *array,
                                           const char **why)
{
    verify_held_meminfo("arrow_export", mi);
    if (view->validity_owner != NULL) {
        verify_held_meminfo("arrow_export", view->validity_owner);
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
    table.meminfo_new = checked_meminfo_new;
    table.meminfo_adopt = checked_meminfo_adopt;
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
    table.resizable_new = checked_resizable_new;
    table.resizable_alloc = checked_resizable_alloc;
    table.resizable_realloc = checked_resizable_realloc;
    table.resizable_free = checked_resizable_free;
    table.block_alloc = checked_block_alloc;
    table.block_calloc = checked_block_calloc;
    table.block_realloc = checked_block_realloc;
    table.block_free = checked_block_free;
    table.block_meminfo = checked_block_meminfo;
    table.policy_acquire = checked_policy_acquire;
    table.policy_release = checked_policy_release;
    table.policy_name = checked_policy_name;
    table.policy_alignment = checked_policy_alignment;
    table.policy_index = checked_policy_index;
    table.stats_read = checked_stats_read;
    table.stats_reset_peak = checked_stats_reset_peak;
    table.watch = checked_watch;
    table.policy_option = checked_policy_option;
    table.scope_open = checked_scope_open;
    table.scope_acquire = checked_scope_acquire;
    table.scope_release = checked_scope_release;
    table.scope_enter = checked_scope_enter;
    table.scope_policy = checked_scope_policy;
    table.scope_of = checked_scope_of;
    table.scope_next = checked_scope_next;
    table.scope_parent = checked_scope_parent;
    table.scope_name = checked_scope_name;
    table.scope_id = checked_scope_id;
    table.scope_stats = checked_scope_stats;
    table.scope_sizes = checked_scope_sizes;
    table.scope_reset_peak = checked_scope_reset_peak;
    table.acquire_as = checked_acquire_as;
    table.release_as = checked_release_as;
    table.holders = checked_holders;
    table.explain_shortage = checked_explain_shortage;
    table.buffer_read = checked_buffer_read;
    table.cuda_new = checked_cuda_new;
    table.cuda_adopt = checked_cuda_adopt;
    table.cuda_info = checked_cuda_info;
    table.cuda_used = checked_cuda_used;
    table.cuda_wait = checked_cuda_wait;
    table.cuda_read = checked_cuda_read;
    table.cuda_write = checked_cuda_write;
    table.dlpack_export = checked_dlpack_export;
    table.dlpack_export_unversioned = checked_dlpack_export_unversioned;
    table.dlpack_adopt = checked_dlpack_adopt;
    table.dlpack_adopt_unversioned = checked_dlpack_adopt_unversioned;
    table.dlpack_new = checked_dlpack_new;
    table.arrow_export = checked_arrow_export;
    table.arrow_adopt = checked_arrow_adopt;
}

const memrt_api_t *memrt__checking_table(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, fill_table);
    return &table;
}
