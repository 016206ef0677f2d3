#include "support/byte_ranges.h"

#include <stdlib.h>

#include "support/ndarray.h"

/// Layout of an array or buffer.
typedef struct layout {
    const char *data;
    Py_ssize_t itemsize;
    int nd;
    const Py_ssize_t *shape, *strides;
} layout_t;

static int read_array_layout(PyArrayObject *array, layout_t *out)
{
    *out = (layout_t){PyArray_BYTES(array), PyArray_ITEMSIZE(array), PyArray_NDIM(array),
                      PyArray_DIMS(array), PyArray_STRIDES(array)};
    return 1;
}

static int read_view_layout(PyMemoryViewObject *object, layout_t *out)
{
    const Py_buffer *view = &object->view;
    if ((object->flags & _Py_MEMORYVIEW_RELEASED) != 0 || view->suboffsets != NULL) {
        return 0;
    }
    *out = (layout_t){view->buf, view->itemsize, view->ndim, view->shape, view->strides};
    return 1;
}

static int read_layout(PyObject *object, layout_t *out)
{
    if (PyArray_Check(object)) {
        return read_array_layout((PyArrayObject *)object, out);
    }
    return PyMemoryView_Check(object) && read_view_layout((PyMemoryViewObject *)object, out);
}

/// Insert a dimension in order of step, largest first.
static void insert_dimension(memrt_extent_t *extent, size_t count, size_t step)
{
    int axis = extent->nd++;
    for (; axis > 0 && extent->steps[axis - 1] < step; axis--) {
        extent->counts[axis] = extent->counts[axis - 1];
        extent->steps[axis] = extent->steps[axis - 1];
    }
    extent->counts[axis] = count;
    extent->steps[axis] = step;
}

/// Merge runs that touch or overlap.
static void merge_runs(memrt_extent_t *extent)
{
    while (extent->nd > 0 && extent->steps[extent->nd - 1] <= extent->run) {
        extent->nd--;
        extent->run += extent->steps[extent->nd] * (extent->counts[extent->nd] - 1);
    }
}

int memrt__byte_ranges_of(PyObject *object, memrt_extent_t *out)
{
    layout_t layout;
    /* GCOV_EXCL_BR_START: arrays and memoryviews have 64 dimensions at most */
    if (!read_layout(object, &layout) || layout.nd > MEMRT_EXTENT_DIMENSIONS) {
        /* GCOV_EXCL_BR_STOP */
        return 0;
    }
    *out = (memrt_extent_t){.start = (uintptr_t)layout.data, .run = (size_t)layout.itemsize};
    for (int i = 0; i < layout.nd; i++) {
        Py_ssize_t count = layout.shape[i], step = layout.strides[i];
        if (count == 0) {
            *out = (memrt_extent_t){.start = (uintptr_t)layout.data};
            return 1;
        }
        if (step < 0) {
            out->start -= (size_t)-step * (size_t)(count - 1);
            step = -step;
        }
        if (count > 1 && step != 0) {
            insert_dimension(out, (size_t)count, (size_t)step);
        }
    }
    merge_runs(out);
    return 1;
}

size_t memrt__byte_ranges_runs(const memrt_extent_t *extent)
{
    size_t runs = extent->run != 0;
    for (int i = 0; i < extent->nd; i++) {
        /* GCOV_EXCL_BR_START: NumPy refuses shapes beyond the address space */
        if (__builtin_mul_overflow(runs, extent->counts[i], &runs)) {
            /* GCOV_EXCL_BR_STOP */
            return SIZE_MAX;
        }
    }
    return runs;
}

size_t memrt__byte_ranges_span(const memrt_extent_t *extent)
{
    size_t span = extent->run;
    for (int i = 0; i < extent->nd; i++) {
        span += extent->steps[i] * (extent->counts[i] - 1);
    }
    return span;
}

int memrt__byte_ranges_is_plain(const memrt_extent_t *extent)
{
    size_t span = extent->run;
    for (int i = extent->nd - 1; i >= 0; i--) {
        if (extent->steps[i] < span) {
            return 0;
        }
        span += extent->steps[i] * (extent->counts[i] - 1);
    }
    return 1;
}

size_t memrt__byte_ranges_bytes(const memrt_extent_t *extent)
{
    size_t bytes, span = memrt__byte_ranges_span(extent);
    int overflow = __builtin_mul_overflow(memrt__byte_ranges_runs(extent), extent->run, &bytes);
    return overflow || bytes > span ? span : bytes;
}

size_t memrt__byte_ranges_ranges(const memrt_extent_t *extent, memrt_range_t *out)
{
    size_t total = memrt__byte_ranges_runs(extent);
    for (size_t i = 0; i < total; i++) {
        uintptr_t start = extent->start;
        size_t rest = i;
        for (int d = extent->nd - 1; d >= 0; d--) {
            start += rest % extent->counts[d] * extent->steps[d];
            rest /= extent->counts[d];
        }
        out[i] = (memrt_range_t){start, start + extent->run};
    }
    return total;
}

static int compare_starts(const void *a, const void *b)
{
    uintptr_t left = ((const memrt_range_t *)a)->start;
    uintptr_t right = ((const memrt_range_t *)b)->start;
    return (left > right) - (left < right);
}

size_t memrt__ranges_union(memrt_range_t *ranges, size_t count)
{
    size_t bytes = 0;
    uintptr_t end = 0;
    qsort(ranges, count, sizeof(*ranges), compare_starts);
    for (size_t i = 0; i < count; i++) {
        uintptr_t start = ranges[i].start > end ? ranges[i].start : end;
        if (ranges[i].end > start) {
            bytes += ranges[i].end - start;
            end = ranges[i].end;
        }
    }
    return bytes;
}
