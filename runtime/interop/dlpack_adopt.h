#ifndef MEMRT_INTEROP_DLPACK_ADOPT_H
#define MEMRT_INTEROP_DLPACK_ADOPT_H

#include <memrt/dlpack.h>

/// Import from DLPack: MemInfos over the memory of tensors. The functions implement the slots of
/// memrt_api_t with the same names.

memrt_status_t memrt__dlpack_adopt(DLManagedTensorVersioned *tensor,
                                   const memrt_new_options_t *options, memrt_dlpack_view_t *view,
                                   memrt_meminfo_t **out, const char **why) MEMRT_MUST_CHECK;
memrt_status_t memrt__dlpack_adopt_unversioned(DLManagedTensor *tensor,
                                               const memrt_new_options_t *options,
                                               memrt_dlpack_view_t *view, memrt_meminfo_t **out,
                                               const char **why) MEMRT_MUST_CHECK;

#endif
