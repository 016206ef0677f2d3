#ifndef MEMRT_RUNTIME_ARROW_H
#define MEMRT_RUNTIME_ARROW_H

#include <memrt/arrow.h>

/// The functions of memrt_api_t of the same names.

memrt_status_t memrt__arrow_export(memrt_meminfo_t *mi, const memrt_arrow_view_t *view,
                                   struct ArrowSchema *schema, struct ArrowArray *array,
                                   const char **why) MEMRT_MUST_CHECK;
memrt_status_t memrt__arrow_adopt(const struct ArrowSchema *schema, struct ArrowArray *array,
                                  const memrt_new_options_t *options, memrt_arrow_view_t *view,
                                  memrt_meminfo_t **out, const char **why) MEMRT_MUST_CHECK;

#endif
