#ifndef MEMRT_REPORT_SNAPSHOT_H
#define MEMRT_REPORT_SNAPSHOT_H

#include <memrt/observe/snapshot.h>

/// Statistics of all levels at one moment.

/// Implement memrt_api_t.snapshot.
memrt_status_t memrt__snapshot_read(memrt_snapshot_t *snapshot) MEMRT_MUST_CHECK;

#endif
