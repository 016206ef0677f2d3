#ifndef MEMRT_OBSERVE_FUNCTIONS_H
#define MEMRT_OBSERVE_FUNCTIONS_H

/// Types of all functions of observation in the function table.

#include <memrt/observe/hook.h>
#include <memrt/observe/latency.h>
#include <memrt/observe/memory_stats.h>
#include <memrt/observe/observer.h>
#include <memrt/observe/reference_counts.h>
#include <memrt/observe/site.h>
#include <memrt/observe/snapshot.h>
#include <memrt/observe/stats.h>
#include <memrt/observe/trace.h>
#include <memrt/observe/tracking.h>

#endif
