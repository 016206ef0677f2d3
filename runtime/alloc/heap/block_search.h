#ifndef MEMRT_ALLOC_HEAP_BLOCK_SEARCH_H
#define MEMRT_ALLOC_HEAP_BLOCK_SEARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/// Search for the memory of a block of the heap by any address in the block. No lock is taken, and
/// tables are read by a system call that fails for unmapped addresses. While other threads change
/// the tables, the result may be out of date.

/// Memory around an address: a block of a size class, or a mapping for one block.
typedef struct memrt__heap_room {
    uintptr_t start; ///< first byte; of a mapping, the first byte of the first page
    size_t bytes;
    unsigned class; ///< MEMRT__CLASSES: a mapping
} memrt__heap_room_t;

/// Find the memory of the block that contains `address`. The block may be free. False: the address
/// is in no block of the heap.
bool memrt__heap_search(uintptr_t address, memrt__heap_room_t *out);

#endif
