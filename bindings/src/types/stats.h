#ifndef MEMRT_BINDINGS_TYPES_STATS_H
#define MEMRT_BINDINGS_TYPES_STATS_H

#include "support/binding.h"

/// Return all fields of memrt_stats_t except struct_size, in order, as a tuple. NULL with an
/// exception.
PyObject *memrt__stats_tuple(const memrt_stats_t *stats);

/// Return the members `allocated` and `live` as a tuple of two tuples. NULL with an exception.
PyObject *memrt__sizes_tuple(const memrt_sizes_t *sizes);

/// Return a list with a tuple of all fields for each thread. NULL with an exception.
PyObject *memrt__threads_list(const memrt_thread_stats_t *all, size_t count);

/// Read statistics of the process and of policies.
extern PyMethodDef memrt__stats_methods[];

#endif
