#ifndef MEMRT_TESTS_SUPPORT_WORDS_H
#define MEMRT_TESTS_SUPPORT_WORDS_H

#include <stdbool.h>
#include <stddef.h>

/// Buffers of words with known contents. Word 0 is the number of words, and word 1 is the serial
/// number of the buffer. Each further word follows from the serial number and the word's index.

#define WORDS_MIN 3u ///< minimum of a buffer: fewer words would leave no word to check

void words_fill(size_t *words, size_t count, size_t serial);

/// Return true when words 2 to `count` - 1 are as words_fill() wrote them.
bool words_hold(const size_t *words, size_t count);

#endif
