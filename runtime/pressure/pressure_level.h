#ifndef MEMRT_PRESSURE_PRESSURE_LEVEL_H
#define MEMRT_PRESSURE_PRESSURE_LEVEL_H

#include <stddef.h>
#include <stdint.h>

#include <memrt/process/pressure.h>

/// Level of memory pressure from the use of a limit and from signals of the system.

/// State of the level. Zeros: no pressure.
typedef struct memrt__pressure_state {
    memrt_pressure_level_t level;  ///< by the use of the limit
    memrt_pressure_level_t signal; ///< last signal
    uint64_t signal_end;           ///< time in nanoseconds at which the signal ends
} memrt__pressure_state_t;

/// Return the part of a limit that is in use, in thousandths, 1000 at most.
uint32_t memrt__pressure_permille(uint64_t used, uint64_t limit);

/// Update the state with the use of the nearest limit, and with a signal at the time `now`. Returns
/// the level in force.
memrt_pressure_level_t memrt__pressure_update(memrt__pressure_state_t *state, uint32_t permille,
                                              memrt_pressure_level_t signal, uint64_t now);

/// Return `level`, raised to medium if `above` soft limits are exceeded.
memrt_pressure_level_t memrt__pressure_raise(memrt_pressure_level_t level, size_t above);

#endif
