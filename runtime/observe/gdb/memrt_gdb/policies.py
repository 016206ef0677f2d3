"""Names of policies and scopes."""

from .program import elements, has, symbol, text_in


def policy_at(index):
    policies = symbol("memrt__policies")
    if index >= policies.type.range()[1] + 1 or not policies[index]:
        return None
    return policies[index].dereference()


def base_of(policy):
    """Return the policy that a subpolicy belongs to, or the policy itself."""
    return policy["base"].dereference() if has(policy, "base") and policy["base"] else policy


def scope_of(policy):
    """Return the path of the scope of a policy, outermost scope first, joined by slashes."""
    names = []
    scopes = elements(policy["scope"], "parent") if has(policy, "scope") else ()
    for scope in scopes:
        names.append(text_in(scope["name"]))
    return "/".join(reversed(names))


def policy_and_scope(index):
    """Return the names of the policy and of the scope of an account index."""
    policy = policy_at(index)
    if policy is None:
        return f"#{index}", ""
    return text_in(base_of(policy)["name"]), scope_of(policy)
