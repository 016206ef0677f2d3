#ifndef MEMRT_INTEROP_REFUSAL_H
#define MEMRT_INTEROP_REFUSAL_H

#include <stddef.h>

#include <memrt/status.h>

/// Error texts of the exchange protocols, DLPack and Arrow.

#define MEMRT__BAD_OPTIONS "the options or the view have an invalid size, flag or value"

/// Store an error text in `*why` unless `why` is NULL, and return `status`.
static inline memrt_status_t memrt__refuse(memrt_status_t status, const char *sentence,
                                           const char **why)
{
    if (why != NULL) {
        *why = sentence;
    }
    return status;
}

#endif
