#ifndef MEMRT_TESTS_SUPPORT_FAILING_H
#define MEMRT_TESTS_SUPPORT_FAILING_H

#include <memrt/allocator.h>
#include <memrt/status.h>

/// Create an allocator that can refuse one request and passes all other requests to its upstream.
/// At first no request is refused.
memrt_status_t failing_new(const memrt_allocator_t *upstream, memrt_allocator_t *out);

/// Refuse the nth request from now, counted from 1; 0: none.
void failing_at(const memrt_allocator_t *failing, size_t nth);

#endif
