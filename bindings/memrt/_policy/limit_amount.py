"""Amounts of limits, and the limits of policies and scopes."""

from __future__ import annotations

import operator
from typing import Any

from memrt import _memrt
from memrt._support.units import human_bytes, parse_bytes


def parse_amount(amount: object) -> int:
    """Return a limit in bytes, from a whole number or a text like "2 GiB"."""
    if isinstance(amount, str):
        return parse_bytes(amount)
    try:
        count = None if isinstance(amount, bool) else operator.index(amount)  # type: ignore[arg-type]
    except TypeError:
        count = None
    if count is None:
        kind = type(amount).__name__
        raise TypeError(f"limit must be a whole number, a text or None, got {kind} {amount!r}")
    if count < 0:
        raise ValueError(f"limit must be at least 0, got {count:,}")
    return count


def set_limit(what: Any, amount: object) -> None:
    """Limit a policy by its handler, or a scope by its capsule. None: no limit."""
    _memrt.limit_set(what, None if amount is None else parse_amount(amount))


def read_limit(what: Any) -> int | None:
    """Return the limit in bytes of a policy, a scope, or the process for None."""
    bound: int | None = _memrt.limit_read(what)[0]
    return bound


def limit_text(what: Any) -> str:
    """Return the limit of a policy or a scope for its repr, or an empty text without a limit."""
    bound = read_limit(what)
    return "" if bound is None else f", limit {human_bytes(bound)}"
