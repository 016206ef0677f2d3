#ifndef MEMRT_API_CHECKING_TABLE_H
#define MEMRT_API_CHECKING_TABLE_H

#include <memrt/external.h>

/// Table of functions that verify their arguments and then call the plain functions, for
/// MEMRT_CHECK=1.
extern const memrt_api_t memrt__checking_table;

#endif
