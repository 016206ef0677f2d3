#ifndef MEMRT_SPARES_H
#define MEMRT_SPARES_H

#include "binding.h"

/// Pieces of memory of one size that are kept for the next who wants one. Needs the GIL.
#define MEMRT_SPARES_MAX 64

typedef struct memrt_spares {
    int count;
    void *pieces[MEMRT_SPARES_MAX];
} memrt_spares_t;

/// A piece, with whatever it was left with, or NULL when there is none.
static inline void *memrt__spares_take(memrt_spares_t *spares)
{
    return spares->count > 0 ? spares->pieces[--spares->count] : NULL;
}

/// Keep a piece; 0 when there are enough, and then it stays the caller's.
static inline int memrt__spares_put(memrt_spares_t *spares, void *piece)
{
#ifndef Py_GIL_DISABLED
    if (spares->count < MEMRT_SPARES_MAX) {
        spares->pieces[spares->count++] = piece;
        return 1;
    }
#endif
    return 0;
}

#endif
