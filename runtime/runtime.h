#ifndef MEMRT_RUNTIME_H
#define MEMRT_RUNTIME_H

#include <stdbool.h>
#include <stddef.h>

#include <memrt/status.h>

#include "runtime/base/check.h"

/// The runtime of the process: started once, by the first caller, and never stopped.

/// Start the runtime: read the options, create the default policy, prepare for fork. Threads: any
/// thread, any number of times.
void memrt__runtime_start(void);

/// See memrt_api_t.option_set.
memrt_status_t memrt__runtime_set_option(const char *name, const char *value, char *why,
                                         size_t length) MEMRT_MUST_CHECK;

/// See memrt_api_t.release_unused.
size_t memrt__runtime_release_unused(void);

#if MEMRT_DEBUG
/// Return whether the invariants of all structures of the runtime hold; if not,
/// memrt__invariant_broken() is the first broken invariant. Threads: any thread without a lock;
/// other threads may use memrt meanwhile.
bool memrt__runtime_is_valid(void);
#endif

#endif
