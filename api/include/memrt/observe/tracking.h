#ifndef MEMRT_TRACKING_H
#define MEMRT_TRACKING_H

/// Tracking: lists of live buffers.

#include <stddef.h>
#include <stdint.h>

#include <memrt/meminfo.h>
#include <memrt/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Settings of tracking. Set `struct_size`; zero in all other members turns tracking off.
typedef struct memrt_tracking {
    size_t struct_size;   ///< sizeof(memrt_tracking_t)
    int on;               ///< non-zero: new allocations are listed
    uint32_t frames;      ///< maximum interpreter frames to record per allocation; 0: none
    uint32_t native;      ///< maximum native frames to record per allocation; 0: none
    uint64_t sample;      ///< 0: list every allocation; else list one allocation per `sample` bytes
                          ///< allocated, on average
    uint64_t allocations; ///< only read: memrt_live_t.id of the last listed allocation
} memrt_tracking_t;

/// Row of the live list: one live buffer that tracking knows.
typedef struct memrt_live {
    uint64_t id;       ///< serial number, unique in the process, in order of allocation
    uintptr_t meminfo; ///< address of the MemInfo, only as a key; the MemInfo may be freed by now
    uintptr_t data;    ///< address of the first byte
    size_t size;       ///< bytes
    size_t refcount;   ///< references at the time of the snapshot
    uint64_t age_ns;   ///< nanoseconds since the last tick of the system's clock before allocation
    uint64_t thread;   ///< operating system's id of the allocating thread
    uint32_t policy;   ///< index of the policy
    uint32_t kind;     ///< a memrt_kind_t
    char name[64];     ///< name; "" for none
} memrt_live_t;

/// Row of memrt_api_t.buffers: one live buffer, with all tracking data.
typedef struct memrt_buffer {
    memrt_live_t live;
    uint32_t scope; ///< memrt_api_t.scope_id of the scope of the allocation; 0: none
    uint32_t site;  ///< number of the allocation site; 0: not known
    double weight;  ///< sampling weight: number of buffers of the size that the row stands for.
                    ///< 1 without sampling; 0 for a buffer that is listed only for its name
    int inherited;  ///< non-zero: allocated before the fork that made this process
} memrt_buffer_t;

/// Turn tracking on or off; return whether tracking was on. Buffers that are allocated while
/// tracking is off are not listed. Listed buffers stay listed until they are freed.
typedef int (*memrt_tracking_fn)(int on);

/// Return whether tracking is on.
typedef int (*memrt_tracking_enabled_fn)(void);

/// Turn tracking on with the given settings, or turn tracking off.
/// Failure: MEMRT_EINVAL: struct_size is not set, or more than MEMRT_FRAMES_MAX frames are
///          requested.
typedef memrt_status_t (*memrt_tracking_set_fn)(const memrt_tracking_t *tracking);

/// Read the settings of tracking, which are also known while tracking is off.
/// Failure: MEMRT_EINVAL: struct_size is not set.
typedef memrt_status_t (*memrt_tracking_get_fn)(memrt_tracking_t *out);

/// List the live tracked buffers, oldest first.
/// Ownership: `*out` is the caller's, to be freed with live_free.
/// Failure:   MEMRT_ENOMEM.
typedef memrt_status_t (*memrt_live_fn)(memrt_live_t **out, size_t *count);

/// Free a list that `live` or `buffers` made; NULL: nothing happens.
typedef void (*memrt_live_free_fn)(memrt_live_t *list);

/// List the live tracked buffers as `live` does, in rows of `row_size` bytes. A row holds as
/// much of a memrt_buffer_t as `row_size` covers.
/// Failure: MEMRT_EINVAL: `row_size` is smaller than a memrt_live_t; MEMRT_ENOMEM.
typedef memrt_status_t (*memrt_buffers_fn)(size_t row_size, void **out, size_t *count);

/// Read the tracking data of the buffer of `mi`: one row, in the form of `buffers`.
/// Failure: MEMRT_EINVAL: as `buffers`; MEMRT_ENOENT: the buffer is not listed.
typedef memrt_status_t (*memrt_buffer_read_fn)(const memrt_meminfo_t *mi, size_t row_size,
                                               void *out);

#ifdef __cplusplus
}
#endif

#endif
