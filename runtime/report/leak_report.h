#ifndef MEMRT_REPORT_LEAK_REPORT_H
#define MEMRT_REPORT_LEAK_REPORT_H

#include <stdint.h>

#include <memrt/status.h>

/// Leak report at process exit, and suppressions for allocations that are meant to stay.

/// Register the report that MEMRT_LEAKS requests for the exit of the process. Call once.
void memrt__leak_report_start(void);

/// Implement the members of memrt_api_t with the same names.
memrt_status_t memrt__suppression_add(const char *pattern, const char *what) MEMRT_MUST_CHECK;
const char *memrt__suppression_at(uint32_t site);

#endif
