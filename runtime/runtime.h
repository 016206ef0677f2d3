#ifndef MEMRT_RUNTIME_H
#define MEMRT_RUNTIME_H

#include <stdbool.h>

/// The process's runtime: made once, by whoever comes first; there is no unmaking.

/// Read the options, make the default policy, prepare for fork. Any thread, any number of times.
void memrt__runtime_start(void);

/// Turn tracking on or off; returns whether it was on. Under checking it stays on.
bool memrt__runtime_track(bool on);

#endif
