#ifndef MEMRT_TRACE_EVENT_TRACE_H
#define MEMRT_TRACE_EVENT_TRACE_H

#include <stdbool.h>

#include <memrt/observe/trace.h>
#include <memrt/observe/trace_file.h>
#include <memrt/status.h>

#include "runtime/base/check.h"
#include "runtime/base/compiler.h"
#include "runtime/base/slow_path.h"

/// Event trace: records allocations, frees, resizes and marks to a file. Each thread has a buffer
/// of its own. A buffer is written when the buffer is full, when the trace stops, and on a request
/// for statistics. The event trace takes no memory from memrt.

static inline bool memrt__trace_is_on(void)
{
    return MEMRT__UNLIKELY(memrt__is_slow(MEMRT__SLOW_TRACING));
}

/// Implement the functions of memrt_api_t of the same names.
memrt_status_t memrt__trace_start(const memrt_trace_options_t *options,
                                  int *error) MEMRT_MUST_CHECK;
memrt_status_t memrt__trace_stop(memrt_trace_stats_t *out) MEMRT_MUST_CHECK;
memrt_status_t memrt__trace_stats(memrt_trace_stats_t *out) MEMRT_MUST_CHECK;
memrt_status_t memrt__trace_mark(const char *name) MEMRT_MUST_CHECK;

/// Record an event of the calling thread, now. Fills in the time of the event and describes its
/// site in the file. An event without room in a buffer counts as lost.
void memrt__trace_add(memrt_trace_event_t *event);

/// Return a new number for an allocation, larger than all earlier numbers. 0: the numbers are used
/// up, which counts as a lost event.
uint32_t memrt__trace_new_number(void);

/// Return whether the allocation with a number of memrt__trace_new_number() is in the current
/// trace.
bool memrt__trace_has(uint32_t allocation);

/// Return whether the current trace describes a policy under a number of memrt__trace_policy().
bool memrt__trace_has_policy(size_t number);

/// Describe a policy in the trace by its texts; `scope` is "" for none. Returns the number of the
/// policy; 0: the description could not be written.
size_t memrt__trace_policy(const char *name, const char *scope, uint32_t index, size_t alignment);

/// In a forked child: abandon the trace, which belongs to the parent.
void memrt__trace_forked(void);

/// Maximum bytes of the name of a mark, and of a scope path that is kept whole.
#define MEMRT__TRACE_TEXT_MAX 1023u

/// Last number of memrt__trace_new_number(), in all traces. Relaxed add.
extern size_t memrt__trace_last_number;

#if MEMRT_DEBUG
/// Return whether the invariants of the event trace and of the buffers of all threads hold. Takes
/// the locks of ranks THREADS, TRACE and INTERNED.
bool memrt__trace_is_valid(void);
#endif

#endif
