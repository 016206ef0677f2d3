/// Branch on an uninitialised word of a fresh block. Memcheck must report the branch.

#include <stddef.h>
#include <stdio.h>

#include <memrt/memrt.h>

int main(void)
{
    const memrt_api_t *api = memrt_get_api(MEMRT_ABI_MAJOR, NULL);
    memrt_meminfo_t *mi = api->allocate(4096);
    const volatile size_t *word = api->get_data(mi);
    puts(*word == 7 ? "seven" : "another");
    api->release(mi);
    return 0;
}
