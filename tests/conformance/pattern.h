#ifndef MEMRT_CONFORMANCE_PATTERN_H
#define MEMRT_CONFORMANCE_PATTERN_H

#include <stdbool.h>
#include <stddef.h>

/// Bytes that depend on their place and on a seed, to tell whether contents survived.

void pattern_write(void *data, size_t size, unsigned seed);
bool pattern_holds(const void *data, size_t size, unsigned seed);
bool pattern_is_zero(const void *data, size_t size);

#endif
