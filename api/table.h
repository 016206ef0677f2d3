#ifndef MEMRT_API_TABLE_H
#define MEMRT_API_TABLE_H

#include <memrt/external.h>

#include "runtime/base/atomics.h"

/// The tables that memrt_get_api hands out: one shape, two sets of functions.

/// Whether get_data was asked by memrt_api_of_nrt().
static inline bool memrt__is_probe(const memrt_meminfo_t *mi)
{
    return memrt__load_relaxed(&mi->refct) == MEMRT_PROBE && mi->dtor_info == mi;
}

extern const memrt_api_t memrt__plain_table;

/// Fill the table whose functions verify what they are given before they call the plain ones.
const memrt_api_t *memrt__checking_table(void);

#endif
