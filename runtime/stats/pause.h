#ifndef MEMRT_STATS_PAUSE_H
#define MEMRT_STATS_PAUSE_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/slow_path.h"

/// Pause: no allocation and no resize begins on another thread, so that a reader sees all counters
/// at one moment. The fast path of an allocation already tests a word for observers, and a bit of
/// the word leads to the slow path, where the thread waits. Without new allocations, frees end when
/// no block is left. So the counters soon come to rest.

/// Begin and end a pause. Under the lock of rank THREADS, which waiting threads need.
void memrt__stats_pause(void);
void memrt__stats_resume(void);

/// Return a hash of all counters of all shards. Equal hashes before and after a reading prove that
/// no counter changed meanwhile, because counters only grow. A resize may lower a counter, but also
/// raises `realloc`. Under the lock of rank THREADS.
uint64_t memrt__stats_fingerprint(void);

/// Wait for the end of a pause. A thread that holds a lock must not call this function.
MEMRT__COLD void memrt__stats_await_pause_slow(void);

static inline void memrt__stats_await_pause(void)
{
    if (MEMRT__UNLIKELY(memrt__is_slow(MEMRT__SLOW_PAUSE))) {
        memrt__stats_await_pause_slow();
    }
}

#endif
