#ifndef MEMRT_TESTS_SUPPORT_FAILING_H
#define MEMRT_TESTS_SUPPORT_FAILING_H

#include <memrt/allocator.h>
#include <memrt/status.h>

/// An allocator that refuses one request and hands the others to its upstream. Never, at first.
memrt_status_t failing_new(const memrt_allocator_t *upstream, memrt_allocator_t *out);

/// Refuse the nth request from now, counted from 1; 0: none.
void failing_at(const memrt_allocator_t *failing, size_t nth);

#endif
