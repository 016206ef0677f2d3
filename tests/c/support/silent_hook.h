#ifndef MEMRT_TESTS_SUPPORT_SILENT_HOOK_H
#define MEMRT_TESTS_SUPPORT_SILENT_HOOK_H

#include "support/suite.h"

/// Return a hook of a policy whose call does nothing. `policy` NULL: of all policies.
memrt_hook_t silent_hook(memrt_policy_t *policy);

#endif
