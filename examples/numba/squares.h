#ifndef SQUARES_H
#define SQUARES_H

#include <memrt/memrt.h>

/// `nrt` is the pointer that Numba's NRT_get_api() returns in jitted code.

/// Return 1 if Numba runs on a memrt with the same major ABI version, else 0.
int squares_on_memrt(const void *nrt);

/// Return a new MemInfo with the squares of 0 to `count` - 1 as doubles. On memrt the data is
/// aligned to 4096 bytes and the MemInfo has a name.
///
/// Ownership: the caller gets a new reference.
/// Failure:   returns NULL when out of memory.
memrt_meminfo_t *squares_new(const void *nrt, size_t count);

#endif
