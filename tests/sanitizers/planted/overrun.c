/// Write past the end of a block. AddressSanitizer and memcheck must report the write.

#include <memrt/memrt.h>

int main(void)
{
    const memrt_api_t *api = memrt_get_api(MEMRT_ABI_MAJOR, NULL);
    memrt_meminfo_t *mi = api->allocate(4096);
    volatile char *data = api->get_data(mi);
    data[4096] = 1;
    api->release(mi);
    return 0;
}
