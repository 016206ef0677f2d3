#ifndef MEMRT_EVENT_OPERATION_LOG_H
#define MEMRT_EVENT_OPERATION_LOG_H

#include <stdbool.h>
#include <stddef.h>

#include <memrt/meminfo.h>

#include "runtime/event/block_event.h"

/// Log of operations on MemInfos: a line on standard error for each allocation, resize and free of
/// the chosen blocks, as an observer, and for each reference that the table acquires or releases.
/// The option MEMRT_LOG_OPERATIONS chooses the blocks.
///
/// A line is one write() of a text on the stack: no memory, and no lock but the lock of the name in
/// the live set. errno and the cancellation state stay. A failed write is ignored.

/// Facts of a block for its line. Taken before an operation that may free the block.
typedef struct memrt__logged {
    const void *mi, *data;
    size_t size;
    char name[MEMRT_NAME_MAX + 1]; ///< "" without a name; zero up to the end
} memrt__logged_t;

/// Choose blocks by a valid value of the option, from now on. Other threads may use the log during
/// the call, and may then still apply the earlier choice. Under the lock of rank OPTIONS, or at the
/// start of the runtime.
void memrt__log_choose(const char *value);

/// Fill in the facts of a block, and return whether the block is chosen. The facts of other blocks
/// are incomplete.
bool memrt__log_take(const memrt_meminfo_t *mi, memrt__logged_t *out);

/// Write the line of an operation that changed the reference count.
void memrt__log_count(const memrt__logged_t *logged, const char *operation, size_t before,
                      size_t after);

/// Write the line of a new name, if the block is chosen.
void memrt__log_name(const memrt_meminfo_t *mi);

/// Write the line of an allocation, resize or free of a chosen block. Each block that is allocated
/// in a process with the log gets the bit of the log, because a later choice may include the block.
void memrt__log_observe(const memrt__block_event_t *event);

#endif
