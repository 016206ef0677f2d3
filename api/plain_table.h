#ifndef MEMRT_API_PLAIN_TABLE_H
#define MEMRT_API_PLAIN_TABLE_H

#include <memrt/external.h>

#include "runtime/base/atomics.h"

/// Table of functions without verification of arguments.

/// Return whether `mi` is the probe of memrt_api_of_nrt(), instead of a MemInfo.
static inline bool memrt__is_probe(const memrt_meminfo_t *mi)
{
    return memrt__load_relaxed(&mi->refct) == MEMRT_PROBE && mi->dtor_info == mi;
}

extern const memrt_api_t memrt__plain_table;

/// Return the data of `mi`; for the probe of memrt_api_of_nrt(), the plain table.
void *memrt__plain_get_data(memrt_meminfo_t *mi);

#endif
