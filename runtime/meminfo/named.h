#ifndef MEMRT_MEMINFO_NAMED_H
#define MEMRT_MEMINFO_NAMED_H

#include <memrt/meminfo/holder.h>

#include "runtime/meminfo/meminfo.h"

/// Named references: the slots acquire_as, release_as and holders of memrt_api_t.

memrt_status_t memrt__named_acquire(memrt_meminfo_t *mi, memrt_holder_kind_t kind,
                                    const char *name) MEMRT_MUST_CHECK;
void memrt__named_release(memrt_meminfo_t *mi, memrt_holder_kind_t kind, const char *name);
size_t memrt__named_holders(const memrt_meminfo_t *mi, memrt_holder_t *rows, size_t row_size,
                            size_t room);

/// Record a valid name for a reference that the caller holds or is about to create. Does not change
/// the count. False: out of memory.
bool memrt__named_note(memrt_meminfo_t *mi, memrt_holder_kind_t kind, const char *name);

/// Remove the name from a reference and keep the reference. False: no reference has that kind and
/// name.
bool memrt__named_drop(memrt_meminfo_t *mi, memrt_holder_kind_t kind, const char *name);

#endif
