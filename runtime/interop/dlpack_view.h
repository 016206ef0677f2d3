#ifndef MEMRT_INTEROP_DLPACK_VIEW_H
#define MEMRT_INTEROP_DLPACK_VIEW_H

#include <stdbool.h>
#include <stddef.h>

#include <memrt/dlpack.h>

/// Check of a DLPack view: element type, shape and strides are valid, and all elements lie in a
/// range of bytes around the first element. Exports and imports compare this range with the memory.
///
/// Invariant: `before + after` of a range is at most PTRDIFF_MAX. A negative stride extends
/// `before`.

/// Flags that a view may have.
#define MEMRT__DLPACK_FLAGS (DLPACK_FLAG_BITMASK_READ_ONLY | DLPACK_FLAG_BITMASK_IS_COPIED)

/// Range of bytes with elements, from `before` bytes before the first element to `after` bytes
/// after its start. Both are 0 without elements.
typedef struct memrt__dlpack_reach {
    size_t before;
    size_t after;
} memrt__dlpack_reach_t;

/// Check a view, and compute the range of its elements. A view without strides is compact, in row
/// order.
///
/// Failure: sets `*why`. Returns MEMRT_ENOTSUP for an element type that memrt does not exchange,
/// and MEMRT_EINVAL for a wrong shape, or elements beyond the address space.
memrt_status_t memrt__dlpack_measure(const memrt_dlpack_view_t *view, memrt__dlpack_reach_t *out,
                                     const char **why);

/// Return whether a view has no elements.
static inline bool memrt__dlpack_is_empty(const memrt__dlpack_reach_t *reach)
{
    return reach->after == 0;
}

#endif
