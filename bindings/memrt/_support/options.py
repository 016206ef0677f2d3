"""Read and set the options of the process, which come from the environment at first."""

from __future__ import annotations

import operator
import warnings
from typing import NamedTuple

from memrt import _memrt
from memrt._support.public import public


@public("memrt.types")
class Option(NamedTuple):
    """MEMRT_* option, from the environment or set later.

    Examples
    --------
    >>> import memrt
    >>> option = memrt.debug.options()[0]
    >>> option.name, option.help[:20]
    ('MEMRT_CHECK', '1: verify references')
    """

    name: str
    value: str
    """Value in force."""
    help: str
    """Effect of the option, with unit and default."""


@public("memrt.debug")
def options() -> list[Option]:
    """Return the options in force. Loading the library reads options from the environment.

    Returns
    -------
    list of memrt.types.Option
        Each option with name, value and help.

    Examples
    --------
    >>> import memrt
    >>> "MEMRT_CACHE_LIMIT" in [option.name for option in memrt.debug.options()]
    True
    """
    return [Option(*row) for row in _memrt.options()]


@public("memrt")
def set_option(name: str, value: int | str) -> None:
    """Set an option for the process, as if the environment had contained the value.

    Parameters
    ----------
    name : str
        Option that can be set: "cache_limit", "cuda_sync", "decay", "hugepages", "limit",
        "soft_limit", "peak", "share" or "cuda_driver"; also by the name that
        :func:`memrt.debug.options` shows. "cuda_driver" can be set until a driver is loaded.
    value : int or str
        New value. A new limit applies to cached memory at once. A new value of "peak" applies to
        each peak when the peak next starts (:class:`memrt.debug.exact_peak`).

    Raises
    ------
    ValueError
        The name is unknown, the value is bad, or the option is fixed at the start.
    TypeError
        The value is neither a text nor a whole number.

    Examples
    --------
    >>> import memrt
    >>> before = {option.name: option.value for option in memrt.debug.options()}
    >>> memrt.set_option("cache_limit", "256M")
    >>> memrt.set_option("cache_limit", before["MEMRT_CACHE_LIMIT"])
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
