#include "runtime/alloc/cold_pages.h"

#include <stdint.h>

#include "runtime/base/size.h"
#include "runtime/os/os.h"

memrt_status_t memrt__pages_cold(const void *address, size_t size, int pageout, size_t *bytes)
{
    size_t page = memrt__os_page_size(), lead = (size_t)(-(uintptr_t)address & (page - 1));
    *bytes = size > lead ? (size - lead) / page * page : 0;
    if (size > UINTPTR_MAX - (uintptr_t)address) {
        return MEMRT_EINVAL;
    }
    char *start = (char *)(uintptr_t)address + lead;
    return *bytes == 0 || memrt__os_cold(start, *bytes, pageout != 0) ? MEMRT_OK : MEMRT_ENOTSUP;
}
