#ifndef MEMRT_BINDINGS_SUPPORT_FREE_LIST_H
#define MEMRT_BINDINGS_SUPPORT_FREE_LIST_H

#include "support/binding.h"

/// Free list: recycled Python objects or structs of one size. Needs the GIL; in CPython without a
/// GIL the list stays empty.

#define MEMRT_FREE_LIST_MAX 64 /* pieces */

/// Invariant: the first `count` entries of `pieces` are unused memory that the list owns.
typedef struct memrt_free_list {
    int count;
    void *pieces[MEMRT_FREE_LIST_MAX];
} memrt_free_list_t;

/// Take a piece with its old contents, or return NULL if the free list is empty.
static inline void *memrt__free_list_take(memrt_free_list_t *free_list)
{
    return free_list->count > 0 ? free_list->pieces[--free_list->count] : NULL;
}

/// Put a piece on the free list. Returns 0 if the list is full or Python has no GIL; the caller
/// then keeps the piece.
static inline int memrt__free_list_put(memrt_free_list_t *free_list, void *piece)
{
#ifndef Py_GIL_DISABLED
    if (free_list->count < MEMRT_FREE_LIST_MAX) {
        free_list->pieces[free_list->count++] = piece;
        return 1;
    }
#endif
    return 0;
}

#endif
