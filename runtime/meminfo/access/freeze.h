#ifndef MEMRT_MEMINFO_ACCESS_FREEZE_H
#define MEMRT_MEMINFO_ACCESS_FREEZE_H

#include <stdbool.h>

#include <memrt/meminfo/freeze.h>

#include "runtime/base/atomics.h"
#include "runtime/base/check.h"
#include "runtime/meminfo/block_layout.h"

/// Frozen buffers: the slots freeze and thaw of memrt_api_t, and the end of a frozen buffer.

memrt_status_t memrt__freeze(memrt_meminfo_t *mi, size_t *bytes) MEMRT_MUST_CHECK;
memrt_status_t memrt__thaw(memrt_meminfo_t *mi) MEMRT_MUST_CHECK;

/// Make the pages of a buffer writable that was frozen before. False: the system refuses. See
/// memrt__freeze_end().
bool memrt__freeze_end_slow(memrt_meminfo_t *mi) MEMRT_MUST_CHECK;

/// Make the pages of a buffer without holders writable, before the destructor runs or the memory is
/// freed. Returns false if the system refuses: the memory must stay allocated.
static inline bool memrt__freeze_end(memrt_meminfo_t *mi)
{
    return MEMRT__LIKELY((memrt__flags_load_relaxed(&mi->flags) & MEMRT__FLAG_FROZEN) == 0) ||
           memrt__freeze_end_slow(mi);
}

#endif
