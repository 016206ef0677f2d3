#ifndef MEMRT_MEMINFO_LOOKUP_H
#define MEMRT_MEMINFO_LOOKUP_H

#include <memrt/meminfo/locate.h>
#include <memrt/observe/tracking.h>

#include "runtime/meminfo/meminfo.h"

/// Look up MemInfos by data address and list live buffers: the slots find, live, buffers,
/// buffer_read, locate and live_free of memrt_api_t.

memrt_status_t memrt__lookup_find(const void *data, memrt_meminfo_t **out) MEMRT_MUST_CHECK;
memrt_status_t memrt__lookup_live(memrt_live_t **out, size_t *count) MEMRT_MUST_CHECK;
memrt_status_t memrt__lookup_buffers(size_t row_size, void **out, size_t *count) MEMRT_MUST_CHECK;
memrt_status_t memrt__lookup_buffer_read(const memrt_meminfo_t *mi, size_t row_size,
                                         void *out) MEMRT_MUST_CHECK;
memrt_status_t memrt__lookup_locate(const void *address, memrt_location_t *out) MEMRT_MUST_CHECK;
void memrt__lookup_live_free(memrt_live_t *list);

#endif
