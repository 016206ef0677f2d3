/// Code written against Numba's runtime: uses Numba's header and no header of memrt.

#include "caller.h"

#include <string.h>

#include "expect.h"

typedef struct world {
    size_t mallocs, frees;
} world_t;

static void *world_malloc(size_t size, void *opaque_data)
{
    ((world_t *)opaque_data)->mallocs++;
    return malloc(size);
}

static void *world_realloc(void *ptr, size_t new_size, void *opaque_data)
{
    (void)opaque_data;
    return realloc(ptr, new_size);
}

static void world_free(void *ptr, void *opaque_data)
{
    ((world_t *)opaque_data)->frees++;
    free(ptr);
}

static size_t managed_endings;

static void end_managed(void *data)
{
    EXPECT(strcmp(data, "foreign") == 0);
    managed_endings++;
    free(data);
}

static void use_allocate(const NRT_api_functions *nrt)
{
    NRT_MemInfo *mi = nrt->allocate(1000);
    EXPECT(mi != NULL);
    memset(nrt->get_data(mi), 7, 1000);
    nrt->acquire(mi);
    nrt->release(mi);
    EXPECT(((unsigned char *)nrt->get_data(mi))[999] == 7);
    nrt->release(mi);
}

static void use_allocate_external(const NRT_api_functions *nrt)
{
    world_t world = {0, 0};
    NRT_ExternalAllocator allocator = {world_malloc, world_realloc, world_free, &world};
    NRT_MemInfo *mi = nrt->allocate_external(1000, &allocator);
    EXPECT(mi != NULL && world.mallocs == 1);
    memset(nrt->get_data(mi), 7, 1000);
    nrt->release(mi);
    EXPECT(world.frees == 1);
}

static void use_manage_memory(const NRT_api_functions *nrt)
{
    char *foreign = malloc(8);
    EXPECT(foreign != NULL);
    memcpy(foreign, "foreign", 8);
    NRT_MemInfo *mi = nrt->manage_memory(foreign, end_managed);
    EXPECT(mi != NULL && nrt->get_data(mi) == foreign);
    nrt->acquire(mi);
    nrt->release(mi);
    EXPECT(managed_endings == 0);
    nrt->release(mi);
    EXPECT(managed_endings == 1);
}

void use_nrt(const NRT_api_functions *nrt)
{
    use_allocate(nrt);
    use_allocate_external(nrt);
    use_manage_memory(nrt);
    EXPECT(nrt->allocate((size_t)-1) == NULL);
}
