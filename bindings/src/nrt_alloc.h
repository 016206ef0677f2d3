#ifndef MEMRT_NRT_ALLOC_H
#define MEMRT_NRT_ALLOC_H

#include "binding.h"

/// The allocating half of Numba's `c_helpers`: what compiled code calls to make, resize and
/// destroy.
///
/// Called by jitted code from any thread, mostly without the GIL. Names and signatures are Numba's
/// without the prefix NRT_; NULL means out of memory. A destructor of compiled code runs with
/// (data, size, NULL) and, after memrt__nrt_shutdown, not at all: its code may be gone.

memrt_meminfo_t *memrt__nrt_alloc(size_t size);
memrt_meminfo_t *memrt__nrt_alloc_safe(size_t size);

/// `align`: 0 and anything up to 64 give 64; what is no power of two is rounded up to the next.
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

/// Numba's sample of an external allocator, which its tests ask for: the C library's malloc.
memrt_external_allocator_t *memrt__nrt_sample_external_allocator(void);

/// Destructors of compiled code do not run any more.
void memrt__nrt_shutdown(void);

/// How many policies other than the default one are entered, in whatever context. While none is, no
/// allocation of compiled code asks for the policy in force.
void memrt__nrt_policies_entered(int change);

#endif
