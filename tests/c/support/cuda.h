#ifndef MEMRT_TESTS_SUPPORT_CUDA_H
#define MEMRT_TESTS_SUPPORT_CUDA_H

#include <fake_driver.h>

#include "support/suite.h"

/// Have memrt load the fake driver, and make the policies that stay. suite_prepare() calls this
/// function.
void cuda_prepare(void);

/// Create a buffer of `size` bytes.
memrt_meminfo_t *cuda_buffer(memrt_memory_t memory, size_t size, uintptr_t stream);

/// Create a stream on the first device.
uintptr_t cuda_stream(void);

/// Fail the test if the fake driver saw a fault, or if memory or contexts of the test are left.
/// Releases unused memory first, and resets the driver's record of calls.
void cuda_expect_clean(void);

memrt_cuda_stats_t cuda_stats_of(memrt_memory_t memory);

#endif
