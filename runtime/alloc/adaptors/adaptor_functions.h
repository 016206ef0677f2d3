#ifndef MEMRT_ALLOC_ADAPTORS_ADAPTOR_FUNCTIONS_H
#define MEMRT_ALLOC_ADAPTORS_ADAPTOR_FUNCTIONS_H

#include <memrt/allocator/adaptor.h>

#include "runtime/alloc/allocator.h"

/// Context and functions of adaptors. Each kind has a file with its functions.

/// Context of an adaptor.
typedef struct memrt__adaptor {
    memrt_allocator_t upstream;
    memrt_adaptor_options_t options;
    size_t in_use; ///< LIMITING: bytes of live blocks and of requests in progress
} memrt__adaptor_t;

/// Functions of a kind. NULL: the function of the upstream; `try_expand` NULL: no block grows in
/// place.
typedef struct memrt__adaptor_functions {
    const char *name;
    void *(*alloc)(void *ctx, size_t size, size_t align);
    void *(*alloc_zeroed)(void *ctx, size_t size, size_t align);
    void *(*realloc)(void *ctx, void *ptr, size_t old_size, size_t new_size, size_t align);
    void (*free)(void *ctx, void *ptr, size_t size, size_t align);
    size_t (*release_unused)(void *ctx);
    void (*usage)(void *ctx, memrt_allocator_usage_t *out);
    int (*try_expand)(void *ctx, void *ptr, size_t old_size, size_t new_size, size_t align);
    size_t (*usable_size)(void *ctx, const void *ptr, size_t size, size_t align);
    size_t (*good_size)(void *ctx, size_t size, size_t align);
} memrt__adaptor_functions_t;

extern const memrt__adaptor_functions_t memrt__counting_functions;
extern const memrt__adaptor_functions_t memrt__limiting_functions;
extern const memrt__adaptor_functions_t memrt__aligning_functions;
extern const memrt__adaptor_functions_t memrt__retrying_functions;
extern const memrt__adaptor_functions_t memrt__logging_functions;
extern const memrt__adaptor_functions_t memrt__thread_safe_functions;
extern const memrt__adaptor_functions_t memrt__prefetching_functions;

#endif
