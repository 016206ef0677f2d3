#include "api/checked_slots.h"

#include <memrt/arrow.h>
#include <memrt/dlpack.h>

#include "api/plain_table.h"
#include "api/verify_meminfo.h"
#include "api/verify_policy.h"

memrt_status_t memrt__checked_dlpack_export(memrt_meminfo_t *mi, const memrt_dlpack_view_t *view,
                                            DLManagedTensorVersioned **out, const char **why)
{
    memrt__verify_held_meminfo("dlpack_export", mi);
    return memrt__plain_table.dlpack_export(mi, view, out, why);
}

memrt_status_t memrt__checked_dlpack_export_unversioned(memrt_meminfo_t *mi,
                                                        const memrt_dlpack_view_t *view,
                                                        DLManagedTensor **out, const char **why)
{
    memrt__verify_held_meminfo("dlpack_export_unversioned", mi);
    return memrt__plain_table.dlpack_export_unversioned(mi, view, out, why);
}

memrt_status_t memrt__checked_dlpack_adopt(DLManagedTensorVersioned *tensor,
                                           const memrt_new_options_t *options,
                                           memrt_dlpack_view_t *view, memrt_meminfo_t **out,
                                           const char **why)
{
    memrt__verify_options("dlpack_adopt", options);
    return memrt__plain_table.dlpack_adopt(tensor, options, view, out, why);
}

memrt_status_t memrt__checked_dlpack_adopt_unversioned(DLManagedTensor *tensor,
                                                       const memrt_new_options_t *options,
                                                       memrt_dlpack_view_t *view,
                                                       memrt_meminfo_t **out, const char **why)
{
    memrt__verify_options("dlpack_adopt_unversioned", options);
    return memrt__plain_table.dlpack_adopt_unversioned(tensor, options, view, out, why);
}

memrt_status_t memrt__checked_dlpack_new(const memrt_dlpack_view_t *view,
                                         const memrt_new_options_t *options,
                                         DLManagedTensorVersioned **out, const char **why)
{
    memrt__verify_options("dlpack_new", options);
    return memrt__plain_table.dlpack_new(view, options, out, why);
}

memrt_status_t memrt__checked_arrow_adopt(const struct ArrowSchema *schema,
                                          struct ArrowArray *array,
                                          const memrt_new_options_t *options,
                                          memrt_arrow_view_t *view, memrt_meminfo_t **out,
                                          const char **why)
{
    memrt__verify_options("arrow_adopt", options);
    return memrt__plain_table.arrow_adopt(schema, array, options, view, out, why);
}

memrt_status_t memrt__checked_arrow_export(memrt_meminfo_t *mi, const memrt_arrow_view_t *view,
                                           struct ArrowSchema *schema, struct ArrowArray *array,
                                           const char **why)
{
    memrt__verify_held_meminfo("arrow_export", mi);
    if (view->validity_owner != NULL) {
        memrt__verify_held_meminfo("arrow_export", view->validity_owner);
    }
    return memrt__plain_table.arrow_export(mi, view, schema, array, why);
}
