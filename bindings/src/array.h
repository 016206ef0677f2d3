#ifndef MEMRT_ARRAY_H
#define MEMRT_ARRAY_H

#include "binding.h"

/// Arrays over MemInfos: their base is the MemInfo object, they never own their data.
extern PyMethodDef memrt__array_methods[];

#endif
