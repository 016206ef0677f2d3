#ifndef MEMRT_POLICY_REFERENCE_COUNTS_H
#define MEMRT_POLICY_REFERENCE_COUNTS_H

#include <memrt/meminfo.h>
#include <memrt/observe/reference_counts.h>

#include "runtime/base/check.h"

/// Counts of reference operations, for the process and for each base policy. A subpolicy counts at
/// its base.

/// Count a reference that was acquired.
void memrt__reference_counts_acquired(const memrt_meminfo_t *mi);

/// Count a reference that is about to be released. A freed MemInfo counts for the process alone if
/// its header no longer names a policy.
void memrt__reference_counts_released(const memrt_meminfo_t *mi);

/// Implement memrt_api_t.reference_counts.
memrt_status_t memrt__reference_counts_read(const memrt_policy_t *policy,
                                            memrt_reference_counts_t *out) MEMRT_MUST_CHECK;

#endif
