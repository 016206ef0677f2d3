#ifndef MEMRT_TESTS_SUPPORT_GATE_H
#define MEMRT_TESTS_SUPPORT_GATE_H

#include <memrt/allocator.h>
#include <memrt/status.h>

/// An allocator whose requests wait while its gate is shut. It has alloc and free only, so that the
/// rest is what memrt makes of them. The gate is open at first.
memrt_status_t gate_new(const memrt_allocator_t *upstream, memrt_allocator_t *out);

void gate_shut(const memrt_allocator_t *gate);
void gate_open(const memrt_allocator_t *gate);

/// Return when `count` requests stand at the gate.
void gate_wait_for(const memrt_allocator_t *gate, size_t count);

#endif
