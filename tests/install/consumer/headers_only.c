/// Source file of a user that includes the headers and links no library.

#include <memrt/memrt.h>

size_t size_of(const memrt_api_t *api, const memrt_meminfo_t *mi)
{
    return api->size(mi);
}
