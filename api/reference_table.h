#ifndef MEMRT_API_REFERENCE_TABLE_H
#define MEMRT_API_REFERENCE_TABLE_H

#include <memrt/external.h>

/// Return the table that counts and logs reference operations, as far as the options ask for both,
/// and else calls the checking table in checking mode, or the plain table.
const memrt_api_t *memrt__reference_table(void);

#endif
