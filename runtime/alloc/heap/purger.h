#ifndef MEMRT_ALLOC_HEAP_PURGER_H
#define MEMRT_ALLOC_HEAP_PURGER_H

#include <stdbool.h>
#include <stddef.h>

#include "runtime/base/atomics.h"
#include "runtime/base/check.h"
#include "runtime/base/compiler.h"

/// Purger thread: gives cached memory back to the system after the decay of the process or policy,
/// even if the program makes no further calls. The thread starts when there is memory to give back,
/// and ends when there is none. A fork and process exit stop the thread first, so that no program
/// meets a thread of memrt there.

/// Nonzero while the thread runs. Relaxed: a missed or an extra start does no harm.
extern size_t memrt__purger_runs;

/// Cache above the page heap, which the purger empties first.
typedef struct memrt__purged {
    bool (*is_aging)(void); ///< return whether the cache has memory to give back
    void (*purge)(void);    ///< give back what was cached at the previous call
} memrt__purged_t;

/// Set that cache. Called once, at the start of the runtime.
void memrt__purger_add(const memrt__purged_t *cache);

MEMRT__COLD void memrt__purger_start(void);

/// Start the purger thread, unless the thread runs. Call after caching memory.
static inline void memrt__purger_wake(void)
{
    if (MEMRT__UNLIKELY(memrt__load_relaxed(&memrt__purger_runs) == 0)) {
        memrt__purger_start();
    }
}

/// Wake the thread after decay times have changed, to compute the next purge anew.
void memrt__purger_hurry(void);

/// Stop the thread and wait for its end. The thread starts again when needed.
void memrt__purger_stop(void);

/// Reset the state in a forked child, with locks made anew: no thread runs, and a start is allowed.
void memrt__purger_forked(void);

/// Give all free pages and cached mappings back to the system; returns bytes. Blocks in thread
/// caches and central lists stay.
size_t memrt__purge_all(void);

#if MEMRT_DEBUG
/// Return whether the invariants of the purger hold. Takes the lock of rank PURGER.
bool memrt__purger_is_valid(void);
#endif

#endif
