#include "api/checked_slots.h"

#include <stdio.h>

#include "api/plain_table.h"
#include "api/verify_meminfo.h"
#include "api/verify_policy.h"
#include "runtime/meminfo/named.h"
#include "runtime/meminfo/references.h"

memrt_meminfo_t *memrt__checked_allocate_from(size_t nbytes, memrt_policy_t *policy)
{
    memrt__verify_source_policy("allocate_from", policy);
    return memrt__plain_table.allocate_from(nbytes, policy);
}

memrt_status_t memrt__checked_meminfo_new(size_t size, const memrt_new_options_t *options,
                                          memrt_meminfo_t **out)
{
    memrt__verify_options("meminfo_new", options);
    return memrt__plain_table.meminfo_new(size, options, out);
}

memrt_status_t memrt__checked_meminfo_adopt(void *data, size_t size,
                                            const memrt_new_options_t *options,
                                            memrt_meminfo_t **out)
{
    memrt__verify_options("meminfo_adopt", options);
    return memrt__plain_table.meminfo_adopt(data, size, options, out);
}

void memrt__checked_acquire(memrt_meminfo_t *mi)
{
    memrt__verify_held_meminfo("acquire", mi);
    memrt__plain_table.acquire(mi);
}

int memrt__checked_try_acquire(memrt_meminfo_t *mi)
{
    memrt__verify_meminfo("try_acquire", mi);
    return memrt__plain_table.try_acquire(mi);
}

void memrt__checked_release(memrt_meminfo_t *mi)
{
    memrt__verify_release("release", mi);
    memrt__plain_table.release(mi);
}

void memrt__checked_call_dtor(memrt_meminfo_t *mi)
{
    memrt__verify_meminfo("call_dtor", mi);
    if (memrt__meminfo_refcount(mi) != 0) {
        memrt__refuse_meminfo("call_dtor", mi, "the reference count must be 0");
    }
    memrt__verify_redzones("call_dtor", mi);
    memrt__plain_table.call_dtor(mi);
}

size_t memrt__checked_refcount(const memrt_meminfo_t *mi)
{
    memrt__verify_meminfo("refcount", mi);
    return memrt__plain_table.refcount(mi);
}

int memrt__checked_try_unique(const memrt_meminfo_t *mi)
{
    memrt__verify_held_meminfo("try_unique", mi);
    return memrt__plain_table.try_unique(mi);
}

memrt_status_t memrt__checked_freeze(memrt_meminfo_t *mi, size_t *bytes)
{
    memrt__verify_held_meminfo("freeze", mi);
    return memrt__plain_table.freeze(mi, bytes);
}

memrt_status_t memrt__checked_thaw(memrt_meminfo_t *mi)
{
    memrt__verify_held_meminfo("thaw", mi);
    return memrt__plain_table.thaw(mi);
}

size_t memrt__checked_size(const memrt_meminfo_t *mi)
{
    memrt__verify_meminfo("size", mi);
    return memrt__plain_table.size(mi);
}

void *memrt__checked_dtor_info(const memrt_meminfo_t *mi)
{
    memrt__verify_meminfo("dtor_info", mi);
    return memrt__plain_table.dtor_info(mi);
}

int memrt__checked_readonly(const memrt_meminfo_t *mi)
{
    memrt__verify_meminfo("readonly", mi);
    return memrt__plain_table.readonly(mi);
}

memrt_external_allocator_t *memrt__checked_external_allocator(const memrt_meminfo_t *mi)
{
    memrt__verify_meminfo("external_allocator", mi);
    return memrt__plain_table.external_allocator(mi);
}

memrt_policy_t *memrt__checked_policy_of(const memrt_meminfo_t *mi)
{
    memrt__verify_meminfo("policy_of", mi);
    return memrt__plain_table.policy_of(mi);
}

memrt_scope_t *memrt__checked_scope_of(const memrt_meminfo_t *mi)
{
    memrt__verify_meminfo("scope_of", mi);
    return memrt__plain_table.scope_of(mi);
}

memrt_status_t memrt__checked_set_name(memrt_meminfo_t *mi, const char *name)
{
    memrt__verify_held_meminfo("set_name", mi);
    return memrt__plain_table.set_name(mi, name);
}

