#ifndef MEMRT_DEBUG_BIRTHS_H
#define MEMRT_DEBUG_BIRTHS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/// How many buffers each thread made at each site. A thread counts its own, so that those which
/// come by the same site do not wait for one another; sums are taken at read.

typedef struct memrt__births {
    size_t count;
    size_t bytes;
} memrt__births_t;

/// The calling thread made a buffer of `size` bytes at a site, a number from 1 to
/// MEMRT__INTERNED_MAX. False: there was no memory to count it.
bool memrt__births_add(uint32_t site, size_t size);

/// Those that all threads counted at a site. Takes the lock of rank THREADS.
memrt__births_t memrt__births_at(uint32_t site);

#endif
