#ifndef MEMRT_ALLOC_COLD_PAGES_H
#define MEMRT_ALLOC_COLD_PAGES_H

#include <memrt/allocator/file.h>

/// Advice to the system about memory that is not needed soon.

/// See memrt_api_t.pages_cold.
memrt_status_t memrt__pages_cold(const void *address, size_t size, int pageout, size_t *bytes);

#endif
