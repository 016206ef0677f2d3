#ifndef MEMRT_INTEROP_ARROW_EXPORT_H
#define MEMRT_INTEROP_ARROW_EXPORT_H

#include <memrt/arrow.h>

/// Export to Arrow: arrays over MemInfos. The function implements the slot of memrt_api_t with the
/// same name.

memrt_status_t memrt__arrow_export(memrt_meminfo_t *mi, const memrt_arrow_view_t *view,
                                   struct ArrowSchema *schema, struct ArrowArray *array,
                                   const char **why) MEMRT_MUST_CHECK;

#endif
