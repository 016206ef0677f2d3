"""Options, from the environment or set later."""

from __future__ import annotations

import operator
import warnings
from typing import NamedTuple

from memrt import _memrt


class Option(NamedTuple):
    """One MEMRT_* option, from the environment or set later."""

    name: str
    value: str
    """The value in force."""
    help: str
    """What it does, with unit and default."""


def options() -> list[Option]:
    """The options in force. They are read from the environment when the library is loaded."""
    return [Option(*row) for row in _memrt.options()]


def set_option(name: str, value: int | str) -> None:
    """Set an option for the process from now on, as if the environment had had it.

    What can be set is "cache_limit", "cuda_sync", "decay", "hugepages" and "peak", also by the
    names that :func:`options` shows, and "cuda_driver" until a driver was loaded; memory that is
    kept for reuse follows at once, a peak when it next starts (:class:`exact_peak`).

    Raises:
        ValueError: for an unknown name, a bad value, or an option that is fixed at the start.
        TypeError: for a value that is no text and no whole number.
    """
    _memrt.set_option(name, option_text(name, value))


def option_text(name: str, value: int | str) -> str:
    """A value as the environment would have it."""
    if isinstance(value, (str, bool)):
        return str(value)
    try:
        return str(operator.index(value))
    except TypeError:
        kind = type(value).__name__
        raise TypeError(f"{name} must be a text or a whole number, got {kind} {value!r}") from None


def warn_about_options(stacklevel: int) -> None:
    """Say once what was wrong with MEMRT_* variables, as RuntimeWarning."""
    for text in _memrt.take_option_warnings():
        warnings.warn(text, RuntimeWarning, stacklevel=stacklevel + 1)
