"""The marks that limit the memory of tests: arguments, the nearest mark of each name, checks.

All marks are checked at collection, so that :func:`argument_of` cannot fail while a test runs.
"""

from __future__ import annotations

import fnmatch
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest

from memrt._support.public import public
from memrt._support.units import parse_bytes
from memrt._tracking.live import LiveBuffer
from memrt._tracking.sites import full_place

Ignore = str | Sequence[str] | Callable[[LiveBuffer], bool]


def _bytes_argument(limit: int | str) -> int:
    """Return the argument of a limit in bytes."""
    if isinstance(limit, bool) or not isinstance(limit, (int, str)):
        raise TypeError(f"limit must be a number of bytes or a text like '20 MB', got {limit!r}")
    count = parse_bytes(limit)
    if count < 0:
        raise ValueError(f"limit must be 0 or more bytes, got {limit!r}")
    return count


def _ignore_argument(ignore: Ignore = ()) -> Callable[[LiveBuffer], bool]:
    """Return the argument of memrt_no_leaks as a function that selects buffers to ignore."""
    if callable(ignore):
        return ignore
    is_list = isinstance(ignore, (list, tuple, set, frozenset))
    patterns: list[Any] = list(ignore) if is_list else [ignore]
    if not all(isinstance(pattern, str) for pattern in patterns):
        raise TypeError(
            f"ignore must be a pattern, a list of patterns or a function, got {ignore!r}"
        )
    return lambda buffer: any(
        fnmatch.fnmatchcase(text, pattern) for text in _texts(buffer) for pattern in patterns
    )


def _texts(buffer: LiveBuffer) -> list[str]:
    """Return the texts of a buffer that patterns of memrt_no_leaks may match."""
    places = [str(buffer.place or ""), full_place(buffer.site) or ""]
    return [buffer.name or "", buffer.policy, *places]


# For each mark, a function with the parameters of the mark that checks and converts the arguments.
_CONVERTERS: dict[str, Callable[..., Any]] = {
    "memrt_no_leaks": _ignore_argument,
    "memrt_limit_peak": _bytes_argument,
    "memrt_limit_growth": _bytes_argument,
    "memrt_limit_process": _bytes_argument,
}

_FORMS = {  # for messages
    "memrt_no_leaks": "memrt_no_leaks(ignore=...)",
    "memrt_limit_peak": "memrt_limit_peak(limit)",
    "memrt_limit_growth": "memrt_limit_growth(limit)",
    "memrt_limit_process": "memrt_limit_process(limit)",
}

_LATE = ("memrt_no_leaks", "memrt_limit_growth")  # judged after the teardown of a test


def _mark_text(mark: pytest.Mark) -> str:
    """Return a mark as in the source of a test."""
    named = [f"{name}={value!r}" for name, value in mark.kwargs.items()]
    return f"{mark.name}({', '.join([*map(repr, mark.args), *named])})"


_default_key = pytest.StashKey[dict[str, pytest.Mark]]()


@public("memrt.pytest_plugin")
def set_default_marks(config: pytest.Config, chosen: dict[str, Any]) -> None:
    """Set marks for tests without a mark of the same name.

    Parameters
    ----------
    config : pytest.Config
        Configuration of the run.
    chosen : dict
        Argument of each mark, by the name of the mark; True: no argument.

    Raises
    ------
    pytest.UsageError
        An argument is invalid.
    """
    marks = config.stash.setdefault(_default_key, {})
    for name, value in chosen.items():
        mark = getattr(pytest.mark, name)(*(() if value is True else (value,))).mark
        try:
            _check_mark(mark)
        except (TypeError, ValueError) as error:
            raise pytest.UsageError(f"{name}: {error}") from None
        marks[name] = mark


def marks_of(item: pytest.Item) -> dict[str, pytest.Mark]:
    """Return the marks of memrt on a test by name.

    A mark of the test replaces a mark of the same name of the class, and this a mark of the module.
    A mark replaces the same mark of the configuration.
    """
    found: dict[str, pytest.Mark] = {}
    for node in reversed(item.listchain()):  # from the test to the session
        for mark in node.own_markers:
            if mark.name in _CONVERTERS:
                found.setdefault(mark.name, mark)
    defaults: dict[str, pytest.Mark] = item.config.stash.get(_default_key, {})
    return {**defaults, **found}


def is_judged_late(marks: dict[str, pytest.Mark]) -> bool:
    """Return whether a test with these marks is judged after the teardown."""
    return not marks.keys().isdisjoint(_LATE)


def argument_of(mark: pytest.Mark | None) -> Any:
    """Return the argument of a checked mark, or None without a mark.

    The argument is a filter of buffers for memrt_no_leaks, and a number of bytes for limits.
    """
    return None if mark is None else _CONVERTERS[mark.name](*mark.args, **mark.kwargs)


def _check_mark(mark: pytest.Mark) -> None:
    """Check the arguments of a mark.

    Raises
    ------
    TypeError, ValueError
        The arguments are invalid, or the system lacks the figure that the mark needs.
    """
    converter = _CONVERTERS[mark.name]
    try:
        inspect.signature(converter).bind(*mark.args, **mark.kwargs)
    except TypeError:
        text = f"the mark must have the form {_FORMS[mark.name]}, got {_mark_text(mark)}"
        raise TypeError(text) from None
    converter(*mark.args, **mark.kwargs)
    if mark.name == "memrt_limit_process":
        from memrt._pytest_plugin.process_peak import require_process_peak

        require_process_peak()


@public("memrt.pytest_plugin")
def check_marks(items: Iterable[pytest.Item]) -> None:
    """Check the marks of all tests.

    Raises
    ------
    pytest.UsageError
        A mark has invalid arguments; the message names the first such test.
    """
    checked = set()  # all tests of a module share the object of a mark of the module
    for item in items:
        for mark in item.iter_markers():
            if mark.name not in _CONVERTERS or id(mark) in checked:
                continue
            checked.add(id(mark))
            try:
                _check_mark(mark)
            except (TypeError, ValueError) as error:
                raise pytest.UsageError(f"{item.nodeid}: mark {mark.name}: {error}") from None
