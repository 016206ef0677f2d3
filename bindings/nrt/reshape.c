#include <stdbool.h>

#include "helpers.h"

/// Reshape of an array without a copy, one of the functions that object code of Numba calls.

/// Shape of an array, walked from the innermost axis outwards: the last axis is the innermost in C
/// order, the first in Fortran order.
typedef struct axes {
    int64_t count;
    const int64_t *shape;
    bool fortran;
} axes_t;

static int64_t find_axis(const axes_t *axes, int64_t step)
{
    return axes->fortran ? step : axes->count - 1 - step;
}

static int64_t count_elements(const axes_t *axes)
{
    int64_t count = 1;
    for (int64_t i = 0; i < axes->count; i++) {
        count *= axes->shape[i];
    }
    return count;
}

/// Run of neighbouring axes whose elements are `stride` bytes apart.
typedef struct run {
    int64_t elements;
    int64_t stride;
} run_t;

/// Split a run into axes of the new shape, from step `*step` on. Returns false if an axis of the
/// new shape would cross the end of the run.
static bool split_run(const run_t *run, const axes_t *to, int64_t *step, int64_t *strides)
{
    int64_t elements = 1;
    for (; *step < to->count; (*step)++) {
        int64_t axis = find_axis(to, *step);
        if (elements == run->elements && to->shape[axis] != 1) {
            break;
        }
        strides[axis] = elements * run->stride;
        elements *= to->shape[axis];
    }
    return elements == run->elements;
}

/// Return whether the axis at `step` is outside of the run: its stride is not the size of the run.
static bool ends_run(const axes_t *from, const int64_t *strides, int64_t step, const run_t *run)
{
    int64_t axis = find_axis(from, step);
    return from->shape[axis] != 1 && strides[axis] != run->elements * run->stride;
}

static bool reshape(const axes_t *from, const int64_t *strides, const axes_t *to,
                    int64_t *new_strides)
{
    int64_t split = 0;
    run_t run = {1, strides[find_axis(from, 0)]};
    for (int64_t step = 0; step < from->count; step++) {
        if (ends_run(from, strides, step, &run)) {
            if (!split_run(&run, to, &split, new_strides)) {
                return false;
            }
            run = (run_t){1, strides[find_axis(from, step)]};
        }
        run.elements *= from->shape[find_axis(from, step)];
    }
    return split_run(&run, to, &split, new_strides);
}

int numba_attempt_nocopy_reshape(int64_t ndim, const int64_t *shape, const int64_t *strides,
                                 int64_t new_ndim, const int64_t *new_shape, int64_t *new_strides,
                                 int64_t itemsize, int fortran)
{
    axes_t from = {ndim, shape, fortran}, to = {new_ndim, new_shape, fortran};
    int64_t elements = count_elements(&from);
    if (elements != count_elements(&to)) {
        return 0;
    }
    if (elements == 0 || ndim == 0) {
        for (int64_t i = 0; i < new_ndim; i++) {
            new_strides[i] = itemsize; /* any value: no element has a neighbour */
        }
        return 1;
    }
    return reshape(&from, strides, &to, new_strides);
}
