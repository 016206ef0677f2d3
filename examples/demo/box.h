#ifndef BOX_H
#define BOX_H

#include <stddef.h>
#include <stdint.h>

#include <memrt/external.h>

/// Mean of the pixels within `radius` of each pixel, in a buffer of memrt's.
///
/// pixels: height * width grey values, borrowed. At the edges the window is cut off; means are
/// rounded down.
/// Ownership: `*out` is a new reference to height * width bytes; releasing it frees them.
/// Failure:   the status of memrt; `*out` is untouched and nothing is left allocated.
memrt_status_t box_mean(const memrt_api_t *api, const uint8_t *pixels, size_t height, size_t width,
                        size_t radius, memrt_meminfo_t **out) MEMRT_MUST_CHECK;

#endif
