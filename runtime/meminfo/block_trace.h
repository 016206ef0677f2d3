#ifndef MEMRT_MEMINFO_BLOCK_TRACE_H
#define MEMRT_MEMINFO_BLOCK_TRACE_H

#include <memrt/meminfo.h>

#include "runtime/policy/policy.h"
#include "runtime/trace/event_trace.h"

/// Write block events to the event trace that is being recorded.

/// Record the allocation of a block. False: no block number was left; later events of the block
/// must not be recorded.
bool memrt__block_trace_alloc(memrt_meminfo_t *mi, uint32_t site);

/// Record a resize. Ignores a block whose allocation belongs to an earlier trace.
void memrt__block_trace_resize(const memrt_meminfo_t *mi);
/// Record that a block is about to be freed. Ignores a block of an earlier trace.
void memrt__block_trace_free(const memrt_meminfo_t *mi);

/// Record a failed request for `size` bytes.
void memrt__block_trace_failure(memrt_policy_t *policy, size_t size);

#endif
