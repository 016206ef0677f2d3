#ifndef MEMRT_BASE_PLACE_H
#define MEMRT_BASE_PLACE_H

#include <stddef.h>

/// Where in a program something happened: the calls that led there, innermost first.

#define MEMRT__PLACE_DEPTH 16

/// Bytes of text that tell where a block was made and freed.
#define MEMRT__PLACES_TEXT 2048

typedef struct memrt__place {
    void *frames[MEMRT__PLACE_DEPTH]; ///< return addresses; NULL from where they end
} memrt__place_t;

/// The place of the call, as memrt__unwind() finds it.
void memrt__place_take(memrt__place_t *place);

/// Write a line "    function+0xNN in object" for each call outside of libmemrt, or
/// "    object+0xNN" where the loader knows no function, for addr2line. Allocates nothing. Returns
/// the length of what was written, which is cut to fit.
size_t memrt__place_text(const memrt__place_t *place, char *text, size_t length);

#endif
