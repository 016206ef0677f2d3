/// Library of a user for ctypes: creates a buffer through the table of the linked libmemrt.

#include <memrt/memrt.h>

__attribute__((visibility("default"))) memrt_meminfo_t *make(size_t size)
{
    const memrt_api_t *api = memrt_get_api(MEMRT_ABI_MAJOR, NULL);
    return api ? api->allocate(size) : NULL;
}

__attribute__((visibility("default"))) void drop(memrt_meminfo_t *mi)
{
    memrt_get_api(MEMRT_ABI_MAJOR, NULL)->release(mi);
}
