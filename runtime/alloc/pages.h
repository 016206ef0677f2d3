#ifndef MEMRT_ALLOC_PAGES_H
#define MEMRT_ALLOC_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/// Runs of pages for blocks of one class: spans. They are cut from segments, mappings of 4 MiB at a
/// multiple of 4 MiB that begin with a table of what lies where, so that any address in a span
/// leads to it.
///
/// A long span that was given back lies whole for the next of its length, until its units are
/// wanted for another.
///
/// Pages are counted in units of 8 KiB. A free unit is dirty from its first use until it is given
/// back to the system, which a purge does with those that stayed free since the purge before.
///
/// Invariant: dirty free units and those in spans are no more than were in spans at once before,
/// plus memrt__spare().

#define MEMRT__UNIT ((size_t)8 << 10)
#define MEMRT__SEGMENT ((size_t)4 << 20)
#define MEMRT__SPAN_MAX ((size_t)2 << 20) ///< bytes

/// A run of units and the blocks in it.
///
///     | handed out before: in use, cached by a thread, or in `free` | never handed out |
///     ^ base                                                        ^ fresh        end ^
///
/// Between base and fresh lie `used` blocks plus those in `free`. Fixed after memrt__pages_take():
/// base, end, bytes, class, units, clean. The rest is under the lock of the class.
typedef struct memrt__span {
    struct memrt__span *next, *prev; ///< spans of the class that have a block to give
    char *base, *end;
    char *fresh;   ///< first block that was never handed out
    void *free;    ///< blocks given back, linked by memrt__block_next()
    size_t bytes;  ///< of a block
    uint32_t used; ///< blocks in use or cached by a thread
    uint16_t units;
    uint8_t class;
    bool clean; ///< nothing was in these units since the system gave them: fresh blocks are zero
} memrt__span_t;

/// Blocks that nobody uses are linked through their second word: the first holds a count of
/// references, which stays 0.
static inline void **memrt__block_next(void *block)
{
    return (void **)block + 1;
}

/// New span with `units` units. NULL: out of memory.
memrt__span_t *memrt__pages_take(size_t units);

/// Give a span's units back for reuse.
void memrt__pages_give(memrt__span_t *span);

/// The span that an address in a block lies in.
memrt__span_t *memrt__pages_span_of(const void *address);

/// Give the system what was free since the last call, or, with `all`, all that is free; returns
/// bytes.
size_t memrt__pages_purge(bool all);

/// Advise huge pages for all segments that there are, or none. New ones go by MEMRT_HUGEPAGES.
void memrt__pages_advise(bool huge);

/// Dirty bytes that are in no span, and bytes in spans, as they were a moment ago.
size_t memrt__pages_cached(void);
size_t memrt__pages_used(void);

#endif
