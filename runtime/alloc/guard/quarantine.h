#ifndef MEMRT_ALLOC_GUARD_QUARANTINE_H
#define MEMRT_ALLOC_GUARD_QUARANTINE_H

#include <stdbool.h>
#include <stddef.h>

#include "runtime/base/check.h"

/// Quarantine: freed blocks that are kept, so that a use after free is found. All zero is an empty
/// quarantine.
///
/// Invariant: count <= MEMRT__QUARANTINE_BLOCKS, bytes <= MEMRT__QUARANTINE_BYTES.
///
/// Threads: any; one lock for all quarantines.

#define MEMRT__QUARANTINE_BLOCKS 256u
#define MEMRT__QUARANTINE_BYTES ((size_t)16 << 20)

typedef struct memrt__quarantine {
    struct {
        void *ptr;
        size_t size;
    } ring[MEMRT__QUARANTINE_BLOCKS];
    size_t first; ///< index of the oldest block
    size_t count;
    size_t bytes; ///< sum of the sizes
} memrt__quarantine_t;

/// Add a freed block. Failure: returns false if there is no room, or while a fork takes long.
bool memrt__quarantine_put(memrt__quarantine_t *quarantine, void *ptr, size_t size);

/// Take the oldest block out. Returns NULL if the quarantine is empty, or while a fork takes long.
void *memrt__quarantine_take(memrt__quarantine_t *quarantine);

/// Visitor, called under the lock of the quarantines. Returns true to end the visit.
typedef bool (*memrt__quarantine_visit_fn)(void *ptr, void *context);

/// Visit all blocks, oldest first, until a visitor returns true. Returns true if a visitor did.
bool memrt__quarantine_visit(const memrt__quarantine_t *quarantine,
                             memrt__quarantine_visit_fn visit, void *context);

#if MEMRT_DEBUG
/// Return whether the invariants of a quarantine hold. Takes the lock of the quarantines.
bool memrt__quarantine_is_valid(const memrt__quarantine_t *quarantine);
#endif

#endif
