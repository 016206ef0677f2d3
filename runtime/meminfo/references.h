#ifndef MEMRT_MEMINFO_REFERENCES_H
#define MEMRT_MEMINFO_REFERENCES_H

#include <stdbool.h>
#include <stddef.h>

#include <memrt/meminfo.h>

#include "runtime/base/atomics.h"
#include "runtime/base/check.h"
#include "runtime/base/compiler.h"

/// References to MemInfos: acquire and release, and the destructors that the last release runs,
/// with a limit on nested destructors.

/// Run the destructor of a MemInfo whose count is 0, then free the MemInfo.
///
/// A destructor may release the last reference to another MemInfo, and so on along a chain. From
/// the 33rd nested destructor on, destructors are deferred until the outermost destructor has
/// returned, so a long chain cannot overflow the stack.
void memrt__dtor_call(memrt_meminfo_t *mi);

/// Register the slot of deferred destructors: the destructors run when their thread ends, or on
/// another thread after the thread ended. Called once, at the start of the runtime.
void memrt__dtor_start(void);

/// Disable destructors from now on. A release only frees memory.
void memrt__dtor_shutdown(void);

/// Acquire one reference. Relaxed order suffices: the caller holds a reference, so all earlier
/// writes to the MemInfo are already visible to the caller.
static inline void memrt__meminfo_acquire(memrt_meminfo_t *mi)
{
    MEMRT__ASSERT(memrt__load_relaxed(&mi->refct) != 0);
    memrt__fetch_add_relaxed(&mi->refct, 1);
}

static inline size_t memrt__meminfo_refcount(const memrt_meminfo_t *mi)
{
    return memrt__load_relaxed(&mi->refct);
}

/// Acquire one reference unless the count is 0, and return the count before. The acquire order
/// pairs with the release store in memrt__block_notify_alloc(), so that a thread that finds a new
/// block sees the complete header.
static inline size_t memrt__meminfo_add_unless_0(memrt_meminfo_t *mi)
{
    size_t count = memrt__meminfo_refcount(mi);
    while (count != 0) {
        if (memrt__cas_acquire(&mi->refct, count, count + 1)) {
            return count;
        }
        count = memrt__meminfo_refcount(mi);
    }
    return 0;
}

static inline bool memrt__meminfo_try_acquire(memrt_meminfo_t *mi)
{
    return memrt__meminfo_add_unless_0(mi) != 0;
}

/// See memrt_api_t.try_unique.
///
/// The acquire load pairs with the decrement of each former holder, so that their accesses, and the
/// flag of a weak handle that they made, are visible.
int memrt__meminfo_try_unique(const memrt_meminfo_t *mi);

/// Destroy a MemInfo whose count compiled code has brought to 0: the slot `call_dtor`.
void memrt__meminfo_destroy(memrt_meminfo_t *mi);

/// Abort with a message: `mi` was released, freed or resized with a count of 0. The count of a
/// freed block stays 0 until the memory is used again.
_Noreturn MEMRT__COLD void memrt__meminfo_refuse_release(const memrt_meminfo_t *mi);

/// Release one reference. The last release runs the destructor and frees the block.
///
/// Each decrement has release order and pairs with the acquire load before the destructor. The
/// destructor therefore sees all writes of former holders.
/// The load that detects the last reference also detects a count of 0, and aborts.
void memrt__meminfo_release(memrt_meminfo_t *mi);

#endif
