"""Amounts of limits, and the limits of policies and scopes."""

from __future__ import annotations

import operator
from typing import Any

from memrt import _memrt
from memrt._support.units import human_bytes, parse_bytes


def parse_amount(amount: object, name: str = "limit") -> int:
    """Return a limit in bytes, from a whole number or a text like "2 GiB"."""
    if isinstance(amount, str):
        return parse_bytes(amount, name)
    try:
        count = None if isinstance(amount, bool) else operator.index(amount)  # type: ignore[arg-type]
    except TypeError:
        count = None
    if count is None:
        kind = type(amount).__name__
        raise TypeError(f"{name} must be a whole number, a text or None, got {kind} {amount!r}")
    if count < 0:
        raise ValueError(f"{name} must be at least 0, got {count:,}")
    return count


def set_limit(what: Any, amount: object) -> None:
    """Limit a policy by its handler, or a scope by its capsule. None: no limit."""
    _memrt.limit_set(what, None if amount is None else parse_amount(amount))


def set_soft_limit(what: Any, amount: object) -> None:
    """Set the soft limit of a policy by its handler, or a scope by its capsule. None: none."""
    _memrt.limit_set_soft(what, None if amount is None else parse_amount(amount, "soft limit"))


def read_soft_limit(what: Any) -> int | None:
    """Return the soft limit in bytes of a policy, a scope, or the process for None."""
    bound: int | None = _memrt.limit_read(what)[3]
    return bound


def check_limits(limit: int | None, soft: int | None) -> None:
    """Raise ValueError for a soft limit above the limit."""
    if limit is not None and soft is not None and soft > limit:
        raise ValueError(f"soft limit must be at most the limit of {limit:,} bytes, got {soft:,}")


def read_limit(what: Any) -> int | None:
    """Return the limit in bytes of a policy, a scope, or the process for None."""
    bound: int | None = _memrt.limit_read(what)[0]
    return bound


def limit_text(what: Any) -> str:
    """Return the limits of a policy or a scope for its repr, or an empty text without limits."""
    bound, soft = read_limit(what), read_soft_limit(what)
    text = "" if bound is None else f", limit {human_bytes(bound)}"
    return text if soft is None else f"{text}, soft limit {human_bytes(soft)}"
