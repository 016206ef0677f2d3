#ifndef MEMRT_TESTS_SUPPORT_COUNTING_H
#define MEMRT_TESTS_SUPPORT_COUNTING_H

#include <memrt/allocator.h>
#include <memrt/status.h>

/// Counters of a counting allocator.
typedef struct counts {
    size_t allocs, reallocs, frees; ///< successful calls
    size_t bytes;                   ///< bytes of live blocks, by the sizes given by the caller
    size_t destroys;
} counts_t;

/// Create an allocator that passes every request to its upstream and counts the request.
memrt_status_t counting_new(const memrt_allocator_t *upstream, memrt_allocator_t *out);

/// Return the current counts.
counts_t counting_read(const memrt_allocator_t *counting);

/// Have the allocator write its counts to `*last` when the allocator is destroyed.
void counting_at_destroy(const memrt_allocator_t *counting, counts_t *last);

#endif
