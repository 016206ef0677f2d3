#ifndef MEMRT_MEMINFO_TRACED_H
#define MEMRT_MEMINFO_TRACED_H

#include <memrt/meminfo.h>

#include "runtime/alloc/policy.h"
#include "runtime/debug/trace.h"

/// Blocks as events of the trace that is recorded.

/// A block is born. False: it has no number, and what becomes of it is not to be told.
bool memrt__traced_birth(memrt_meminfo_t *mi, uint32_t site);

/// A block of the trace, or of one before, has another size; or it is about to go.
void memrt__traced_resize(const memrt_meminfo_t *mi);
void memrt__traced_death(const memrt_meminfo_t *mi);

/// A request for so many bytes was refused.
void memrt__traced_failure(memrt_policy_t *policy, size_t size);

#endif
