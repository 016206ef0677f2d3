#ifndef MEMRT_ALLOC_PLACED_PREFAULT_H
#define MEMRT_ALLOC_PLACED_PREFAULT_H

#include <stddef.h>
#include <stdint.h>

/// Maximum number of threads that give memory to one mapping.
#define MEMRT__PREFAULT_THREADS 64u

/// Give memory to all pages of a range by up to `threads` threads, the caller included. A thread
/// takes at least 8 MiB. The new threads run on processors of `nodes`; 0: on any processor. Returns
/// 0, or the first error number of the system. During a fork, the caller does all the work.
int memrt__prefault(void *start, size_t bytes, unsigned threads, uint64_t nodes);

#endif
