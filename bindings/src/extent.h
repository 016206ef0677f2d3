#ifndef MEMRT_EXTENT_H
#define MEMRT_EXTENT_H

#include "binding.h"

/// Which bytes an array or memoryview addresses: runs of bytes without a gap, at the steps of some
/// dimensions. Elements that lie over each other count once, those between the elements not at all.

#define MEMRT_EXTENT_DIMENSIONS 64

typedef struct memrt_extent {
    uintptr_t start;                        ///< of the first run
    size_t run;                             ///< bytes of one; 0: nothing is addressed
    int nd;                                 ///< dimensions of runs, outermost first
    size_t counts[MEMRT_EXTENT_DIMENSIONS]; ///< 2 or more
    size_t steps[MEMRT_EXTENT_DIMENSIONS];  ///< more than `run`
} memrt_extent_t;

/// What an array or memoryview addresses. 0: it is neither, or nobody can tell.
int memrt__extent_of(PyObject *object, memrt_extent_t *out);

/// Number of runs.
size_t memrt__extent_runs(const memrt_extent_t *extent);

/// Bytes from the first to the last.
size_t memrt__extent_span(const memrt_extent_t *extent);

/// Whether no two runs lie over each other for certain.
int memrt__extent_is_plain(const memrt_extent_t *extent);

/// Bytes addressed; at least as many where runs lie over each other.
size_t memrt__extent_bytes(const memrt_extent_t *extent);

/// Bytes from `start` on, below `end`.
typedef struct memrt_range {
    uintptr_t start, end;
} memrt_range_t;

/// Write all runs to `out`, which has room for them. Returns how many they are.
size_t memrt__extent_ranges(const memrt_extent_t *extent, memrt_range_t *out);

/// Bytes that are in any of the ranges, which get sorted.
size_t memrt__ranges_union(memrt_range_t *ranges, size_t count);

#endif
