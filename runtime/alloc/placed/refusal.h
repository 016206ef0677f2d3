#ifndef MEMRT_ALLOC_PLACED_REFUSAL_H
#define MEMRT_ALLOC_PLACED_REFUSAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/atomics.h"

/// Last error number of the system for a setting; 0: none. Relaxed, any thread.
typedef size_t memrt__refusal_t;

/// Record an error number; 0: success. Returns true for success.
static inline bool memrt__refusal_note(memrt__refusal_t *refusal, int error)
{
    if (error != 0) {
        memrt__store_relaxed(refusal, (size_t)error);
    }
    return error == 0;
}

static inline int32_t memrt__refusal_read(const memrt__refusal_t *refusal)
{
    return (int32_t)memrt__load_relaxed(refusal);
}

#endif
