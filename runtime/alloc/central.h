#ifndef MEMRT_ALLOC_CENTRAL_H
#define MEMRT_ALLOC_CENTRAL_H

#include <stdbool.h>
#include <stddef.h>

/// Blocks of each size class for all threads: cut from spans, taken and given back in lists, a lock
/// for each few classes.

/// Take up to `most` blocks as a list linked by memrt__block_next(), ending in NULL; `taken` is how
/// many. NULL: out of memory.
void *memrt__central_take(unsigned class, size_t most, size_t *taken);

/// Take one; `clean`: it is all zero.
void *memrt__central_take_one(unsigned class, bool *clean);

/// Give the blocks of a list back.
void memrt__central_give(unsigned class, void *list);

/// Bytes of blocks that lie here, for all classes.
size_t memrt__central_cached(void);

#endif
