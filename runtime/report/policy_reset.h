#ifndef MEMRT_REPORT_POLICY_RESET_H
#define MEMRT_REPORT_POLICY_RESET_H

#include <memrt/policy.h>

/// See memrt_api_t.policy_reset. NULL: the default policy.
memrt_status_t memrt__policy_reset(memrt_policy_t *policy, size_t *bytes, char *why,
                                   size_t length) MEMRT_MUST_CHECK;

#endif
