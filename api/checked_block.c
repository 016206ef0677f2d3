#include "api/checked_slots.h"
#include "api/plain_table.h"
#include "api/verify_meminfo.h"
#include "api/verify_policy.h"

void *memrt__checked_block_alloc(void *policy, size_t size)
{
    memrt__verify_source_policy("block_alloc", policy);
    return memrt__plain_table.block_alloc(policy, size);
}

void *memrt__checked_block_calloc(void *policy, size_t count, size_t size)
{
    memrt__verify_source_policy("block_calloc", policy);
    return memrt__plain_table.block_calloc(policy, count, size);
}

void *memrt__checked_block_realloc(void *policy, void *data, size_t size)
{
    if (data == NULL) {
        memrt__verify_source_policy("block_realloc", policy);
    } else {
        memrt__verify_report_policy("block_realloc", policy);
        memrt__verify_block("block_realloc", data);
    }
    return memrt__plain_table.block_realloc(policy, data, size);
}

void memrt__checked_block_free(void *policy, void *data, size_t size)
{
    memrt__verify_report_policy("block_free", policy);
    if (data != NULL) {
        memrt__verify_block("block_free", data);
    }
    memrt__plain_table.block_free(policy, data, size);
}

memrt_status_t memrt__checked_block_meminfo(void *data, memrt_meminfo_t **out)
{
    memrt__verify_data("block_meminfo", data);
    return memrt__plain_table.block_meminfo(data, out);
}

memrt_status_t memrt__checked_block_try_expand(void *data, size_t size)
{
    memrt__verify_redzones("block_try_expand", memrt__verify_data("block_try_expand", data));
    return memrt__plain_table.block_try_expand(data, size);
}

size_t memrt__checked_block_usable_size(const void *data)
{
    memrt__verify_data("block_usable_size", data);
    return memrt__plain_table.block_usable_size(data);
}

size_t memrt__checked_block_good_size(const memrt_policy_t *policy, size_t size)
{
    memrt__verify_source_policy("block_good_size", policy);
    return memrt__plain_table.block_good_size(policy, size);
}
