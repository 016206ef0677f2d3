"""End ``with`` blocks without replacing a pending exception."""

from __future__ import annotations

import warnings
from collections.abc import Callable


def end_block(kind: type[BaseException] | None, end: Callable[[], str | None]) -> None:
    """Call `end` for ``__exit__``, and warn of the problem that `end` returns.

    While an exception of type `kind` is pending, end_block() raises nothing. Both errors of `end`
    and warnings that the process turns into errors are then dropped.
    """
    try:
        problem = end()
        if problem is not None:
            warnings.warn(problem, RuntimeWarning, stacklevel=3)
    except Exception:
        if kind is None:
            raise
