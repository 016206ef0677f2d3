#ifndef MEMRT_REPORT_PLACEMENT_H
#define MEMRT_REPORT_PLACEMENT_H

#include <memrt/allocator/placement.h>

/// See memrt_api_t.placement_read.
memrt_status_t memrt__placement_read(const void *address, size_t size, memrt_placement_t *out);

#endif
