/// A block that nobody knows of any more: the leak checks of AddressSanitizer and memcheck must
/// tell.

#include <memrt/memrt.h>

int main(void)
{
    const memrt_api_t *api = memrt_get_api(MEMRT_ABI_MAJOR, NULL);
    memrt_meminfo_t *volatile mi = api->allocate(4096);
    mi = api->allocate(100); /* another hides where the first was */
    api->release(mi);
    mi = NULL;
    return 0;
}
