#ifndef MEMRT_INTEROP_DLPACK_VIEW_H
#define MEMRT_INTEROP_DLPACK_VIEW_H

#include <stdbool.h>
#include <stddef.h>

#include <memrt/dlpack.h>

/// Views of DLPack tensors: the bytes in which the elements lie.

/// Flags that a view may have.
#define MEMRT__DLPACK_FLAGS (DLPACK_FLAG_BITMASK_READ_ONLY | DLPACK_FLAG_BITMASK_IS_COPIED)

/// Range of bytes with elements: bytes before and after the start of the first element.
typedef struct memrt__dlpack_reach {
    size_t before;
    size_t after;
} memrt__dlpack_reach_t;

/// Check a view, and compute the range of its elements. A refusal sets `*why`.
memrt_status_t memrt__dlpack_measure(const memrt_dlpack_view_t *view, memrt__dlpack_reach_t *out,
                                     const char **why);

static inline bool memrt__dlpack_is_empty(const memrt__dlpack_reach_t *reach)
{
    return reach->after == 0;
}

#endif
