#include "api/plain_table.h"

#include "api/slots.h"
#include "runtime/base/compiler.h"

void *memrt__plain_get_data(memrt_meminfo_t *mi)
{
    if (MEMRT__UNLIKELY(memrt__is_probe(mi))) {
        return (void *)(uintptr_t)&memrt__plain_table;
    }
    return mi->data;
}

#define PLAIN(slot, function) .slot = (function),

const memrt_api_t memrt__plain_table = {
    MEMRT__SLOTS(PLAIN, PLAIN) MEMRT__PROPERTIES,
    .features = MEMRT__FEATURES,
};
