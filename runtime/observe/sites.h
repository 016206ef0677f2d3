#ifndef MEMRT_OBSERVE_SITES_H
#define MEMRT_OBSERVE_SITES_H

#include <stdbool.h>

#include <memrt/observe/site.h>
#include <memrt/status.h>

#include "runtime/base/check.h"

/// Allocation sites. A site is a call stack, stored once under a number. Sites and interpreter
/// frames are never freed, so a report can always name them.

/// Return the number of the site of the calling thread, with at most `frames` interpreter frames
/// and `native` native frames. 0: the call stack is unknown, or out of memory.
uint32_t memrt__site_here(size_t frames, size_t native);

/// Count an allocation of `size` bytes at a site. Site 0 stands for none and counts nothing.
void memrt__site_count(uint32_t site, size_t size);

/// Set the callback that lists the frames of an interpreter, or NULL. Release; partner: the acquire
/// load before each call.
void memrt__site_set_frames(memrt_frames_fn frames);

/// Write a frame as one line of text, cut to `length` bytes. The line is "function at file:line"
/// or "function+0xNN in object".
void memrt__frame_line(memrt_frame_t frame, char *line, size_t length);
#define MEMRT__FRAME_LINE 4096

/// Implement the functions of memrt_api_t of the same names.
memrt_frame_t memrt__frame_new(const char *function, const char *file, uint64_t line);
memrt_status_t memrt__frame_text(memrt_frame_t frame, memrt_frame_text_t *out) MEMRT_MUST_CHECK;
memrt_status_t memrt__site_read(uint32_t site, memrt_site_t *out) MEMRT_MUST_CHECK;
size_t memrt__site_frames(uint32_t site, memrt_frame_t *out, size_t max);

#if MEMRT_DEBUG
/// Return whether the invariants of the sites and of the interpreter frames hold.
bool memrt__sites_is_valid(void);
#endif

#endif
