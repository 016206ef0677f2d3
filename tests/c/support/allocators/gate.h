#ifndef MEMRT_TESTS_SUPPORT_GATE_H
#define MEMRT_TESTS_SUPPORT_GATE_H

#include <memrt/allocator.h>
#include <memrt/status.h>

/// Create an allocator whose requests wait while its gate is shut. The gate is open at first. The
/// allocator has only alloc and free, so memrt emulates the remaining functions.
memrt_status_t gate_new(const memrt_allocator_t *upstream, memrt_allocator_t *out);

void gate_shut(const memrt_allocator_t *gate);
void gate_open(const memrt_allocator_t *gate);

/// Wait until `count` requests stand at the gate.
void gate_wait_for(const memrt_allocator_t *gate, size_t count);

#endif
