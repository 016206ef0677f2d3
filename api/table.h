#ifndef MEMRT_API_TABLE_H
#define MEMRT_API_TABLE_H

#include <memrt/external.h>

/// The tables that memrt_get_api hands out: one shape, two sets of functions.

extern const memrt_api_t memrt__plain_table;

/// Fill the table whose functions verify what they are given before they call the plain ones.
const memrt_api_t *memrt__checking_table(void);

#endif
