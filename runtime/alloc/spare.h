#ifndef MEMRT_ALLOC_SPARE_H
#define MEMRT_ALLOC_SPARE_H

#include <stddef.h>
#include <stdint.h>

/// By how much memory that is kept may make the process larger than what it had in use made it: a
/// twentieth of what it has in memory altogether, MEMRT__SPARE_MIN bytes at least. Blocks of
/// several sizes that take turns find each its own warm, where without this each would have to go
/// for the next.

#define MEMRT__SPARE_MIN ((size_t)256 << 10)
#define MEMRT__SPARE_SHARE 20u

/// How long a look at what the process has in memory counts, nanoseconds.
#define MEMRT__SPARE_NS ((uint64_t)50000000)

/// Look again, if the last look at the time `now` of memrt__os_now_ns() does not count any more.
/// malloc is told, too: it serves the rest of the process and may keep as much.
/// Costs a few microseconds: for those who go to the system anyway.
void memrt__spare_look(uint64_t now);

/// Bytes, by the last look.
size_t memrt__spare(void);

#endif
