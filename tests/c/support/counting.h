#ifndef MEMRT_TESTS_SUPPORT_COUNTING_H
#define MEMRT_TESTS_SUPPORT_COUNTING_H

#include <memrt/allocator.h>
#include <memrt/status.h>

/// What went through a counting allocator.
typedef struct counts {
    size_t allocs, reallocs, frees; ///< that succeeded
    size_t bytes;                   ///< of live blocks, by the sizes the caller gave
    size_t destroys;
} counts_t;

/// An allocator that hands everything to its upstream and counts it.
memrt_status_t counting_new(const memrt_allocator_t *upstream, memrt_allocator_t *out);

/// What was counted so far.
counts_t counting_read(const memrt_allocator_t *counting);

/// Have the allocator write its counts to `*last` when it is destroyed.
void counting_at_destroy(const memrt_allocator_t *counting, counts_t *last);

#endif
