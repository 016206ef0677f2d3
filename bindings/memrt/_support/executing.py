"""Call functions before ``os.exec*`` replaces the running program."""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable
from typing import Any

_before: list[Callable[[], object]] = []


def before_exec(function: Callable[[], object]) -> None:
    """Call `function` before each ``os.exec*`` of this process. Exceptions are suppressed.

    All functions of ``os`` for the replacement of a program call ``os.execv`` or ``os.execve``.
    Limit: code with an earlier ``from os import execv`` is out of reach. A program continues after
    a failed exec, so `function` may run several times.
    """
    if not _before:
        os.execv, os.execve = _announced(os.execv), _announced(os.execve)
    _before.append(function)


def _announced(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def execute(*args: Any, **kwargs: Any) -> Any:
        for function in reversed(_before):
            with contextlib.suppress(Exception):
                function()
        return original(*args, **kwargs)

    if original in os.supports_fd:
        os.supports_fd.add(execute)
    return execute
