#ifndef MEMRT_OBSERVE_LIVE_SET_H
#define MEMRT_OBSERVE_LIVE_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <memrt/meminfo.h>

#include "runtime/base/check.h"
#include "runtime/observe/live_table.h"

/// Live set: the set of live keys, each with the time, thread, site and name of its allocation. A
/// key is an integer that only the caller interprets. The set has 32 partitions with a lock each.

/// Add a key that is not in the set, allocated now by the calling thread. Failure: returns false
/// when out of memory; nothing has changed.
bool memrt__live_insert(uintptr_t key, uint32_t site, double weight);

/// Data of a removed key that the set does not store.
typedef struct memrt__live_details {
    uintptr_t data;     ///< address of the data that belonged to the key
    size_t size;        ///< bytes of data
    const char *policy; ///< name of the policy, at most MEMRT_NAME_MAX bytes
} memrt__live_details_t;

/// Remove a key. Returns whether the key was in the set. The key is remembered with `details` for
/// memrt__live_find_removed(); NULL: the key is not remembered.
bool memrt__live_remove(uintptr_t key, const memrt__live_details_t *details);

bool memrt__live_contains(uintptr_t key);

/// A removed key, with its name and details.
typedef struct memrt__live_removed {
    uintptr_t key, data;
    size_t size;
    char name[MEMRT_NAME_MAX + 1]; ///< "" for none
    char policy[MEMRT_NAME_MAX + 1];
} memrt__live_removed_t;

/// Look up a removed key that is not in the set now. Each partition remembers its last 64 removed
/// keys. Returns whether the key was found.
bool memrt__live_find_removed(uintptr_t key, memrt__live_removed_t *out);

/// Look up a removed key from `start` on, below `start + size`. If several keys match in a
/// partition, the key that was removed last counts.
bool memrt__live_find_removed_within(uintptr_t start, size_t size, memrt__live_removed_t *out);

/// Move the data of `from` in the set, with its serial number and name, to `to`. Both keys must be
/// in the set, and both stay in the set. The caller then removes `from`, which has no valid data.
void memrt__live_move(uintptr_t from, uintptr_t to);

/// Add a key, allocated now, unless the key is in the set. Returns the serial number of the key.
/// Failure: returns 0 when out of memory; nothing has changed.
uint64_t memrt__live_ensure(uintptr_t key);

/// Name a key, and add the key if it is not in the set. A NULL name removes the name. Failure:
/// returns false when out of memory; nothing has changed.
bool memrt__live_set_name(uintptr_t key, const char *name);

/// Copy the name of a key, "" for none, to `name`, a buffer of MEMRT_NAME_MAX + 1 bytes.
void memrt__live_name(uintptr_t key, char *name);

/// Callback for visits. Runs with the partition locked, so it must be quick and may take only locks
/// of a later rank.
typedef void (*memrt__live_visit_fn)(const memrt__live_entry_t *entry, void *context);

/// Visit one key. Returns false when the key is not in the set.
bool memrt__live_visit(uintptr_t key, memrt__live_visit_fn visit, void *context);

/// Visit all keys, partition by partition, in no order. Each key is visited once, unless the key is
/// added or removed meanwhile.
void memrt__live_visit_all(memrt__live_visit_fn visit, void *context);

/// Return the number of keys.
size_t memrt__live_count(void);

/// Return the memory of the set in bytes, without names.
size_t memrt__live_bytes(void);

/// Return the serial number of the last allocation.
uint64_t memrt__live_allocs(void);

/// Return the serial number of the last allocation before the fork that made this process. 0: no
/// fork.
uint64_t memrt__live_allocs_before(void);

/// In a forked child: note the last allocation of the parent; only later allocations are the
/// child's own.
void memrt__live_forked(void);

/// In a forked child, before any other use: rebuild the partitions that other threads of the parent
/// were changing at the fork.
void memrt__live_repair(void);

#if MEMRT_DEBUG
/// Return whether the invariants of the live set hold. Takes the locks of the partitions in turn.
bool memrt__live_is_valid(void);
#endif

#endif
