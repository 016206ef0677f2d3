#ifndef MEMRT_OS_PRESSURE_SOURCE_H
#define MEMRT_OS_PRESSURE_SOURCE_H

#include <stdbool.h>
#include <stdint.h>

#include <memrt/process/pressure.h>

/// Signals of the system that reclaims memory. Allocates nothing. One thread uses a source.

#define MEMRT__PRESSURE_FILES 2

typedef struct memrt__pressure_source {
    memrt_pressure_source_t kind;
    int files[MEMRT__PRESSURE_FILES];         ///< descriptors; -1: none
    uint64_t identity[MEMRT__PRESSURE_FILES]; ///< of the open files
    uint64_t events[3];                       ///< counts of memory.events at the last read
    char path[1024];                          ///< of memory.events
} memrt__pressure_source_t;

/// Open the first source that the system offers: stalls of the control group or of the machine,
/// events of the control group, notices of version 1. Without these, the kind is
/// MEMRT_PRESSURE_HEADROOM.
void memrt__pressure_source_open(memrt__pressure_source_t *source);

/// Return the highest level signalled since the last call.
memrt_pressure_level_t memrt__pressure_source_read(memrt__pressure_source_t *source);

void memrt__pressure_source_close(memrt__pressure_source_t *source);

#endif
