#ifndef MEMRT_RUNTIME_DLPACK_H
#define MEMRT_RUNTIME_DLPACK_H

#include <memrt/dlpack.h>

/// The functions of memrt_api_t of the same names.

memrt_status_t memrt__dlpack_export(memrt_meminfo_t *mi, const memrt_dlpack_view_t *view,
                                    DLManagedTensorVersioned **out,
                                    const char **why) MEMRT_MUST_CHECK;
memrt_status_t memrt__dlpack_export_unversioned(memrt_meminfo_t *mi,
                                                const memrt_dlpack_view_t *view,
                                                DLManagedTensor **out,
                                                const char **why) MEMRT_MUST_CHECK;
memrt_status_t memrt__dlpack_adopt(DLManagedTensorVersioned *tensor,
                                   const memrt_new_options_t *options, memrt_dlpack_view_t *view,
                                   memrt_meminfo_t **out, const char **why) MEMRT_MUST_CHECK;
memrt_status_t memrt__dlpack_adopt_unversioned(DLManagedTensor *tensor,
                                               const memrt_new_options_t *options,
                                               memrt_dlpack_view_t *view, memrt_meminfo_t **out,
                                               const char **why) MEMRT_MUST_CHECK;
memrt_status_t memrt__dlpack_new(const memrt_dlpack_view_t *view,
                                 const memrt_new_options_t *options, DLManagedTensorVersioned **out,
                                 const char **why) MEMRT_MUST_CHECK;

#endif
