#ifndef MEMRT_STATS_RETIRE_H
#define MEMRT_STATS_RETIRE_H

#include "runtime/stats/tally.h"

/// Retire an idle account that is no longer reachable. The counts move to `past` of the aggregates,
/// and the index can serve a new account that starts at zero.
void memrt__stats_retire(memrt__account_t *account);

#endif
