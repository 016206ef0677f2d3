#ifndef MEMRT_BINDINGS_NUMBA_ALLOC_H
#define MEMRT_BINDINGS_NUMBA_ALLOC_H

#include <memrt/external.h>

/// Implement the allocating half of Numba's `c_helpers`: compiled code calls these functions to
/// allocate, resize and destroy MemInfos.
///
/// Names and signatures are Numba's without the prefix NRT_.
/// Threads: jitted code calls from any thread, mostly without the GIL.
/// Failure: NULL means out of memory.
/// Destructors: a destructor of compiled code runs with (data, size, NULL). After
/// memrt__nrt_shutdown it does not run, since its code may be unloaded.

memrt_meminfo_t *memrt__nrt_alloc(size_t size);
memrt_meminfo_t *memrt__nrt_alloc_safe(size_t size);

/// Allocate with alignment `align`. Values up to 64 give 64; other values are rounded up to the
/// next power of two.
memrt_meminfo_t *memrt__nrt_alloc_aligned(size_t size, unsigned align);
memrt_meminfo_t *memrt__nrt_alloc_safe_aligned(size_t size, unsigned align);
memrt_meminfo_t *memrt__nrt_alloc_safe_aligned_external(size_t size, unsigned align,
                                                        memrt_external_allocator_t *allocator);
memrt_meminfo_t *memrt__nrt_alloc_dtor(size_t size, memrt_dtor_fn dtor);
memrt_meminfo_t *memrt__nrt_alloc_dtor_safe(size_t size, memrt_dtor_fn dtor);

memrt_meminfo_t *memrt__nrt_new_varsize(size_t size);
memrt_meminfo_t *memrt__nrt_new_varsize_dtor(size_t size, memrt_dtor_fn dtor);

void *memrt__nrt_allocate(size_t size);
void memrt__nrt_free(void *data);

/// Return Numba's sample external allocator, which Numba's tests use: the C library's malloc.
memrt_external_allocator_t *memrt__nrt_sample_external_allocator(void);

/// Stop running destructors of compiled code.
void memrt__nrt_shutdown(void);

#endif
