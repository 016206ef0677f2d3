#include "api/verify_policy.h"

#include "runtime/base/check.h"
#include "runtime/policy/policy.h"
#include "runtime/policy/scope.h"

/// Abort: the policy or scope `object` does not satisfy `rule`.
static _Noreturn void refuse_policy_or_scope(const char *call, const char *kind, const void *object,
                                             const char *rule)
{
    memrt__abort("%s of %s %p: the %s must be %s, but was released more often than acquired, or "
                 "is not from memrt",
                 call, kind, object, kind, rule);
}

void memrt__verify_policy(const char *call, const memrt_policy_t *policy)
{
    if (!memrt__policy_is_held(policy)) {
        refuse_policy_or_scope(call, "policy", policy, "held");
    }
}

void memrt__verify_known_policy(const char *call, const memrt_policy_t *policy)
{
    if (!memrt__policy_is_known(policy)) {
        refuse_policy_or_scope(call, "policy", policy, "held or have live blocks");
    }
}

void memrt__verify_source_policy(const char *call, const memrt_policy_t *policy)
{
    if (policy != NULL) {
        memrt__verify_policy(call, policy);
    }
}

void memrt__verify_report_policy(const char *call, const memrt_policy_t *policy)
{
    if (policy != NULL) {
        memrt__verify_known_policy(call, policy);
    }
}

/// Test whether the struct of a caller is large enough to have `member`.
#define HAS_MEMBER(options, member)                                                                \
    ((options) != NULL && (options)->struct_size >= offsetof(__typeof__(*(options)), member) +     \
                                                        sizeof((options)->member))

void memrt__verify_options(const char *call, const memrt_new_options_t *options)
{
    if (HAS_MEMBER(options, policy)) {
        memrt__verify_source_policy(call, options->policy);
    }
}

void memrt__verify_cuda_options(const char *call, const memrt_cuda_options_t *options)
{
    if (HAS_MEMBER(options, policy)) {
        memrt__verify_source_policy(call, options->policy);
    }
}

void memrt__verify_scope(const char *call, const memrt_scope_t *scope)
{
    if (!memrt__scope_is_live(scope)) {
        refuse_policy_or_scope(call, "scope", scope, "held");
    }
}

void memrt__verify_known_scope(const char *call, const memrt_scope_t *scope)
{
    if (!memrt__scope_is_known(scope)) {
        refuse_policy_or_scope(call, "scope", scope, "held or have live blocks");
    }
}

void memrt__verify_optional_scope(const char *call, const memrt_scope_t *scope)
{
    if (scope != NULL) {
        memrt__verify_scope(call, scope);
    }
}
