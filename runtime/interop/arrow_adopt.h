#ifndef MEMRT_INTEROP_ARROW_ADOPT_H
#define MEMRT_INTEROP_ARROW_ADOPT_H

#include <memrt/arrow.h>

/// Import from Arrow: MemInfos over the memory of arrays. The function implements the slot of
/// memrt_api_t with the same name.

memrt_status_t memrt__arrow_adopt(const struct ArrowSchema *schema, struct ArrowArray *array,
                                  const memrt_new_options_t *options, memrt_arrow_view_t *view,
                                  memrt_meminfo_t **out, const char **why) MEMRT_MUST_CHECK;

#endif
