#include "runtime/interop/dlpack_view.h"

#include "runtime/base/size.h"
#include "runtime/interop/refusal.h"

/// Return the bytes of one element, or 0 if memrt does not exchange the type.
static size_t get_itemsize(DLDataType dtype)
{
    /* Sizes are powers of two. Each entry is the set of sizes that a type code can have. */
    static const uint8_t sizes[] = {
        [kDLInt] = 1 | 2 | 4 | 8, [kDLUInt] = 1 | 2 | 4 | 8, [kDLFloat] = 2 | 4 | 8,
        [kDLBfloat] = 2,          [kDLComplex] = 8 | 16,     [kDLBool] = 1,
        [kDLFloat8_e3m4] = 1,     [kDLFloat8_e4m3] = 1,      [kDLFloat8_e4m3b11fnuz] = 1,
        [kDLFloat8_e4m3fn] = 1,   [kDLFloat8_e4m3fnuz] = 1,  [kDLFloat8_e5m2] = 1,
        [kDLFloat8_e5m2fnuz] = 1, [kDLFloat8_e8m0fnu] = 1,
    };
    size_t size = dtype.bits / 8u;
    bool known = dtype.code < sizeof(sizes) && dtype.lanes == 1 && dtype.bits % 8 == 0 &&
                 memrt__is_power_of_two(size) && (sizes[dtype.code] & size) != 0;
    return known ? size : 0;
}

/// Compute the bytes of all elements. An extent of 0 counts as 1, so that the remaining extents are
/// checked, too. Returns false for a negative extent, and for more than PTRDIFF_MAX bytes.
static bool multiply_extents(const memrt_dlpack_view_t *view, size_t itemsize, size_t *bytes,
                             bool *empty)
{
    *bytes = itemsize;
    *empty = false;
    for (int32_t i = 0; i < view->ndim; i++) {
        int64_t extent = view->shape[i];
        if (extent < 0) {
            return false;
        }
        *empty |= extent == 0;
        if (extent > 0 && !memrt__size_mul(*bytes, (size_t)extent, bytes)) {
            return false;
        }
    }
    return *bytes <= PTRDIFF_MAX;
}

/// Extend the range by a dimension of at least one element. Returns false on overflow.
static bool extend_reach(memrt__dlpack_reach_t *reach, int64_t extent, int64_t stride,
                         size_t itemsize)
{
    size_t step = stride < 0 ? 0 - (size_t)stride : (size_t)stride;
    size_t *end = stride < 0 ? &reach->before : &reach->after;
    return memrt__size_mul((size_t)extent - 1, step, &step) &&
           memrt__size_mul(step, itemsize, &step) && memrt__size_add(*end, step, end);
}

static bool extend_reach_by_view(memrt__dlpack_reach_t *reach, const memrt_dlpack_view_t *view,
                                 size_t itemsize)
{
    size_t sum;
    for (int32_t i = 0; i < view->ndim; i++) {
        if (!extend_reach(reach, view->shape[i], view->strides[i], itemsize)) {
            return false;
        }
    }
    return memrt__size_add(reach->before, reach->after, &sum) && sum <= PTRDIFF_MAX;
}

memrt_status_t memrt__dlpack_measure(const memrt_dlpack_view_t *view, memrt__dlpack_reach_t *out,
                                     const char **why)
{
    size_t itemsize = get_itemsize(view->dtype), bytes;
    bool empty;
    if (itemsize == 0) {
        return memrt__refuse(MEMRT_ENOTSUP,
                             "elements of the given type, bits and lanes are not supported", why);
    }
    if (view->ndim < 0 || view->ndim > MEMRT_DLPACK_NDIM_MAX) {
        return memrt__refuse(MEMRT_EINVAL, "the number of dimensions must be from 0 to 64", why);
    }
    if (view->ndim > 0 && view->shape == NULL) {
        return memrt__refuse(MEMRT_EINVAL, "a tensor with dimensions must have a shape", why);
    }
    if (!multiply_extents(view, itemsize, &bytes, &empty)) {
        return memrt__refuse(
            MEMRT_EINVAL, "an extent is negative, or all extents together exceed the address space",
            why);
    }
    *out = (memrt__dlpack_reach_t){0, empty ? 0 : bytes};
    if (empty || view->strides == NULL) {
        return MEMRT_OK;
    }
    out->after = itemsize;
    return extend_reach_by_view(out, view, itemsize)
               ? MEMRT_OK
               : memrt__refuse(MEMRT_EINVAL, "the strides exceed the address space", why);
}
