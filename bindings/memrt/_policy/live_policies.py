"""List the live policies."""

from memrt import _memrt
from memrt._policy.policy import Policy
from memrt._support.public import public


@public("memrt.debug")
def default_policy() -> Policy:
    """Return the default policy, which all allocations without a policy use.

    Returns
    -------
    Policy
        Policy that lives as long as the process.

    Examples
    --------
    >>> import memrt
    >>> memrt.debug.default_policy()
    <memrt.Policy 'default', alignment 64>
    """
    return Policy._from_handler(_memrt.default_handler())


@public("memrt.debug")
def policies() -> list[Policy]:
    """Return all live policies, the default policy first.

    Returns
    -------
    list of memrt.Policy
        Policies that a reference or a live block keeps alive.

    Examples
    --------
    >>> import memrt
    >>> policy = memrt.Policy(name="mine")
    >>> policy in memrt.debug.policies()
    True
    """
    return [Policy._from_handler(handler) for _, handler in _memrt.policies()]


_default = default_policy()  # keeps the object of default_policy() alive
