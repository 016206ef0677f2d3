#ifndef MEMRT_OBSERVE_SITES_H
#define MEMRT_OBSERVE_SITES_H

#include <stdbool.h>

#include <memrt/observe/site.h>
#include <memrt/status.h>

#include "runtime/base/check.h"

/// Allocation sites. A site is a call stack, stored once under a number from 1 on. Sites and
/// interpreter frames are never freed, so a number or frame stays valid for any later report.

/// Return the number of the site of the calling thread, and store the call stack if the site is
/// new. The call stack has at most `most_frames` interpreter frames and `most_native` native
/// frames. 0: the call stack is unknown, or out of memory.
uint32_t memrt__site_here(size_t most_frames, size_t most_native);

/// Count an allocation of `size` bytes at a site. Site 0 means an unknown site and counts nothing.
void memrt__site_count(uint32_t site, size_t size);

/// Set the callback that lists the interpreter frames of the calling thread; NULL: no callback. The
/// store is a release. memrt__site_here() loads the callback with acquire before each call.
void memrt__site_set_frames(memrt_frames_fn fn);

/// Return whether a frame is an address of native code.
bool memrt__frame_is_native(memrt_frame_t frame);

/// Write a frame as one line of text, cut to `length` bytes, NUL included. The line is "function at
/// file:line" for an interpreter frame, "function+0xNN in object" for a native frame. An unknown
/// frame gives "?".
void memrt__frame_line(memrt_frame_t frame, char *line, size_t length);

/// Write a line "    function at file:line" for each interpreter frame of a site, innermost first.
/// Each line ends with a newline. Text that does not fit in `length` bytes, NUL included, is cut
/// after a whole line. Returns the length of the written text, without the NUL. Allocates nothing.
size_t memrt__site_text(uint32_t site, char *text, size_t length);

/// Bytes of a buffer for one line.
#define MEMRT__FRAME_LINE 4096

/// Implement memrt_api_t.frame_new, frame_text, site_read and site_frames; contracts are in
/// memrt/observe/site.h.
memrt_frame_t memrt__frame_new(const char *function, const char *file, uint64_t line);
memrt_status_t memrt__frame_text(memrt_frame_t frame, memrt_frame_text_t *out) MEMRT_MUST_CHECK;
memrt_status_t memrt__site_read(uint32_t site, memrt_site_t *out) MEMRT_MUST_CHECK;
size_t memrt__site_frames(uint32_t site, memrt_frame_t *out, size_t max);

#if MEMRT_DEBUG
/// Return whether the invariants of the sites and of the interpreter frames hold.
bool memrt__sites_is_valid(void);
#endif

#endif
