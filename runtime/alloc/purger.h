#ifndef MEMRT_ALLOC_PURGER_H
#define MEMRT_ALLOC_PURGER_H

#include <stddef.h>

#include "runtime/base/atomics.h"
#include "runtime/base/compiler.h"

/// Cached memory goes back to the system after the decay of the process or policy, also when
/// nobody calls memrt meanwhile: a thread of memrt's own sees to it. It starts when there is
/// something to give back and ends when there is not; before a fork and at exit it is stopped, so
/// that nobody finds a thread that they did not start.

/// Whether the thread runs. Relaxed; a start too few or too many does no harm.
extern size_t memrt__purger_runs;

MEMRT__COLD void memrt__purger_start(void);

/// Something is cached from now on.
static inline void memrt__purger_wake(void)
{
    if (MEMRT__UNLIKELY(memrt__load_relaxed(&memrt__purger_runs) == 0)) {
        memrt__purger_start();
    }
}

/// Times of decay have changed: look what is to be given back by when.
void memrt__purger_hurry(void);

/// Stop the thread and wait for its end. It starts again by itself when it is needed.
void memrt__purger_stop(void);

/// In a forked child, with locks made anew: no thread runs, one may be started.
void memrt__purger_forked(void);

/// Give back at once all that is cached by no thread; returns bytes.
size_t memrt__purge_all(void);

#endif
