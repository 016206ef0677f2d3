/// Passes memrt's table to the caller as Numba's six-slot table, and checks the statistics.

#include <memrt/memrt.h>

#include "caller.h"
#include "expect.h"

_Static_assert(sizeof(NRT_api_functions) == offsetof(memrt_api_t, struct_size),
               "the slots of memrt follow the table of Numba");
_Static_assert(offsetof(NRT_api_functions, allocate) == offsetof(memrt_api_t, allocate), "slot 0");
_Static_assert(offsetof(NRT_api_functions, allocate_external) ==
                   offsetof(memrt_api_t, allocate_external),
               "slot 1");
_Static_assert(offsetof(NRT_api_functions, manage_memory) == offsetof(memrt_api_t, manage_memory),
               "slot 2");
_Static_assert(offsetof(NRT_api_functions, acquire) == offsetof(memrt_api_t, acquire), "slot 3");
_Static_assert(offsetof(NRT_api_functions, release) == offsetof(memrt_api_t, release), "slot 4");
_Static_assert(offsetof(NRT_api_functions, get_data) == offsetof(memrt_api_t, get_data), "slot 5");
_Static_assert(sizeof(NRT_ExternalAllocator) == sizeof(memrt_external_allocator_t),
               "size of the allocator struct");
_Static_assert(offsetof(NRT_ExternalAllocator, opaque_data) ==
                   offsetof(memrt_external_allocator_t, opaque_data),
               "context of the allocator");

int main(void)
{
    const memrt_api_t *api = memrt_get_api(MEMRT_ABI_MAJOR, NULL);
    EXPECT(api != NULL);
    use_nrt((const NRT_api_functions *)(const void *)api);
    memrt_stats_t stats = {.struct_size = sizeof(stats)};
    EXPECT(api->stats_read(NULL, &stats) == MEMRT_OK);
    EXPECT(stats.mi_alloc == 3 && stats.mi_free == 3 && stats.failed == 1 && stats.live == 0);
    printf("%zu MemInfos allocated and freed\n", (size_t)stats.mi_free);
    return 0;
}
