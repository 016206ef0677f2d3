/* C code for jitted functions. The code allocates results with Numba's current runtime. */

#include "squares.h"

/// Return memrt's complete table if its major ABI version matches the headers, else NULL. On
/// Numba's own runtime the result is NULL, too.
static const memrt_api_t *memrt_of(const void *nrt)
{
    const memrt_api_t *api = memrt_api_of_nrt(nrt);
    return api != NULL && api->abi_major == MEMRT_ABI_MAJOR ? api : NULL;
}

int squares_on_memrt(const void *nrt)
{
    return memrt_of(nrt) != NULL;
}

static memrt_meminfo_t *make(const void *nrt, size_t size)
{
    const memrt_api_t *api = memrt_of(nrt);
    if (api == NULL) { /* the first six slots of the table have Numba's layout */
        return ((const memrt_api_t *)nrt)->allocate(size);
    }
    memrt_meminfo_t *mi;
    memrt_new_options_t options = {
        .struct_size = sizeof(options), .alignment = 4096, .name = "squares"};
    return api->meminfo_new(size, &options, &mi) == MEMRT_OK ? mi : NULL;
}

memrt_meminfo_t *squares_new(const void *nrt, size_t count)
{
    memrt_meminfo_t *mi = make(nrt, count * sizeof(double));
    if (mi != NULL) {
        double *values = ((const memrt_api_t *)nrt)->get_data(mi);
        for (size_t i = 0; i < count; i++) {
            values[i] = (double)i * (double)i;
        }
    }
    return mi;
}
