#include "api/checking_table.h"

#include "api/checked_slots.h"
#include "api/plain_table.h"
#include "api/slots.h"
#include "api/verify_meminfo.h"
#include "runtime/observe/address_hint.h"
#include "runtime/observe/live_set.h"

/// Return whether `mi` is the probe of memrt_api_of_nrt(). The memory at `mi` is read only if the
/// address is not live, was not freed lately, and does not consist of poison bytes.
static bool is_probe(const memrt_meminfo_t *mi)
{
    memrt__live_removed_t removed;
    return !memrt__live_contains((uintptr_t)mi) &&
           !memrt__live_find_removed((uintptr_t)mi, &removed) &&
           memrt__address_hint((uintptr_t)mi) == NULL && memrt__is_probe(mi);
}

void *memrt__checked_get_data(memrt_meminfo_t *mi)
{
    if (is_probe(mi)) {
        return (void *)(uintptr_t)&memrt__checking_table;
    }
    memrt__verify_meminfo("get_data", mi);
    return memrt__plain_table.get_data(mi);
}

#define PLAIN(slot, function) .slot = (function),
#define CHECKED(slot, function) .slot = memrt__checked_##slot,

const memrt_api_t memrt__checking_table = {
    MEMRT__SLOTS(PLAIN, CHECKED) MEMRT__PROPERTIES,
    .features = MEMRT__FEATURES | MEMRT_FEATURE_CHECKING,
};
