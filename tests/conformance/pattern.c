#include "conformance/pattern.h"

#include <string.h>

/* Period of the pattern in bytes. Copies and comparisons work on whole tiles, which is fast even
   under sanitizers. */
#define TILE 65536u

static void write_tile(unsigned char *tile, size_t size, unsigned seed)
{
    for (size_t i = 0; i < size && i < TILE; i++) {
        tile[i] = (unsigned char)(i * 31u + (i >> 8) + seed * 17u + 1u);
    }
}

static size_t tile_length(size_t left)
{
    return left < TILE ? left : TILE;
}

void pattern_write(void *data, size_t size, unsigned seed)
{
    unsigned char tile[TILE];
    write_tile(tile, size, seed);
    for (size_t done = 0; done < size; done += TILE) {
        memcpy((char *)data + done, tile, tile_length(size - done));
    }
}

bool pattern_holds(const void *data, size_t size, unsigned seed)
{
    unsigned char tile[TILE];
    bool holds = true;
    write_tile(tile, size, seed);
    for (size_t done = 0; done < size && holds; done += TILE) {
        holds = memcmp((const char *)data + done, tile, tile_length(size - done)) == 0;
    }
    return holds;
}

bool pattern_is_zero(const void *data, size_t size)
{
    const char *bytes = data;
    return size == 0 || (bytes[0] == 0 && memcmp(bytes, bytes + 1, size - 1) == 0);
}
