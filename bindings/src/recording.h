#ifndef MEMRT_RECORDING_H
#define MEMRT_RECORDING_H

#include "binding.h"

/// Traces that are recorded.
extern PyMethodDef memrt__recording_methods[];

#endif
