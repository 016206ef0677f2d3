#ifndef MEMRT_THREAD_SHARD_LAYOUT_H
#define MEMRT_THREAD_SHARD_LAYOUT_H

#include <stddef.h>

#include <memrt/meminfo.h>

/// Layout of a shard, the counters of one thread for one account. runtime/stats/shard.h counts.

/// Maximum number of accounts.
#define MEMRT__ACCOUNTS 4096u

/// Kind of a tiny block in the counters. Outside of the counters, a tiny block is a plain block.
#define MEMRT__KIND_TINY (MEMRT_KIND_BLOCK + 1)
#define MEMRT__KINDS (MEMRT__KIND_TINY + 1)

/// Counters of one thread for one account.
///
/// Counters form pairs: an "in" word for additions and an "out" word for removals. The owner writes
/// "out" words with release, after the "in" words of the same blocks. A reader that loads "out"
/// words first (acquire) and "in" words later never sees more removals than additions.
///
/// "Own" marks a member that only the owning thread writes.
typedef struct memrt__shard {
    size_t bytes_in, bytes_out; ///< own; sizes as requested
    /* The gauge: changes of bytes_in - bytes_out, as signed numbers, since the last report. */
    size_t high;      ///< own; maximum of bytes_in - bytes_out since that report, before a climb
    size_t low;       ///< own; bytes in use below this value are reported
    size_t rise_left; ///< own, no other reader; allocated bytes up to the next slow path
    size_t fall_left; ///< own, no other reader; freed bytes up to the next slow path
    size_t reported;  ///< own; value at the last report; equal to `low` at rest
    size_t falls;     ///< own, release; number of reports of a decrease
    size_t made[MEMRT__KINDS];        ///< own; allocated blocks by memrt_kind_t
    size_t freed[MEMRT__KINDS];       ///< own; freed blocks by memrt_kind_t
    size_t promoted_in, promoted_out; ///< own; blocks that became MemInfos
    size_t extra_in, extra_out;       ///< own; bytes from allocators beyond header and data
    size_t adopted_in, adopted_out;   ///< own; bytes of adopted buffers
    size_t exported_in, exported_out; ///< own; references exported to other libraries
    size_t realloc;                   ///< own; resized blocks
    size_t failed;                    ///< own; refused requests
    size_t *sizes; ///< own; allocations by size, MEMRT_SIZE_BINS words; NULL: not counted
    size_t climbs; ///< own; starts and ends of climbs; odd while bytes in use may exceed `high`
} memrt__shard_t;

_Static_assert((sizeof(memrt__shard_t) & (sizeof(memrt__shard_t) - 1)) == 0,
               "the address of a shard by index needs no multiplication");

#endif
