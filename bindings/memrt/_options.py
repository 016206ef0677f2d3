"""Options from the environment."""

from __future__ import annotations

import warnings
from typing import NamedTuple

from memrt import _memrt


class Option(NamedTuple):
    """One MEMRT_* environment variable."""

    name: str
    value: str
    """The value in force."""
    help: str
    """What it does, with unit and default."""


def options() -> list[Option]:
    """The options in force. They are read once, when the library is loaded."""
    return [Option(*row) for row in _memrt.options()]


def warn_about_options(stacklevel: int) -> None:
    """Say once what was wrong with MEMRT_* variables, as RuntimeWarning."""
    for text in _memrt.take_option_warnings():
        warnings.warn(text, RuntimeWarning, stacklevel=stacklevel + 1)
