"""Read and set the options of the process, which come from the environment at first."""

from __future__ import annotations

import operator
import warnings
from typing import NamedTuple

from memrt import _memrt


class Option(NamedTuple):
    """A MEMRT_* option, from the environment or set later."""

    name: str
    value: str
    """Value in force."""
    help: str
    """Effect of the option, with unit and default."""


def options() -> list[Option]:
    """Return the options in force. Loading the library reads options from the environment."""
    return [Option(*row) for row in _memrt.options()]


def set_option(name: str, value: int | str) -> None:
    """Set an option for the process from now on, as if the environment had contained the value.

    The options "cache_limit", "cuda_sync", "decay", "hugepages" and "peak" can be set, also by the
    names that :func:`options` shows. "cuda_driver" can be set until a driver is loaded. A new limit
    applies to cached memory at once. A new value of "peak" applies to each peak when the peak next
    starts (:class:`exact_peak`).

    Raises:
        ValueError: an unknown name, a bad value, or an option that is fixed at the start.
        TypeError: the value is neither a text nor a whole number.
    """
    _memrt.set_option(name, option_text(name, value))


def option_text(name: str, value: int | str) -> str:
    """Return an option value as the text that the environment variable would contain."""
    if isinstance(value, (str, bool)):
        return str(value)
    try:
        return str(operator.index(value))
    except TypeError:
        kind = type(value).__name__
        raise TypeError(f"{name} must be a text or a whole number, got {kind} {value!r}") from None


def warn_about_options(stacklevel: int) -> None:
    """Warn once about each invalid MEMRT_* variable, with a RuntimeWarning."""
    for text in _memrt.take_option_warnings():
        warnings.warn(text, RuntimeWarning, stacklevel=stacklevel + 1)
