#ifndef MEMRT_ALLOC_HEAP_FOOTPRINT_H
#define MEMRT_ALLOC_HEAP_FOOTPRINT_H

#include <stddef.h>

/// Footprint: blocks of the heap in use, and their pages, in bytes.
typedef struct memrt__footprint {
    size_t allocated; ///< blocks in use, rounded to size classes or to steps of mappings
    size_t active;    ///< spans with a block in use or in a thread cache, and mappings in use
    size_t cached;    ///< free units that may have pages, and cached mappings
} memrt__footprint_t;

/// Read the footprint. Takes the locks of the classes, one after the other, then the locks of ranks
/// THREADS and LARGE_CACHE. Invariant: `allocated` is at most `active`, also while other threads
/// work.
memrt__footprint_t memrt__footprint_read(void);

#endif
