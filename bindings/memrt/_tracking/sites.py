"""Describe allocation sites: call stacks, and the source lines where a program allocates."""

from __future__ import annotations

import os
import sysconfig
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy

from memrt import _memrt
from memrt._support.public import public


@public("memrt.types")
class Frame(NamedTuple):
    """One call in the call stack of an allocation.

    Examples
    --------
    >>> import memrt
    >>> with memrt.debug.tracking():
    ...     table = memrt.zeros(1000)
    >>> site = memrt.debug.live()[-1].site
    >>> site.frames[0].function, site.frames[0].is_native
    ('<module>', False)
    """

    function: str | None
    """Name of the function; None if the loader knows no name."""
    file: str | None
    """Source file of Python code, or shared object of native code; None for code generated at run
    time."""
    line: int
    """Source line; 0 for native code."""
    offset: int
    """Offset in native code: bytes from the start of the function, or of the object if the function
    is not known."""
    is_native: bool
    """Whether the call is in native code."""

    def __str__(self) -> str:
        if self.is_native:
            where = os.path.basename(self.file or "code made at run time")
            return f"{self.function or ''}+{self.offset:#x} in {where}"
        return f"{self.function} at {self.file}:{self.line}"


_PACKAGES = tuple(
    os.path.dirname(path) + os.sep for path in (os.path.dirname(__file__), numpy.__file__)
)
_STANDARD_LIBRARY = os.path.dirname(sysconfig.__file__) + os.sep


_TEST_RUNNERS = tuple(f"{os.sep}{package}{os.sep}" for package in ("_pytest", "pluggy"))
_RUNPY = f"{_STANDARD_LIBRARY}runpy.py"  # CPython 3.11 and later have a frozen runpy instead


def is_a_runners(frame: Frame) -> bool:
    """Return whether a call is Python code of memrt, of pytest, or of the program launcher."""
    file = frame.file or ""
    is_tests = any(package in file for package in _TEST_RUNNERS)
    return is_tests or file.startswith((_PACKAGES[0], "<frozen", _RUNPY))


def program_frames(frames: Sequence[Frame]) -> Sequence[Frame]:
    """Return the calls of the program, without the calls of the runner.

    If all calls belong to the runner, all calls are returned.
    """
    return [frame for frame in frames if not is_a_runners(frame)] or frames


def _is_user_frame(frame: Frame) -> bool:
    """Return whether a call is Python code outside of memrt, NumPy and the standard library."""
    if frame.is_native or frame.file is None or frame.file.startswith("<frozen"):
        return False
    if frame.file.startswith(_PACKAGES):
        return False
    return "site-packages" in frame.file or not frame.file.startswith(_STANDARD_LIBRARY)


@public("memrt.types")
@dataclass(frozen=True, slots=True)
class Site:
    """Allocation site: the call stack of an allocation.

    Examples
    --------
    >>> import memrt
    >>> with memrt.debug.tracking():
    ...     table = memrt.zeros(1000)
    >>> site = memrt.debug.live()[-1].site
    >>> site.place.function, len(site.frames) >= 1
    ('<module>', True)
    """

    number: int
    """Number of the site, unique in the process."""
    frames: tuple[Frame, ...]
    """Calls of the stack: native code first, then Python code, each innermost first."""

    @property
    def place(self) -> Place:
        """Source line of the allocation.

        The line of the innermost call in user code, outside of memrt, NumPy and the standard
        library. Without such a call, the line of the innermost call.
        """
        found = self.frames[0]
        for frame in self.frames:
            if _is_user_frame(frame):
                found = frame
                break
        return Place(found.file, found.function, found.line)

    def __str__(self) -> str:
        return str(self.place)


@public("memrt.types")
class Place(NamedTuple):
    """Source line, or function of native code, that allocates memory.

    Examples
    --------
    >>> import memrt
    >>> with memrt.debug.tracking():
    ...     table = memrt.zeros(1000)
    >>> site = memrt.debug.live()[-1].site
    >>> site.place.function
    '<module>'
    """

    file: str | None
    function: str | None
    line: int

    def __str__(self) -> str:
        line = f":{self.line}" if self.line else ""
        return f"{self.function or 'code'} at {self.file or 'an unknown file'}{line}"


_sites: dict[int, Site] = {}


def _remove_loop_frames(frames: list[Frame]) -> list[Frame]:
    """Remove the native calls of the interpreter loop and of its callers from a call stack.

    The Python calls in the stack already describe this part. Native calls below Python code stay. A
    stack of native calls only is returned unchanged."""
    natives = [frame for frame in frames if frame.is_native]
    if len(natives) == len(frames):
        return frames
    loops = (i for i, frame in enumerate(natives) if _is_loop_frame(frame))
    return natives[: next(loops, len(natives))] + frames[len(natives) :]


def _is_loop_frame(frame: Frame) -> bool:
    return frame.function is not None and frame.function.startswith("_PyEval_EvalFrame")


def site_of(number: int) -> Site | None:
    """Return the site of a number; None for 0 and for numbers without a site."""
    found = _sites.get(number)
    if found is None and number != 0:
        frames = [Frame(*frame) for frame in _memrt.site_frames(number)]
        if frames:
            found = _sites[number] = Site(number, tuple(_remove_loop_frames(frames)))
    return found


@cache
def place_of(number: int) -> Place | None:
    """Return the source line of a site, by the number of the site; None if not known."""
    found = site_of(number)
    return None if found is None else found.place
