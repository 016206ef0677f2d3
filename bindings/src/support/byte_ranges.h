#ifndef MEMRT_BINDINGS_SUPPORT_BYTE_RANGES_H
#define MEMRT_BINDINGS_SUPPORT_BYTE_RANGES_H

#include "support/binding.h"

/// Compute the bytes that an array or memoryview addresses, as runs of contiguous bytes at the
/// steps of some dimensions. Overlapping elements count once, and gaps between elements do not
/// count.

#define MEMRT_EXTENT_DIMENSIONS 64

typedef struct memrt_extent {
    uintptr_t start;                        ///< address of the first run
    size_t run;                             ///< bytes of one run; 0: nothing is addressed
    int nd;                                 ///< dimensions of runs, outermost first
    size_t counts[MEMRT_EXTENT_DIMENSIONS]; ///< 2 or more
    size_t steps[MEMRT_EXTENT_DIMENSIONS];  ///< more than `run`
} memrt_extent_t;

/// Compute the byte ranges of an array or memoryview. Returns 0 for other objects, released views
/// and views with suboffsets.
int memrt__byte_ranges_of(PyObject *object, memrt_extent_t *out);

/// Return the number of runs.
size_t memrt__byte_ranges_runs(const memrt_extent_t *extent);

/// Return the bytes from the start of the first run to the end of the last run.
size_t memrt__byte_ranges_span(const memrt_extent_t *extent);

/// Return whether the runs certainly do not overlap.
int memrt__byte_ranges_is_plain(const memrt_extent_t *extent);

/// Return the addressed bytes. An upper bound where runs overlap.
size_t memrt__byte_ranges_bytes(const memrt_extent_t *extent);

/// Addresses from `start` up to but excluding `end`.
typedef struct memrt_range {
    uintptr_t start, end;
} memrt_range_t;

/// Write all runs to `out`, which must have room for memrt__byte_ranges_runs() entries. Returns
/// their number.
size_t memrt__byte_ranges_ranges(const memrt_extent_t *extent, memrt_range_t *out);

/// Return the bytes covered by at least one range. Sorts `ranges`.
size_t memrt__ranges_union(memrt_range_t *ranges, size_t count);

#endif
