#ifndef MEMRT_DEBUG_SITE_H
#define MEMRT_DEBUG_SITE_H

#include <memrt/status.h>
#include <memrt/tracking.h>

/// Places of birth. A site is a chain of calls, kept once; sites and the frames of interpreters are
/// never forgotten, so that a report can always name them.

/// The number of the site where the calling thread is, by up to so many calls of either kind. 0:
/// nothing is known of it, or there is no memory.
uint32_t memrt__site_here(size_t frames, size_t native);

/// A buffer of `size` bytes was born there; 0 is no site.
void memrt__site_count(uint32_t site, size_t size);

/// Who knows what an interpreter runs, or NULL. Release, partner: acquire where it is called.
void memrt__site_set_frames(memrt_frames_fn frames);

/// A frame as one line of text, "function at file:line" or "function+0xNN in object"; cut to fit.
void memrt__frame_line(memrt_frame_t frame, char *line, size_t length);
#define MEMRT__FRAME_LINE 4096

/// The functions of memrt_api_t of the same names.
memrt_frame_t memrt__frame_new(const char *function, const char *file, uint64_t line);
memrt_status_t memrt__frame_text(memrt_frame_t frame, memrt_frame_text_t *out) MEMRT_MUST_CHECK;
memrt_status_t memrt__site_read(uint32_t site, memrt_site_t *out) MEMRT_MUST_CHECK;
size_t memrt__site_frames(uint32_t site, memrt_frame_t *out, size_t max);

#endif
