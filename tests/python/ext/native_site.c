/* Allocates in a function that only the symbol table knows. */

#include <Python.h>

#include <memrt/import.h>

__attribute__((noinline)) static void *allocate_in_helper(const memrt_api_t *api, size_t size)
{
    void *data = api->block_alloc(NULL, size);
    return data;
}

void *allocate_in_library(size_t size)
{
    const memrt_api_t *api = memrt_import();
    void *data = api == NULL ? NULL : allocate_in_helper(api, size);
    return data;
}

void free_in_library(void *data)
{
    const memrt_api_t *api = memrt_import();
    if (api != NULL) {
        api->block_free(NULL, data, 0);
    }
}
