#ifndef MEMRT_MEMINFO_RESIZABLE_H
#define MEMRT_MEMINFO_RESIZABLE_H

#include "runtime/meminfo/meminfo.h"

/// Resizable MemInfos: a header, and a separate block for the data, which may move. The functions
/// implement the slots of memrt_api_t with the same names.

memrt_status_t memrt__resizable_new(size_t size, const memrt_new_options_t *options,
                                    memrt_meminfo_t **out) MEMRT_MUST_CHECK;
memrt_status_t memrt__resizable_new_reserved(size_t size, size_t reserve,
                                             const memrt_new_options_t *options,
                                             memrt_meminfo_t **out) MEMRT_MUST_CHECK;
void *memrt__resizable_alloc(memrt_meminfo_t *mi, size_t size);
void *memrt__resizable_realloc(memrt_meminfo_t *mi, size_t size);
memrt_status_t memrt__resizable_try_expand(memrt_meminfo_t *mi, size_t size) MEMRT_MUST_CHECK;
memrt_status_t memrt__resizable_try_shrink(memrt_meminfo_t *mi, size_t size) MEMRT_MUST_CHECK;
void memrt__resizable_free(memrt_meminfo_t *mi, void *data);

#endif
