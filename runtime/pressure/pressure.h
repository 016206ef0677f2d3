#ifndef MEMRT_PRESSURE_PRESSURE_H
#define MEMRT_PRESSURE_PRESSURE_H

#include <memrt/process/pressure.h>

/// Implementations of the memrt_api_t functions with the same names.
memrt_status_t memrt__pressure_read(memrt_pressure_t *out) MEMRT_MUST_CHECK;
memrt_status_t memrt__pressure_add(memrt_pressure_callback callback, void *context,
                                   memrt_pressure_level_t level, uint64_t *id) MEMRT_MUST_CHECK;
memrt_status_t memrt__pressure_remove(uint64_t id) MEMRT_MUST_CHECK;

#endif
