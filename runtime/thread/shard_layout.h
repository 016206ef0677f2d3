#ifndef MEMRT_THREAD_SHARD_LAYOUT_H
#define MEMRT_THREAD_SHARD_LAYOUT_H

#include <stddef.h>

#include <memrt/meminfo.h>
#include <memrt/observe/stats.h>

/// Layout of a shard, the counters of one thread for one account. runtime/stats/shard.h counts.

/// Maximum number of accounts.
#define MEMRT__ACCOUNTS 4096u

/// Kind of a tiny block in the counters. Outside of the counters, a tiny block is a plain block.
#define MEMRT__KIND_TINY (MEMRT_KIND_BLOCK + 1)
#define MEMRT__KINDS (MEMRT__KIND_TINY + 1)

/// Places of the counters of blocks: for kinds with data, a counter for each bin of sizes; for the
/// others, one counter. The size of a tiny block has at most seven bits.
#define MEMRT__TINY_BINS 8u
#define MEMRT__COUNTS_INLINE 0u
#define MEMRT__COUNTS_BLOCK (MEMRT__COUNTS_INLINE + MEMRT_SIZE_BINS)
#define MEMRT__COUNTS_TINY (MEMRT__COUNTS_BLOCK + MEMRT_SIZE_BINS)
#define MEMRT__COUNTS_ADOPTED (MEMRT__COUNTS_TINY + MEMRT__TINY_BINS)
#define MEMRT__COUNTS_RESIZABLE (MEMRT__COUNTS_ADOPTED + 1)
#define MEMRT__COUNTS (MEMRT__COUNTS_RESIZABLE + 1)

/// Counters of one thread for one account.
///
/// Counters form pairs: an "in" word for additions and an "out" word for removals. The owner writes
/// "out" words with release, after the "in" words of the same blocks. A reader that loads "out"
/// words first (acquire) and "in" words later never sees more removals than additions.
///
/// The bytes in use are counted down. While `sequence` is even, the allocated bytes are
/// in_limit - alloc_left, and the freed bytes are out_limit - free_left. So the words that detect
/// the next slow path are counters at the same time. While `sequence` is odd, the owner is on the
/// slow path, and `bytes_in` and `bytes_out` count.
///
/// The gauge of a shard has the change of its bytes in use since the last report to the aggregates
/// of the account. During a climb, each allocation sets a new maximum of the bytes in use, so that
/// the maximum needs no word: any free takes the slow path, which ends the climb and writes `high`.
///
/// "Own" marks a member that only the owning thread writes.
typedef struct memrt__shard {
    size_t alloc_left; ///< own; an allocation that leaves less than free_left takes the slow path
    size_t free_left;  ///< own, release; freed bytes up to the next slow path
    size_t in_limit;   ///< own; allocated bytes when alloc_left is 0
    size_t out_limit;  ///< own; freed bytes when free_left is 0
    size_t sequence;   ///< own; number of starts and ends of slow paths
    size_t bytes_in, bytes_out; ///< own; sizes as requested, while `sequence` is odd
    /* The gauge, in signed numbers: */
    size_t high;      ///< own; maximum of the bytes in use since the last report, before a climb
    size_t low;       ///< own; bytes in use below this value are reported
    size_t reported;  ///< own; bytes in use as last reported; equal to `low` at rest
    size_t allowance; ///< own; bytes that the gauge may hide, by a rise or a fall; 0 at rest
    size_t falls;     ///< own, release; number of reports of a decrease
    size_t climbs;    ///< own; starts and ends of climbs; odd while bytes in use may exceed `high`
    /* The gauge under a limit: */
    size_t limit_changes; ///< own; memrt__limit_changes at the time of `quantum`
    size_t quantum;  ///< own; bytes that the gauge may hold unused; 0: no aggregate has a limit
    size_t promised; ///< own; bytes that the gauge may rise above `reported`
    size_t pending;  ///< own; part of `promised` for blocks that are being made
    size_t promoted_in, promoted_out; ///< own; blocks that became MemInfos
    size_t extra_in, extra_out;       ///< own; bytes from allocators beyond header and data
    size_t adopted_in, adopted_out;   ///< own; bytes of adopted buffers
    size_t exported_in, exported_out; ///< own; references exported to other libraries
    size_t guard_point;               ///< own; allocated bytes from which a block gets guard pages
    size_t guard_mean;                ///< own; mean distance of `guard_point`; 0: not drawn
    size_t realloc;                   ///< own; resized blocks
    size_t failed;                    ///< own; refused requests
    size_t made[MEMRT__COUNTS];       ///< own; allocated blocks
    size_t freed[MEMRT__COUNTS];      ///< own; freed blocks
} memrt__shard_t;

_Static_assert(sizeof(memrt__shard_t) <= 2048, "a scope costs at most 4 KiB per thread");

#endif
