#ifndef MEMRT_OBSERVER_H
#define MEMRT_OBSERVER_H

/// Observer of blocks that the program marked.

#include <stddef.h>

#include <memrt/meminfo.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Observer of the blocks that were marked with memrt_api_t.observe.
///
/// `resize` and `free` must not be NULL. The functions must not call memrt.
/// Threads: any thread, without a GIL, with no lock of memrt held. `observe` is called on the
/// thread
///          that called memrt_api_t.observe.
typedef struct memrt_observer {
    size_t struct_size; ///< sizeof(memrt_observer_t)
    /// Called before the old block is freed.
    void (*resize)(void *old_data, void *new_data, size_t new_size);
    /// Called after the destructor, before the block is freed.
    void (*free)(void *data);
    /// Called after memrt_api_t.observe set the mark; may be NULL.
    void (*observe)(void *data);
} memrt_observer_t;

/// Set the one observer of the process, or remove the observer with NULL.
/// Ownership: borrowed; the struct must stay valid for the rest of the process.
typedef void (*memrt_set_observer_fn)(const memrt_observer_t *observer);

/// Mark a MemInfo, so that the observer is notified when the MemInfo is resized or freed. The
/// observer that is set at the time of the event is called. Of a resizable MemInfo, only the
/// current data block is observed.
typedef void (*memrt_observe_fn)(memrt_meminfo_t *mi);

#ifdef __cplusplus
}
#endif

#endif
