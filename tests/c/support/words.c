#include "support/words.h"

static size_t compute_word(size_t serial, size_t place)
{
    return (serial + place) * 0x9E3779B97F4A7C15u;
}

void words_fill(size_t *words, size_t count, size_t serial)
{
    words[0] = count;
    words[1] = serial;
    for (size_t i = 2; i < count; i++) {
        words[i] = compute_word(serial, i);
    }
}

bool words_hold(const size_t *words, size_t count)
{
    size_t i = 2;
    while (i < count && words[i] == compute_word(words[1], i)) {
        i++;
    }
    return i >= count;
}
