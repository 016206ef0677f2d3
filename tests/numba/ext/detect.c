/* Report the result of memrt_api_of_nrt for the table that jitted code passes. */

#include <memrt/memrt.h>

const void *detect(const void *nrt)
{
    return memrt_api_of_nrt(nrt);
}

uint64_t features(const void *nrt)
{
    const memrt_api_t *api = memrt_api_of_nrt(nrt);
    return api == NULL || !MEMRT_HAS(api, features) ? 0 : api->features;
}

const char *version(const void *nrt)
{
    const memrt_api_t *api = memrt_api_of_nrt(nrt);
    return api == NULL ? "" : api->version;
}

size_t table_size(const void *nrt)
{
    const memrt_api_t *api = memrt_api_of_nrt(nrt);
    return api == NULL ? 0 : api->struct_size;
}
