#include "support/pattern.h"

static unsigned char byte_at(size_t place, unsigned seed)
{
    return (unsigned char)(place * 31u + (place >> 8) + seed * 17u + 1u);
}

void pattern_write(void *data, size_t size, unsigned seed)
{
    unsigned char *bytes = data;
    for (size_t i = 0; i < size; i++) {
        bytes[i] = byte_at(i, seed);
    }
}

bool pattern_holds(const void *data, size_t size, unsigned seed)
{
    const unsigned char *bytes = data;
    for (size_t i = 0; i < size; i++) {
        if (bytes[i] != byte_at(i, seed)) {
            return false;
        }
    }
    return true;
}

bool pattern_is_zero(const void *data, size_t size)
{
    const unsigned char *bytes = data;
    for (size_t i = 0; i < size; i++) {
        if (bytes[i] != 0) {
            return false;
        }
    }
    return true;
}
