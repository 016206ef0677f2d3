#ifndef MEMRT_SITE_H
#define MEMRT_SITE_H

/// Allocation sites: call stacks of tracked allocations, and suppressions of leaks by site.

#include <stddef.h>
#include <stdint.h>

#include <memrt/status.h>

#ifdef __cplusplus
extern "C" {
#endif

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

/// Callback that writes the interpreter calls of the calling thread to a file descriptor, innermost
/// first: for each call a newline, four spaces, and "function at file:line". Writes nothing when
/// the interpreter runs nothing on the thread.
/// Threads: runs in a signal handler or before an abort, on any thread, with any lock held. The
///          callback may call only functions that POSIX allows in signal handlers.
typedef void (*memrt_write_frames_fn)(int file);

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

/// Set the function that reports the frames of an interpreter, or remove the function with
/// NULL. The function must stay valid for the rest of the process, because a thread may be
/// inside.
typedef void (*memrt_set_frames_fn)(memrt_frames_fn frames);

/// Set the function that writes interpreter calls into reports of refused accesses, and after the
/// message of an abort, or remove the function with NULL. The function must stay valid for the rest
/// of the process.
typedef void (*memrt_set_write_frames_fn)(memrt_write_frames_fn write);

/// Return the frame for a line of interpreter code; equal arguments yield the same frame. Texts
/// are copied, and cut after 1023 bytes; NULL: not known. Return 0 when out of memory, or when
/// a million frames are known.
typedef memrt_frame_t (*memrt_frame_new_fn)(const char *function, const char *file, uint64_t line);

/// Describe a frame that came from site_frames or frame_new.
/// Failure: MEMRT_EINVAL: struct_size is not set; MEMRT_ENOENT: no such frame.
typedef memrt_status_t (*memrt_frame_text_fn)(memrt_frame_t frame, memrt_frame_text_t *out);

/// Read the figures of the allocation site with number `site`; numbers run from 1 without a
/// gap.
/// Failure: MEMRT_EINVAL: struct_size is not set; MEMRT_ENOENT: no such site.
typedef memrt_status_t (*memrt_site_read_fn)(uint32_t site, memrt_site_t *out);

/// Write the call stack of a site to `out`, which has room for `max` frames. Native frames come
/// first, then frames of an interpreter, innermost first in each group. Return the number of
/// all frames; 0: no such site.
typedef size_t (*memrt_site_frames_fn)(uint32_t site, memrt_frame_t *out, size_t max);

/// Suppress leaks whose allocation site has a frame that matches `pattern`. Leak reports list
/// such buffers separately, with `description`.
///
/// `pattern` is a shell pattern for "function at file:line" or "function+0xNN in object". Both
/// texts are copied.
/// Failure: MEMRT_EINVAL: a text is missing, empty or longer than 255 bytes; MEMRT_ELIMIT: 64
///          suppressions exist already.
typedef memrt_status_t (*memrt_suppression_add_fn)(const char *pattern, const char *description);

/// Return the description of the suppression that matches the site; NULL: no suppression matches.
/// The text is valid for the rest of the process.
typedef const char *(*memrt_suppression_at_fn)(uint32_t site);

#ifdef __cplusplus
}
#endif

#endif
