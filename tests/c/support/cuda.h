#ifndef MEMRT_TESTS_SUPPORT_CUDA_H
#define MEMRT_TESTS_SUPPORT_CUDA_H

#include <fake_driver.h>

#include "support/suite.h"

/// Have memrt load the fake driver, and make the policies that stay. To be called by
/// suite_prepare().
void cuda_prepare(void);

/// New buffer of `size` bytes.
memrt_meminfo_t *cuda_buffer(memrt_memory_t memory, size_t size, uintptr_t stream);

/// New stream on the first device.
uintptr_t cuda_stream(void);

/// Nothing was used wrongly, and nothing is left of what a test allocated; forget its calls.
void cuda_expect_clean(void);

memrt_cuda_stats_t cuda_stats_of(memrt_memory_t memory);

#endif
