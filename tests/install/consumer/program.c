/// Program of a user: creates a buffer through the table, fills the buffer and releases it.

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <memrt/memrt.h>

static uint64_t live(const memrt_api_t *api)
{
    memrt_stats_t stats = {.struct_size = sizeof stats};
    return api->stats_read(NULL, &stats) == MEMRT_OK ? stats.live : UINT64_MAX;
}

int main(void)
{
    const char *why = NULL;
    const memrt_api_t *api = memrt_get_api(MEMRT_ABI_MAJOR, &why);
    if (api == NULL) {
        fprintf(stderr, "%s\n", why);
        return 1;
    }
    memrt_meminfo_t *mi = api->allocate(1000);
    if (mi == NULL)
        return 1;
    memset(api->get_data(mi), 7, 1000);
    printf("memrt %s: %" PRIu64 " bytes live", memrt_version(), live(api));
    api->release(mi);
    printf(", then %" PRIu64 "\n", live(api));
    return 0;
}
