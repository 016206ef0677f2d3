/// Shift an int by more bits than its width. UndefinedBehaviorSanitizer must report the shift.

#include <stdio.h>

#include <memrt/memrt.h>

int main(void)
{
    const memrt_api_t *api = memrt_get_api(MEMRT_ABI_MAJOR, NULL);
    memrt_meminfo_t *mi = api->allocate(4096);
    volatile int places = (int)api->size(mi);
    printf("%d\n", 1 << places);
    api->release(mi);
    return 0;
}
