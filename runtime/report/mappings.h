#ifndef MEMRT_REPORT_MAPPINGS_H
#define MEMRT_REPORT_MAPPINGS_H

#include <memrt/process/process.h>

/// Mappings of memrt, for the account of the memory of the process.

/// Implement memrt_api_t.mappings.
memrt_status_t memrt__mappings_read(memrt_mapping_t *out, size_t *count) MEMRT_MUST_CHECK;

#endif
