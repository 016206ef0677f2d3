#ifndef MEMRT_STATS_METHODS_H
#define MEMRT_STATS_METHODS_H

#include "binding.h"

/// Reading the accounts of the process and of policies.
extern PyMethodDef memrt__stats_methods[];

#endif
