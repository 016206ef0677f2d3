#ifndef MEMRT_API_COUNTING_TABLE_H
#define MEMRT_API_COUNTING_TABLE_H

#include <memrt/external.h>

/// Return the table that counts reference operations and then calls `base`, the plain or the
/// checking table. All calls in a process have the same `base`.
const memrt_api_t *memrt__counting_table(const memrt_api_t *base);

#endif
