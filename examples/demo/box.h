#ifndef BOX_H
#define BOX_H

#include <stddef.h>
#include <stdint.h>

#include <memrt/external.h>

/// Compute the mean of the pixels within `radius` of each pixel, in a buffer of memrt.
///
/// pixels: height * width grey values, borrowed. The window is cut off at the edges. Means are
/// rounded down.
/// Ownership: `*out` is a new reference to height * width bytes. Its release frees the bytes.
/// Failure:   returns the status of memrt. `*out` is unchanged and nothing stays allocated.
memrt_status_t box_mean(const memrt_api_t *api, const uint8_t *pixels, size_t height, size_t width,
                        size_t radius, memrt_meminfo_t **out) MEMRT_MUST_CHECK;

#endif
