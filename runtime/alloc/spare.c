#include "runtime/alloc/spare.h"

#include "runtime/alloc/allocator.h"
#include "runtime/base/atomics.h"
#include "runtime/base/os.h"
#include "runtime/base/size.h"

/* Relaxed; two that look at once see the same. */
static size_t spare = MEMRT__SPARE_MIN;
static size_t due;

void memrt__spare_look(uint64_t now)
{
    if (now >= memrt__load_relaxed(&due)) {
        size_t share = memrt__os_resident() / MEMRT__SPARE_SHARE;
        memrt__store_relaxed(&spare, memrt__size_max(share, MEMRT__SPARE_MIN));
        memrt__system_learn(share / 2);
        memrt__store_relaxed(&due, now + MEMRT__SPARE_NS);
    }
}

size_t memrt__spare(void)
{
    return memrt__load_relaxed(&spare);
}
