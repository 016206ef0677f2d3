#ifndef MEMRT_API_COUNTING_TABLE_H
#define MEMRT_API_COUNTING_TABLE_H

#include <memrt/external.h>

/// Return the table that counts reference operations, and then calls the checking table in checking
/// mode, or the plain table.
const memrt_api_t *memrt__counting_table(void);

#endif
