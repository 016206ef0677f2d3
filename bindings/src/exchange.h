#ifndef MEMRT_EXCHANGE_H
#define MEMRT_EXCHANGE_H

#include "binding.h"

/// DLPack's table of functions for compiled code, by which other libraries take tensors, give them
/// and have memory allocated without a call of Python.

/// Have `type`, memrt.MemInfo or memrt.Tensor, offer it as `__dlpack_c_exchange_api__`. -1 with an
/// exception.
int memrt__exchange_offer(PyTypeObject *type);

#endif