void memrt__checked_get_name(const memrt_meminfo_t *mi, char *buffer)
{
    memrt__verify_meminfo("get_name", mi);
    memrt__plain_table.get_name(mi, buffer);
}

size_t memrt__checked_dump(const memrt_meminfo_t *mi, char *buffer, size_t length)
{
    memrt__verify_meminfo("dump", mi);
    return memrt__plain_table.dump(mi, buffer, length);
}

void memrt__checked_observe(memrt_meminfo_t *mi)
{
    memrt__verify_held_meminfo("observe", mi);
    memrt__plain_table.observe(mi);
}

memrt_status_t memrt__checked_buffer_read(const memrt_meminfo_t *mi, size_t row_size, void *out)
{
    memrt__verify_meminfo("buffer_read", mi);
    return memrt__plain_table.buffer_read(mi, row_size, out);
}

memrt_status_t memrt__checked_weak_new(memrt_meminfo_t *mi, memrt_weak_t *out)
{
    memrt__verify_held_meminfo("weak_new", mi);
    return memrt__plain_table.weak_new(mi, out);
}

memrt_status_t memrt__checked_acquire_as(memrt_meminfo_t *mi, memrt_holder_kind_t kind,
                                         const char *name)
{
    memrt__verify_held_meminfo("acquire_as", mi);
    return memrt__plain_table.acquire_as(mi, kind, name);
}

void memrt__checked_release_as(memrt_meminfo_t *mi, memrt_holder_kind_t kind, const char *name)
{
    memrt__verify_release("release_as", mi);
    if (!memrt__named_drop(mi, kind, name)) {
        char why[MEMRT_NAME_MAX + 80];
        snprintf(why, sizeof(why),
                 "the MemInfo has no reference of the given kind with the name \"%.*s\"",
                 (int)MEMRT_NAME_MAX, name == NULL ? "" : name);
        memrt__refuse_meminfo("release_as", mi, why);
    }
    memrt__plain_table.release(mi);
}

size_t memrt__checked_holders(const memrt_meminfo_t *mi, memrt_holder_t *rows, size_t row_size,
                              size_t room)
{
    memrt__verify_meminfo("holders", mi);
    return memrt__plain_table.holders(mi, rows, row_size, room);
}

memrt_status_t memrt__checked_resizable_new(size_t size, const memrt_new_options_t *options,
                                            memrt_meminfo_t **out)
{
    memrt__verify_options("resizable_new", options);
    return memrt__plain_table.resizable_new(size, options, out);
}

void *memrt__checked_resizable_alloc(memrt_meminfo_t *mi, size_t size)
{
    memrt__verify_resizable_meminfo("resizable_alloc", mi);
    return memrt__plain_table.resizable_alloc(mi, size);
}

void *memrt__checked_resizable_realloc(memrt_meminfo_t *mi, size_t size)
{
    memrt__verify_resizable_meminfo("resizable_realloc", mi);
    return memrt__plain_table.resizable_realloc(mi, size);
}

memrt_status_t memrt__checked_resizable_try_expand(memrt_meminfo_t *mi, size_t size)
{
    memrt__verify_resizable_meminfo("resizable_try_expand", mi);
    return memrt__plain_table.resizable_try_expand(mi, size);
}

memrt_status_t memrt__checked_resizable_new_reserved(size_t size, size_t reserve,
                                                     const memrt_new_options_t *options,
                                                     memrt_meminfo_t **out)
{
    memrt__verify_options("resizable_new_reserved", options);
    return memrt__plain_table.resizable_new_reserved(size, reserve, options, out);
}

memrt_status_t memrt__checked_resizable_try_shrink(memrt_meminfo_t *mi, size_t size)
{
    memrt__verify_resizable_meminfo("resizable_try_shrink", mi);
    return memrt__plain_table.resizable_try_shrink(mi, size);
}

void memrt__checked_resizable_free(memrt_meminfo_t *mi, void *data)
{
    memrt__verify_resizable_meminfo("resizable_free", mi);
    if (data != NULL) {
        memrt__verify_block("resizable_free", data);
    }
    memrt__plain_table.resizable_free(mi, data);
}
