#ifndef MEMRT_MEMINFO_NAMED_H
#define MEMRT_MEMINFO_NAMED_H

#include "runtime/meminfo/meminfo.h"

/// References under a name: acquire_as, release_as and holders of memrt_api_t.

memrt_status_t memrt__named_acquire(memrt_meminfo_t *mi, memrt_holder_kind_t kind,
                                    const char *name) MEMRT_MUST_CHECK;
void memrt__named_release(memrt_meminfo_t *mi, memrt_holder_kind_t kind, const char *name);
size_t memrt__named_holders(const memrt_meminfo_t *mi, memrt_holder_t *rows, size_t row_size,
                            size_t room);

/// Put a good name to a reference that is there, or is born next. False: no memory.
bool memrt__named_note(memrt_meminfo_t *mi, memrt_holder_kind_t kind, const char *name);

/// Take the name from a reference, which stays. False: none was taken under that name.
bool memrt__named_drop(memrt_meminfo_t *mi, memrt_holder_kind_t kind, const char *name);

#endif
