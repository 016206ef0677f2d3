#include <memrt/nrt.h>

#include <stdio.h>
#include <stdlib.h>

#include "numba/alloc.h"
#include "numba/host.h"

/// Functions that object code of Numba calls by name. Numba's Python process gets the same
/// functions from the dict `c_helpers` of the extension module.

const memrt_api_t *memrt__nrt_table;

/// Assert the offset of a member that object code of Numba reads and writes.
#define MEMBER_AT(TYPE, MEMBER, OFFSET)                                                            \
    _Static_assert(offsetof(TYPE, MEMBER) == (OFFSET), #MEMBER " moved")

MEMBER_AT(memrt_nrt_array2_t, meminfo, 0);
MEMBER_AT(memrt_nrt_array2_t, nitems, 16);
MEMBER_AT(memrt_nrt_array2_t, data, 32);
MEMBER_AT(memrt_nrt_array2_t, shape, 40);
MEMBER_AT(memrt_nrt_array2_t, strides, 56);
MEMBER_AT(memrt_nrt_string_t, length, 8);
MEMBER_AT(memrt_nrt_string_t, is_ascii, 20);
MEMBER_AT(memrt_nrt_string_t, meminfo, 32);
_Static_assert(sizeof(memrt_nrt_string_t) == 48, "a member was added");

/// Get the table when the library is loaded, which is before any object code of Numba can run.
__attribute__((constructor)) static void get_table(void)
{
    const char *why = NULL;
    memrt__nrt_table = memrt_get_api(MEMRT_ABI_MAJOR, &why);
    if (memrt__nrt_table == NULL) {
        fprintf(stderr, "memrt: libmemrt_nrt cannot use the loaded libmemrt: %s\n", why);
        abort();
    }
}

memrt_meminfo_t *NRT_MemInfo_alloc(size_t size)
{
    return memrt__nrt_alloc(size);
}

memrt_meminfo_t *NRT_MemInfo_alloc_safe(size_t size)
{
    return memrt__nrt_alloc_safe(size);
}

memrt_meminfo_t *NRT_MemInfo_alloc_aligned(size_t size, unsigned align)
{
    return memrt__nrt_alloc_aligned(size, align);
}

memrt_meminfo_t *NRT_MemInfo_alloc_safe_aligned(size_t size, unsigned align)
{
    return memrt__nrt_alloc_safe_aligned(size, align);
}

memrt_meminfo_t *NRT_MemInfo_alloc_safe_aligned_external(size_t size, unsigned align,
                                                         memrt_external_allocator_t *allocator)
{
    return memrt__nrt_alloc_safe_aligned_external(size, align, allocator);
}

memrt_meminfo_t *NRT_MemInfo_alloc_dtor(size_t size, memrt_dtor_fn dtor)
{
    return memrt__nrt_alloc_dtor(size, dtor);
}

memrt_meminfo_t *NRT_MemInfo_alloc_dtor_safe(size_t size, memrt_dtor_fn dtor)
{
    return memrt__nrt_alloc_dtor_safe(size, dtor);
}

void NRT_MemInfo_call_dtor(memrt_meminfo_t *mi)
{
    memrt__nrt_table->call_dtor(mi);
}

memrt_meminfo_t *NRT_MemInfo_new_varsize(size_t size)
{
    return memrt__nrt_new_varsize(size);
}

memrt_meminfo_t *NRT_MemInfo_new_varsize_dtor(size_t size, memrt_dtor_fn dtor)
{
    return memrt__nrt_new_varsize_dtor(size, dtor);
}

void *NRT_MemInfo_varsize_alloc(memrt_meminfo_t *mi, size_t size)
{
    return memrt__nrt_table->resizable_alloc(mi, size);
}

void *NRT_MemInfo_varsize_realloc(memrt_meminfo_t *mi, size_t size)
{
    return memrt__nrt_table->resizable_realloc(mi, size);
}

void NRT_MemInfo_varsize_free(memrt_meminfo_t *mi, void *data)
{
    memrt__nrt_table->resizable_free(mi, data);
}

void *NRT_MemInfo_data(memrt_meminfo_t *mi)
{
    return memrt__nrt_table->get_data(mi);
}

void NRT_MemInfo_release(memrt_meminfo_t *mi)
{
    memrt__nrt_table->release(mi);
}

void *NRT_Allocate(size_t size)
{
    return memrt__nrt_allocate(size);
}

void NRT_Free(void *data)
{
    memrt__nrt_free(data);
}

const memrt_api_t *NRT_get_api(void)
{
    return memrt__nrt_table;
}

memrt_external_allocator_t *_nrt_get_sample_external_allocator(void)
{
    return memrt__nrt_sample_external_allocator();
}
