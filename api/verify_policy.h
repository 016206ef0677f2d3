#ifndef MEMRT_API_VERIFY_POLICY_H
#define MEMRT_API_VERIFY_POLICY_H

#include <memrt/external.h>

/// Verification of policies and scopes from callers. Each function aborts with a message about
/// `call`, the name of the slot, and about the object.

/// Abort unless `policy` is held, the precondition of acquire, release and allocation.
void memrt__verify_policy(const char *call, const memrt_policy_t *policy);

/// Abort unless `policy` is held or has live blocks. A caller may know the policy from a block.
void memrt__verify_known_policy(const char *call, const memrt_policy_t *policy);

/// Verify a policy to allocate from; NULL: the default policy.
void memrt__verify_source_policy(const char *call, const memrt_policy_t *policy);

/// Verify a policy to report on; NULL: the process or the default policy.
void memrt__verify_report_policy(const char *call, const memrt_policy_t *policy);

/// Verify the policy of options, which may be NULL or too short for a policy.
void memrt__verify_options(const char *call, const memrt_new_options_t *options);
void memrt__verify_cuda_options(const char *call, const memrt_cuda_options_t *options);

/// Abort unless `scope` is held, the precondition of acquire, release and allocation.
void memrt__verify_scope(const char *call, const memrt_scope_t *scope);

/// Abort unless `scope` is held or has live blocks. A caller may know the scope from a block.
void memrt__verify_known_scope(const char *call, const memrt_scope_t *scope);

/// Abort unless `scope` is NULL or held.
void memrt__verify_optional_scope(const char *call, const memrt_scope_t *scope);

#endif
