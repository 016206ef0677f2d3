#ifndef MEMRT_MEMINFO_WEAK_H
#define MEMRT_MEMINFO_WEAK_H

#include <memrt/meminfo/weak.h>

#include "runtime/base/compiler.h"

/// Weak handles: the slots weak_new and weak_acquire of memrt_api_t.
///
/// A handle names an entry of the live set by its key and serial number. A free removes the entry
/// under the lock of the partition before the memory can be used again, so a thread that finds the
/// entry under the lock may access the header.

memrt_status_t memrt__weak_new(memrt_meminfo_t *mi, memrt_weak_t *out) MEMRT_MUST_CHECK;
memrt_meminfo_t *memrt__weak_acquire(const memrt_weak_t *weak);

#endif
