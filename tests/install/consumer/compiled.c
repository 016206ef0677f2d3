/* Program that calls the functions of libmemrt_nrt, as object code of Numba does. */

#include <memrt/nrt.h>
#include <stdio.h>

static unsigned long long live(void)
{
    memrt_stats_t stats = {.struct_size = sizeof(stats)};
    return NRT_get_api()->stats_read(NULL, &stats) == MEMRT_OK ? stats.live : 0;
}

int main(void)
{
    memrt_meminfo_t *mi = NRT_MemInfo_alloc_aligned(1000, 64);
    if (mi == NULL) {
        return 1;
    }
    printf("memrt %s: %llu bytes live, ", NRT_get_api()->version, live());
    NRT_MemInfo_release(mi);
    printf("then %llu\n", live());
    return 0;
}
