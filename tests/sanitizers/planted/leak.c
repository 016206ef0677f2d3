/// Leak a block without any pointer to the block. The leak checks of AddressSanitizer and memcheck
/// must report it.

#include <memrt/memrt.h>

int main(void)
{
    const memrt_api_t *api = memrt_get_api(MEMRT_ABI_MAJOR, NULL);
    memrt_meminfo_t *volatile mi = api->allocate(4096);
    mi = api->allocate(100); /* overwrites the pointer to the first block */
    api->release(mi);
    mi = NULL;
    return 0;
}
