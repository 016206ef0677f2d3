#ifndef MEMRT_STATS_METHODS_H
#define MEMRT_STATS_METHODS_H

#include "binding.h"

/// All fields but struct_size, in the order of memrt_stats_t, as a tuple.
PyObject *memrt__stats_tuple(const memrt_stats_t *stats);

/// Reading the accounts of the process and of policies.
extern PyMethodDef memrt__stats_methods[];

#endif
