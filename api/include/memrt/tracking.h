#ifndef MEMRT_TRACKING_H
#define MEMRT_TRACKING_H

#include <stddef.h>
#include <stdint.h>

#include <memrt/stats.h>

#ifdef __cplusplus
extern "C" {
#endif

/// How births are tracked. Set `struct_size`, leave the rest zero to turn tracking off.
typedef struct memrt_tracking {
    size_t struct_size; ///< sizeof(memrt_tracking_t)
    int on;             ///< non-zero: births are listed
    uint32_t frames;    ///< most calls of an interpreter to record of each; 0: none
    uint32_t native;    ///< most calls of native code to record of each; 0: none
    uint64_t sample;    ///< 0: every birth is listed; else one in about so many bytes born
    uint64_t births;    ///< read alone: memrt_live_t.id of the last birth that was listed
} memrt_tracking_t;

/// One call on the way to a birth: an address in native code, or what memrt_api_t.frame_new gave
/// for a line of code that an interpreter runs. Never 0.
typedef uint64_t memrt_frame_t;

/// Most calls that are recorded of one birth, of each of the two kinds.
#define MEMRT_FRAMES_MAX 128u

/// What an interpreter runs on the calling thread: fill in up to `max` frames, innermost first, and
/// return how many; 0 when it runs nothing there.
///
/// Threads: any, with no lock of memrt held, in the middle of an allocation. It may call frame_new,
///          and nothing else of memrt.
typedef size_t (*memrt_frames_fn)(memrt_frame_t *frames, size_t max);

/// A frame for people. Texts are borrowed: those of an interpreter are valid for good, those of
/// native code while its object is loaded.
typedef struct memrt_frame_text {
    size_t struct_size;   ///< sizeof(memrt_frame_text_t)
    const char *function; ///< NULL: the loader knows none
    const char *file;     ///< source of an interpreter's, object of native code; NULL: made at run
                          ///< time
    uint64_t line;        ///< in the source; 0 for native code
    uint64_t offset;      ///< of native code: bytes from the start of the function, of the object
                          ///< where there is none, from 0 where there is neither
    int native;           ///< non-zero: of native code
} memrt_frame_text_t;

/// A place where buffers are born: the calls that led there.
typedef struct memrt_site {
    size_t struct_size; ///< sizeof(memrt_site_t)
    uint64_t births;    ///< buffers ever listed that were born there
    uint64_t bytes;     ///< of them, at birth
    uint64_t frames;    ///< calls known
} memrt_site_t;

/// One live buffer, with all that tracking knows of it.
typedef struct memrt_buffer {
    memrt_live_t live;
    uint32_t scope;    ///< memrt_api_t.scope_id of the scope of birth; 0: none
    uint32_t site;     ///< number of the place of birth; 0: not known
    double stands_for; ///< buffers of that size, listed or not: 1; more, when only a sample is
                       ///< listed; 0 for one that is listed for its name alone
    int inherited;     ///< non-zero: born before the fork that made this process
} memrt_buffer_t;

#ifdef __cplusplus
}
#endif

#endif
