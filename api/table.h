#ifndef MEMRT_API_TABLE_H
#define MEMRT_API_TABLE_H

#include <memrt/external.h>

#include "runtime/base/atomics.h"

/// Function tables that memrt_get_api() returns: the same slots, with or without verification of
/// arguments.

/// Return whether `mi` is the probe of memrt_api_of_nrt(), instead of a MemInfo.
static inline bool memrt__is_probe(const memrt_meminfo_t *mi)
{
    return memrt__load_relaxed(&mi->refct) == MEMRT_PROBE && mi->dtor_info == mi;
}

extern const memrt_api_t memrt__plain_table;

/// Return the table whose functions verify their arguments and then call the plain functions. The
/// first call fills the table.
const memrt_api_t *memrt__checking_table(void);

#endif
