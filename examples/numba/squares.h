#ifndef SQUARES_H
#define SQUARES_H

#include <memrt/memrt.h>

/// `nrt` is what Numba's NRT_get_api() gives to jitted code.

/// Whether Numba is on a memrt that this was compiled for.
int squares_on_memrt(const void *nrt);

/// New MemInfo with the squares of 0 to `count` - 1 as doubles; NULL: out of memory. On memrt it is
/// aligned to pages and has a name.
memrt_meminfo_t *squares_new(const void *nrt, size_t count);

#endif
