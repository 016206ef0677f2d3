#ifndef MEMRT_MEMINFO_BLOCK_EVENTS_H
#define MEMRT_MEMINFO_BLOCK_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <memrt/meminfo.h>

#include "runtime/meminfo/block_layout.h"
#include "runtime/observe/tracking.h"
#include "runtime/policy/policy.h"

/// Events of blocks: live set, names, named references, watcher, and failed requests. Only the slow
/// paths call this header.

/// Set the watcher for the events of watched blocks; NULL removes the watcher. The release
/// store pairs with the acquire load before each call of the watcher.
void memrt__watcher_set(const memrt_watcher_t *watcher);

/// Notify the watcher that `mi`, which must have data, is watched from now on.
void memrt__observer_notify(const memrt_meminfo_t *mi);

/// Notify the watcher that a watched block moved from `old_data`, or was resized there.
void memrt__block_notify_resize(void *old_data, const memrt_meminfo_t *mi);

/// Notify all observers in `flags` that a block is about to be freed, and remove the block from the
/// live set.
void memrt__block_notify_free(memrt_meminfo_t *mi, unsigned flags);

/// Add an unpublished block to the live set, and count `bytes` at the allocation site. False: out
/// of memory.
bool memrt__block_list(memrt_meminfo_t *mi, memrt__alloc_event_t event, size_t bytes);

/// Remove a block from the live set. In checking mode, the live set remembers the data, size and
/// policy, to explain pointers to freed blocks.
void memrt__block_unlist(const memrt_meminfo_t *mi);

/// Set the name of a block and add the block to the live set if it is not listed. NULL removes the
/// name. False: out of memory, nothing changed.
bool memrt__block_set_name(memrt_meminfo_t *mi, const char *name);

/// Forget the named references that are still recorded. The references themselves were released
/// without their names.
void memrt__block_drop_names(const memrt_meminfo_t *mi);

/// Count and record a failed request for `size` bytes in the account, the probes and the event
/// trace.
void memrt__block_refused(memrt_policy_t *policy, size_t size);

#endif
