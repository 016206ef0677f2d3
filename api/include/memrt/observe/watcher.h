#ifndef MEMRT_WATCHER_H
#define MEMRT_WATCHER_H

/// Observer of blocks that the program marked.

#include <stddef.h>

#include <memrt/meminfo.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Observer of the blocks that were marked with memrt_api_t.watch.
///
/// `resize` and `free` must not be NULL. The functions must not call memrt.
/// Threads: any thread, without a GIL, with no lock of memrt held. `watch` is called on the thread
///          that called memrt_api_t.watch.
typedef struct memrt_watcher {
    size_t struct_size; ///< sizeof(memrt_watcher_t)
    /// Called before the old block is freed.
    void (*resize)(void *old_data, void *new_data, size_t new_size);
    /// Called after the destructor, before the block is freed.
    void (*free)(void *data);
    /// Called after memrt_api_t.watch set the mark; may be NULL.
    void (*watch)(void *data);
} memrt_watcher_t;

/// Set the one observer of the process, or remove the observer with NULL.
/// Ownership: borrowed; the struct must stay valid for the rest of the process.
typedef void (*memrt_set_watcher_fn)(const memrt_watcher_t *watcher);

/// Mark a MemInfo, so that the observer is notified when the MemInfo is resized or freed. The
/// observer that is set at the time of the event is called. Of a resizable MemInfo, only the
/// current data block is observed.
typedef void (*memrt_watch_fn)(memrt_meminfo_t *mi);

#ifdef __cplusplus
}
#endif

#endif
