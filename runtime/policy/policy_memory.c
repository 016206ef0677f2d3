#include "runtime/policy/policy_memory.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/shield.h"
#include "runtime/config/fault_injection.h"
#include "runtime/os/os.h"

memrt_policy_t *memrt__policy_memory_alloc(void)
{
    MEMRT__KEEP_ERRNO;
    memrt_policy_t *policy =
        memrt__fault_is_due() ? NULL : aligned_alloc(MEMRT__CACHE_LINE, sizeof(*policy));
    if (policy != NULL) {
        memset(policy, 0, sizeof(*policy));
    }
    return policy;
}

static size_t get_policy_mapping_bytes(void)
{
    size_t page = memrt__os_page_size();
    return (sizeof(memrt_policy_t) + page - 1) & ~(page - 1);
}

memrt_policy_t *memrt__policy_memory_map(void)
{
    return memrt__fault_is_due()
               ? NULL
               : memrt__os_map(get_policy_mapping_bytes(), 0, memrt__os_page_size());
}

void memrt__policy_memory_free(memrt_policy_t *policy)
{
    if (memrt__is_fork_account(policy)) {
        (void)memrt__os_unmap(policy,
                              get_policy_mapping_bytes()); /* if refused, the pages are lost */
    } else {
        free(policy);
    }
}
