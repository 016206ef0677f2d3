"""Settings of a process for its workers: policy, options, limits and scope."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from memrt._policy.current_scope import current_scope
from memrt._policy.enabling import enable, enabled
from memrt._policy.limit import limit as set_process_limit
from memrt._policy.live_policies import default_policy
from memrt._policy.policy import Policy
from memrt._policy.scope import Scope
from memrt._policy.scope_entry import scope
from memrt._policy.scope_tree import scopes
from memrt._support.options import options, set_option

_OPTIONS = ("MEMRT_CACHE_LIMIT", "MEMRT_DECAY", "MEMRT_HUGEPAGES", "MEMRT_PEAK")

Setup: TypeAlias = dict[str, Any]
"""Settings as a JSON object: folders, policy, options, limit and scope."""

_kept: list[object] = []  # policies and scopes of this process, whose limits end with the objects


def capture(policy: Policy | None, limit: str | None, follows: bool = False) -> Setup:
    """Return the settings in force, without folders. None: the policy and limit in force.

    With `follows`, a forked worker keeps the inherited settings. A worker of multiprocessing gets
    the limits and the scope in force at the start of the worker.
    """
    wanted = policy or enabled() or default_policy()
    values = {option.name: option.value for option in options()}
    return {
        "policy": _policy(wanted),
        "options": {name: values[name] for name in _OPTIONS},
        "limit": values["MEMRT_LIMIT"] if limit is None else limit,
        "soft": values["MEMRT_SOFT_LIMIT"] if limit is None else "none",
        "scope": _scope(current_scope()),
        "follows": follows,
    }


def _policy(policy: Policy) -> dict[str, Any] | None:
    limits = {"limit": policy.limit, "soft": policy.soft_limit}
    if policy is default_policy():
        return None if limits == {"limit": None, "soft": None} else limits
    own = {name.removeprefix("MEMRT_").lower(): value for name, value in policy.options.items()}
    return {"name": policy.name, "alignment": policy.alignment, **limits, **own}


def _scope(innermost: Scope | None) -> list[dict[str, Any]]:
    if innermost is None:
        return []
    tree = scopes()
    paths = [innermost.path[: depth + 1] for depth in range(len(innermost.path))]
    return [
        {"name": path[-1], "limit": tree[path].limit, "soft": tree[path].soft_limit}
        for path in paths
    ]


def apply(setup: Setup) -> list[str]:
    """Put settings in force in this process, for good. Return a sentence for each failure.

    A policy or scope that is in force already stays.
    """
    problems: list[str] = []

    def attempt(step: Callable[[], object]) -> None:
        try:
            step()
        except Exception as error:
            problems.append(f"{type(error).__name__}: {error}")

    values = {option.name: option.value for option in options()}
    for name, value in setup["options"].items():
        if values.get(name) != value:
            attempt(lambda name=name, value=value: set_option(name, value))  # type: ignore[misc]
    if (values["MEMRT_LIMIT"], values["MEMRT_SOFT_LIMIT"]) != (setup["limit"], setup["soft"]):
        attempt(lambda: set_process_limit(setup["limit"], soft=setup["soft"]))
    if enabled() is None:
        attempt(lambda: enable(_make_policy(setup["policy"])))
    if current_scope() is None:
        attempt(lambda: _enter(setup["scope"]))
    return problems


def _make_policy(settings: dict[str, Any] | None) -> Policy:
    if settings is None:
        return default_policy()
    if "name" in settings:
        policy = Policy(**settings)
    else:
        policy = default_policy()
        policy.limit = settings["limit"]
        policy.soft_limit = settings["soft"]
    _kept.append(policy)
    return policy


def _enter(path: list[dict[str, Any]]) -> None:
    for each in path:
        entry = scope(**each)
        _kept.append((entry, entry.__enter__()))
