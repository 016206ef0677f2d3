#ifndef MEMRT_EVENT_BLOCK_EVENT_H
#define MEMRT_EVENT_BLOCK_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <memrt/meminfo.h>

#include "runtime/base/atomics.h"
#include "runtime/policy/policy_table.h"

/// Block events: an allocation, resize or free of a block, or a failed request, with the facts that
/// observers need. block_observers.h delivers the events.

/// Bits of memrt_meminfo_t.flags: one bit for each observer that knows the block. An observer
/// receives the resizes and the free of the blocks with its bit. The bits are in the order in which
/// observers receive a free. A resize is received in the reverse order.
#define MEMRT__FLAG_TRACED 8u  ///< event trace
#define MEMRT__FLAG_HELD 16u   ///< named references; stays set without references
#define MEMRT__FLAG_LISTED 32u ///< live set

/// Bit of the log of operations, which receives an allocation or free first and a resize last, so
/// that the live set has the name of the block.
#define MEMRT__FLAG_LOGGED (1u << 8)

/// Bits for hooks, one for each of MEMRT_HOOKS_MAX hooks. Hooks receive each event last.
#define MEMRT__FLAG_FIRST_HOOK (1u << 24)
#define MEMRT__FLAG_HOOKS (0xFFu << 24)

/// Flags of a block that any observer knows.
#define MEMRT__FLAG_KNOWN                                                                          \
    (MEMRT_FLAG_OBSERVED | MEMRT__FLAG_TRACED | MEMRT__FLAG_HELD | MEMRT__FLAG_LISTED |            \
     MEMRT__FLAG_LOGGED | MEMRT__FLAG_HOOKS)

static inline bool memrt__block_is_listed(const memrt_meminfo_t *mi)
{
    return (memrt__flags_load_relaxed(&mi->flags) & MEMRT__FLAG_LISTED) != 0;
}

typedef enum memrt__block_event_type {
    MEMRT__EVENT_ALLOCATE, ///< the block is complete; no other thread can acquire the block yet
    MEMRT__EVENT_RESIZE,   ///< the block has its new size; the calling thread has claimed the block
    MEMRT__EVENT_FREE,    ///< the block is about to be freed; no other thread can acquire the block
    MEMRT__EVENT_FAILURE, ///< a request was refused
} memrt__block_event_type_t;

/// State of a block before a resize.
typedef struct memrt__block_before {
    const memrt_meminfo_t *mi; ///< header, not freed yet; the same header: the block grew at
                               ///< its address; NULL: the allocator moved the header
    const void *data;
    size_t size;
} memrt__block_before_t;

/// Event of a block. Members that the type does not have are 0.
typedef struct memrt__block_event {
    memrt__block_event_type_t type;
    uint32_t site;                       ///< of an allocation: allocation site; 0: unknown
    memrt_meminfo_t *mi;                 ///< header of the block; NULL: a failed request
    memrt_policy_t *policy;              ///< policy of the block or of the request
    size_t size;                         ///< bytes of data; of a failed request: requested bytes
    const memrt__block_before_t *before; ///< of a resize
} memrt__block_event_t;

/// Observer of block events: receives an event that can no longer fail.
///
/// Threads: an observer runs on the thread that changes the block, without a lock, and takes no
/// memory from memrt. A child process forked inside of an observer must find the observer usable.
typedef void (*memrt__observer_fn)(const memrt__block_event_t *event);

#endif
