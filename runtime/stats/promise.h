#ifndef MEMRT_STATS_PROMISE_H
#define MEMRT_STATS_PROMISE_H

#include <stdbool.h>
#include <stddef.h>

#include "runtime/base/compiler.h"
#include "runtime/stats/account.h"

/// Promises: bytes below a limit that the aggregates keep for one gauge. A gauge whose account has
/// a limited aggregate rises only by promised bytes, so a rise within a promise needs no check. The
/// aggregates check their limits when they make a promise. All functions need an open shard of the
/// calling thread.

/// Maximum of `quantum`, and the part of the lowest limit that one gauge may hold unused.
#define MEMRT__QUANTUM_MAX ((size_t)960 << 10)
#define MEMRT__QUANTUM_SHARE 64u

/// Maximum of the bytes that a gauge gets beyond its needs: its rise before a report.
#define MEMRT__PROMISE_AHEAD ((size_t)64 << 10)

/// Follow a change of the limits of the account's aggregates, and end promises above the quantum.
void memrt__promise_follow_limits(memrt__shard_t *shard, memrt__account_t *account);

/// Have the aggregates promise a rise of `bytes` above the bytes in use and pending, with up to a
/// quantum more if possible. False: a limit has less room, and nothing has changed.
bool memrt__promise_rise(memrt__shard_t *shard, memrt__account_t *account,
                         size_t bytes) MEMRT_MUST_CHECK;

/// Promise `bytes` of a fall that the gauge reports next.
void memrt__promise_keep_fall(memrt__shard_t *shard, memrt__account_t *account, size_t bytes);

/// Return a rise bounded by the promises that no pending block needs.
size_t memrt__promise_bound_rise(const memrt__shard_t *shard, size_t rise);

/// End all promises except for the unreported rise, pending blocks, and `bytes` more.
void memrt__promise_keep(memrt__shard_t *shard, memrt__account_t *account, size_t bytes);

/// End promises of bytes that the gauge has reported. `change` is the signed change of the report.
void memrt__promise_end_reported(memrt__shard_t *shard, memrt__account_t *account, size_t change);

/// End the state of a pending block of `bytes`, which is counted next.
void memrt__promise_settle(memrt__shard_t *shard, size_t bytes);

/// Promise a block to the shared shard of an account, for a thread without an own shard. False: a
/// limit has less room, and nothing has changed.
bool memrt__promise_shared(memrt__account_t *account, size_t bytes) MEMRT_MUST_CHECK;

/// End a promise of memrt__promise_shared(), after the block was counted or dropped.
void memrt__promise_end_shared(memrt__account_t *account, size_t bytes);

/// Report a change of `bytes`, signed, in the shared shard of an account to its aggregates. The
/// caller changes bytes_in or bytes_out itself. Shared shards have no gauge.
MEMRT__COLD void memrt__account_add_shared(memrt__account_t *account, size_t bytes);

#endif
