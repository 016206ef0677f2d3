#ifndef MEMRT_PRESSURE_HEADROOM_H
#define MEMRT_PRESSURE_HEADROOM_H

#include <stdint.h>

/// Use of the nearest limit of the process.

typedef struct memrt__headroom {
    const char *of; ///< owner of the limit; static text
    uint64_t limit; ///< UINT64_MAX: no limit is known
    uint64_t used;
    uint32_t permille; ///< thousandths of the limit in use
} memrt__headroom_t;

/// Find the limit with the largest part in use: the limit of the process for live bytes, and the
/// limits of the system. Allocates nothing.
memrt__headroom_t memrt__headroom_read(void);

#endif
