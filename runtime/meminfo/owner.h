#ifndef MEMRT_MEMINFO_OWNER_H
#define MEMRT_MEMINFO_OWNER_H

#include <memrt/tracking.h>

#include "runtime/meminfo/meminfo.h"

/// Who owns an address, and who is alive: find, live, buffers, buffer_read and live_free of
/// memrt_api_t.

memrt_status_t memrt__owner_find(const void *data, memrt_meminfo_t **out) MEMRT_MUST_CHECK;
memrt_status_t memrt__owner_live(memrt_live_t **out, size_t *count) MEMRT_MUST_CHECK;
memrt_status_t memrt__owner_buffers(size_t row_size, void **out, size_t *count) MEMRT_MUST_CHECK;
memrt_status_t memrt__owner_buffer_read(const memrt_meminfo_t *mi, size_t row_size,
                                        void *out) MEMRT_MUST_CHECK;
void memrt__owner_live_free(memrt_live_t *list);

#endif
