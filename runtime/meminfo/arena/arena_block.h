#ifndef MEMRT_MEMINFO_ARENA_BLOCK_H
#define MEMRT_MEMINFO_ARENA_BLOCK_H

#include <stdbool.h>

#include <memrt/meminfo.h>

#include "runtime/stats/tally.h"

/// Blocks of policies with `bump`: an arena places the header directly before the data, so the
/// layout needs no computation. Parts of the functions in block.h.

/// Allocate and count a block of 1 to MEMRT__CLASS_DATA_MAX bytes of data, with the count 1. The
/// caller has checked that no observer is on. `kind` is MEMRT_KIND_BLOCK or MEMRT_KIND_INLINE.
/// NULL: a limit has less room at the moment, or the system is out of memory.
memrt_meminfo_t *memrt__arena_block_new(const memrt__tally_t *tally, const memrt_policy_t *policy,
                                        size_t size, memrt_kind_t kind);

/// Free a block whose reference count is 0 and that no observer knows, and subtract the block from
/// the account. `flags` has the flags of the block. False: the block has another layout, or its
/// policy no arena; nothing changed.
bool memrt__arena_block_delete(const memrt_meminfo_t *mi, unsigned flags);

#endif
