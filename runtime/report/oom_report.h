#ifndef MEMRT_REPORT_OOM_REPORT_H
#define MEMRT_REPORT_OOM_REPORT_H

#include <stddef.h>

#include <memrt/policy.h>

/// Explain an out-of-memory error. See memrt_api_t.explain_shortage.
size_t memrt__oom_report_write(const memrt_policy_t *policy, size_t size, char *text,
                               size_t length);

#endif
