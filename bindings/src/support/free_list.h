#ifndef MEMRT_BINDINGS_SUPPORT_FREE_LIST_H
#define MEMRT_BINDINGS_SUPPORT_FREE_LIST_H

#include "support/binding.h"

/// Free list: recycled Python objects or structs of one size. Needs the GIL.
#define MEMRT_SPARES_MAX 64

typedef struct memrt_spares {
    int count;
    void *pieces[MEMRT_SPARES_MAX];
} memrt_spares_t;

/// Take a piece with its old contents, or return NULL if the free list is empty.
static inline void *memrt__free_list_take(memrt_spares_t *spares)
{
    return spares->count > 0 ? spares->pieces[--spares->count] : NULL;
}

/// Put a piece on the free list. Returns 0 if the list is full or Python has no GIL; the caller
/// then keeps the piece.
static inline int memrt__free_list_put(memrt_spares_t *spares, void *piece)
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
