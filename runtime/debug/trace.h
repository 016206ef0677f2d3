#ifndef MEMRT_DEBUG_TRACE_H
#define MEMRT_DEBUG_TRACE_H

#include <stdbool.h>

#include <memrt/status.h>
#include <memrt/trace.h>

#include "runtime/base/compiler.h"
#include "runtime/base/watch.h"

/// The trace that is recorded: events of each thread wait in a buffer of its own, until that is
/// full or somebody asks for all of them. Nothing here allocates by memrt.

static inline bool memrt__trace_is_on(void)
{
    return MEMRT__UNLIKELY(memrt__is_watched(MEMRT__WATCH_TRACING));
}

/// The functions of memrt_api_t of the same names.
memrt_status_t memrt__trace_start(const memrt_trace_options_t *options,
                                  int *error) MEMRT_MUST_CHECK;
memrt_status_t memrt__trace_stop(memrt_trace_stats_t *out) MEMRT_MUST_CHECK;
memrt_status_t memrt__trace_stats(memrt_trace_stats_t *out) MEMRT_MUST_CHECK;
memrt_status_t memrt__trace_mark(const char *name) MEMRT_MUST_CHECK;

/// Record an event that happens now on the calling thread; its time is filled in, and its site
/// described. What there is no room for is counted as lost.
void memrt__trace_add(memrt_trace_event_t *event);

/// A number of a birth, after those of all before; 0: they are used up, which counts as lost.
uint32_t memrt__trace_birth(void);

/// Whether the birth of that number is in the trace that is recorded.
bool memrt__trace_has(uint32_t birth);

/// Whether a policy was described in this trace, under a number that memrt__trace_policy() gave.
bool memrt__trace_has_policy(size_t number);

/// Describe a policy by its texts, `scope` is "" for none. Returns its number; 0: there was no
/// room.
size_t memrt__trace_policy(const char *name, const char *scope, uint32_t index, size_t alignment);

/// In a forked child: the trace is the parent's.
void memrt__trace_forked(void);

/// Longest name of a mark in bytes, and longest path of a scope that is kept whole.
#define MEMRT__TRACE_TEXT_MAX 1023u

/// Births numbered so far, in all traces. Relaxed add.
extern size_t memrt__trace_births;

#endif
