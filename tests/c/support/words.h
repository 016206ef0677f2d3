#ifndef MEMRT_TESTS_SUPPORT_WORDS_H
#define MEMRT_TESTS_SUPPORT_WORDS_H

#include <stdbool.h>
#include <stddef.h>

/// Buffers of words that say themselves what must stand in them: the first how many words there
/// are, the second which buffer it is, and each other one follows from these and from its place.

#define WORDS_MIN 3u ///< of a buffer: less would leave no word that can be wrong

void words_fill(size_t *words, size_t count, size_t serial);

/// The first `count` words are as they were filled.
bool words_hold(const size_t *words, size_t count);

#endif
