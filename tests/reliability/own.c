/* Export memrt's own allocators as tables, which the conformance kit finds by symbol name. */

#include <stdlib.h>

#include <memrt/memrt.h>

memrt_allocator_t own_default, own_system, own_mapped, own_guard, own_guard_over_mapped;

static void guard(const memrt_api_t *api, const memrt_allocator_t *upstream, memrt_allocator_t *out)
{
    if (api->allocator_guard(upstream, out) != MEMRT_OK) {
        abort();
    }
}

__attribute__((constructor)) static void fill(void)
{
    const memrt_api_t *api = memrt_get_api(MEMRT_ABI_MAJOR, NULL);
    if (api == NULL) {
        abort();
    }
    own_default = *api->allocator_default();
    own_system = *api->allocator_system();
    own_mapped = *api->allocator_mapped();
    guard(api, api->allocator_default(), &own_guard);
    guard(api, api->allocator_mapped(), &own_guard_over_mapped);
}
