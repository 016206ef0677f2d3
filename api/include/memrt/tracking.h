#ifndef MEMRT_TRACKING_H
#define MEMRT_TRACKING_H

#include <stddef.h>
#include <stdint.h>

#include <memrt/stats.h>

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

/// One frame of a call stack: an address in native code, or a result of memrt_api_t.frame_new for a
/// line of interpreter code. Never 0.
typedef uint64_t memrt_frame_t;

/// Maximum number of frames recorded per allocation, for native frames and interpreter frames each.
#define MEMRT_FRAMES_MAX 128u

/// Callback that fills in up to `max` interpreter frames of the calling thread, innermost first.
///
/// The callback returns the number of frames; 0 when the interpreter runs nothing on the thread.
/// The callback may call frame_new, and no other function of memrt.
/// Threads: any thread, with no lock of memrt held, in the middle of an allocation.
typedef size_t (*memrt_frames_fn)(memrt_frame_t *frames, size_t max);

/// Readable description of a frame.
///
/// Ownership: texts are borrowed. Texts of an interpreter frame are valid for the rest of the
///            process, texts of a native frame while the object is loaded.
typedef struct memrt_frame_text {
    size_t struct_size;   ///< sizeof(memrt_frame_text_t)
    const char *function; ///< name of the function; NULL: not known
    const char *file;     ///< source file of an interpreter frame, object of a native frame; NULL:
                          ///< not known, as for code made at run time
    uint64_t line;        ///< line in the source; 0 for a native frame
    uint64_t offset;      ///< of a native frame: bytes from the start of the function; from the
                          ///< start of the object if the function is not known; else the address
    int native;           ///< non-zero: native frame
} memrt_frame_text_t;

/// Figures of an allocation site.
typedef struct memrt_site {
    size_t struct_size;   ///< sizeof(memrt_site_t)
    uint64_t allocations; ///< buffers ever listed with this allocation site
    uint64_t bytes;       ///< sizes of these buffers at allocation, added up
    uint64_t frames;      ///< number of known frames
} memrt_site_t;

/// Row of memrt_api_t.buffers: one live buffer, with all tracking data.
typedef struct memrt_buffer {
    memrt_live_t live;
    uint32_t scope;    ///< memrt_api_t.scope_id of the scope of the allocation; 0: none
    uint32_t site;     ///< number of the allocation site; 0: not known
    double stands_for; ///< sampling weight: number of buffers of the size that the row stands for.
                       ///< 1 without sampling; 0 for a buffer that is listed only for its name
    int inherited;     ///< non-zero: allocated before the fork that made this process
} memrt_buffer_t;

#ifdef __cplusplus
}
#endif

#endif
