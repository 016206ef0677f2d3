#ifndef MEMRT_SHORTAGE_H
#define MEMRT_SHORTAGE_H

#include <stddef.h>

#include <memrt/external.h>

/// See memrt_api_t.explain_shortage.
size_t memrt__shortage_explain(const memrt_policy_t *policy, size_t size, char *text,
                               size_t length);

#endif
