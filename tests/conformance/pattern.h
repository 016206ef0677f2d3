#ifndef MEMRT_CONFORMANCE_PATTERN_H
#define MEMRT_CONFORMANCE_PATTERN_H

#include <stdbool.h>
#include <stddef.h>

/// Write and check a pattern of bytes, in order to verify the contents of a block. The pattern
/// depends on the offset and on a seed.

void pattern_write(void *data, size_t size, unsigned seed);
bool pattern_holds(const void *data, size_t size, unsigned seed);
bool pattern_is_zero(const void *data, size_t size);

#endif
