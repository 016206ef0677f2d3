#ifndef MEMRT_ALLOC_QUARANTINE_H
#define MEMRT_ALLOC_QUARANTINE_H

#include <stdbool.h>
#include <stddef.h>

/// Blocks that were freed and are kept, so that who still uses them is found. All zero is an empty
/// one. Invariant: count <= MEMRT__QUARANTINE_BLOCKS, bytes <= MEMRT__QUARANTINE_BYTES.
///
/// Threads: any; one lock for all quarantines.

#define MEMRT__QUARANTINE_BLOCKS 256u
#define MEMRT__QUARANTINE_BYTES ((size_t)16 << 20)

typedef struct memrt__quarantine {
    struct {
        void *ptr;
        size_t size;
    } ring[MEMRT__QUARANTINE_BLOCKS];
    size_t first; ///< index of the oldest
    size_t count;
    size_t bytes; ///< sum of the sizes
} memrt__quarantine_t;

/// False: there is no room for it.
bool memrt__quarantine_put(memrt__quarantine_t *quarantine, void *ptr, size_t size);

/// Take the oldest out. NULL: there is none.
void *memrt__quarantine_take(memrt__quarantine_t *quarantine);

/// Called with the quarantine locked; true ends the visit.
typedef bool (*memrt__quarantine_visit_fn)(void *ptr, void *context);

/// Visit all, the oldest first, until a visit ends it; whether one did.
bool memrt__quarantine_visit(const memrt__quarantine_t *quarantine,
                             memrt__quarantine_visit_fn visit, void *context);

#endif
