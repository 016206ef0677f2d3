#ifndef MEMRT_INTEROP_DLPACK_EXPORT_H
#define MEMRT_INTEROP_DLPACK_EXPORT_H

#include <memrt/dlpack.h>

/// Export to DLPack: tensors over MemInfos, and tensors with new memory. The functions implement
/// the slots of memrt_api_t with the same names.

memrt_status_t memrt__dlpack_export(memrt_meminfo_t *mi, const memrt_dlpack_view_t *view,
                                    DLManagedTensorVersioned **out,
                                    const char **why) MEMRT_MUST_CHECK;
memrt_status_t memrt__dlpack_export_unversioned(memrt_meminfo_t *mi,
                                                const memrt_dlpack_view_t *view,
                                                DLManagedTensor **out,
                                                const char **why) MEMRT_MUST_CHECK;
memrt_status_t memrt__dlpack_new(const memrt_dlpack_view_t *view,
                                 const memrt_new_options_t *options, DLManagedTensorVersioned **out,
                                 const char **why) MEMRT_MUST_CHECK;

#endif
