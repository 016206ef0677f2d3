#include "runtime/pressure/pressure_level.h"

#include "runtime/os/os.h"

/// Thousandths of the limit at which each level begins.
static const uint32_t begin[] = {
    [MEMRT_PRESSURE_LOW] = 800,
    [MEMRT_PRESSURE_MEDIUM] = 900,
    [MEMRT_PRESSURE_CRITICAL] = 950,
};

/// A level ends this number of thousandths below the threshold of its beginning.
#define HYSTERESIS 50u

/// Signals count from that many thousandths of the limit on. Below, the system reclaims file pages,
/// or the memory of other groups.
#define SIGNAL_MIN 500u

#define SIGNAL_TIME (5 * MEMRT__SECOND) /* for which a signal lasts */

#define WHOLE 1000u /* thousandths */

uint32_t memrt__pressure_permille(uint64_t used, uint64_t limit)
{
    return used >= limit ? WHOLE : (uint32_t)((double)used / (double)limit * WHOLE);
}

static memrt_pressure_level_t find_level(memrt_pressure_level_t before, uint32_t permille)
{
    memrt_pressure_level_t found = MEMRT_PRESSURE_NONE;
    for (int level = MEMRT_PRESSURE_LOW; level <= MEMRT_PRESSURE_CRITICAL; level++) {
        uint32_t bound = begin[level] - (level <= (int)before ? HYSTERESIS : 0);
        found = permille >= bound ? (memrt_pressure_level_t)level : found;
    }
    return found;
}

memrt_pressure_level_t memrt__pressure_update(memrt__pressure_state_t *state, uint32_t permille,
                                              memrt_pressure_level_t signal, uint64_t now)
{
    state->level = find_level(state->level, permille);
    if (now >= state->signal_end || permille < SIGNAL_MIN) {
        state->signal = MEMRT_PRESSURE_NONE;
    }
    if (signal != MEMRT_PRESSURE_NONE && permille >= SIGNAL_MIN) {
        state->signal = signal > state->signal ? signal : state->signal;
        state->signal_end = now + SIGNAL_TIME;
    }
    return state->signal > state->level ? state->signal : state->level;
}

memrt_pressure_level_t memrt__pressure_raise(memrt_pressure_level_t level, size_t above)
{
    return above != 0 && level < MEMRT_PRESSURE_MEDIUM ? MEMRT_PRESSURE_MEDIUM : level;
}
