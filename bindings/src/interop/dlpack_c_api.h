#ifndef MEMRT_BINDINGS_INTEROP_DLPACK_C_API_H
#define MEMRT_BINDINGS_INTEROP_DLPACK_C_API_H

#include "support/binding.h"

/// Provide DLPack's C exchange table. Compiled code of other libraries uses the table to import and
/// export tensors, and to allocate memory, without a Python call.

/// Add the table to memrt.types.Tensor and memrt.MemInfo, as `__dlpack_c_exchange_api__`. Call
/// once, at import, after both types were created. -1 with an exception.
int memrt__dlpack_c_api_setup(void);

#endif
