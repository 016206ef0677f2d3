#ifndef MEMRT_MEMRT_H
#define MEMRT_MEMRT_H

/// Main header for C programs without Python. Call `memrt_get_api(MEMRT_ABI_MAJOR, &why)` to get
/// the function table.

#include <memrt/external.h>

#endif
