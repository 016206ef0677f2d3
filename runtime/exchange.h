#ifndef MEMRT_RUNTIME_EXCHANGE_H
#define MEMRT_RUNTIME_EXCHANGE_H

#include <memrt/status.h>

/// How an exchange of memory says why it does not take place.

#define MEMRT__BAD_OPTIONS "the options or the view are not filled in as they have to be"

/// Leave a sentence for the caller, who may not want it (NULL). Returns `status`.
static inline memrt_status_t memrt__refuse(memrt_status_t status, const char *sentence,
                                           const char **why)
{
    if (why != NULL) {
        *why = sentence;
    }
    return status;
}

#endif
