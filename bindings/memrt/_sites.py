"""Sites: the places in a program where memory is born."""

from __future__ import annotations

import os
import sysconfig
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy

from memrt import _memrt


class Frame(NamedTuple):
    """One call on the way to a birth."""

    function: str | None
    """Name of the function; None where the loader knows none."""
    file: str | None
    """Python's source file, or the shared object of native code; None for code made at run time."""
    line: int
    """In the source; 0 for native code."""
    offset: int
    """Of native code: bytes from the start of the function, or of the object without one."""
    is_native: bool
    """Whether it is native code."""

    def __str__(self) -> str:
        if self.is_native:
            where = os.path.basename(self.file or "code made at run time")
            return f"{self.function or ''}+{self.offset:#x} in {where}"
        return f"{self.function} at {self.file}:{self.line}"


_PACKAGES = tuple(os.path.dirname(path) + os.sep for path in (__file__, numpy.__file__))
_STANDARD_LIBRARY = os.path.dirname(sysconfig.__file__) + os.sep


_TEST_RUNNERS = tuple(f"{os.sep}{package}{os.sep}" for package in ("_pytest", "pluggy"))
_RUNPY = f"{_STANDARD_LIBRARY}runpy.py"  # since CPython 3.11 it is frozen


def is_a_runners(frame: Frame) -> bool:
    """Whether it is Python code of memrt itself, or of what runs programs and tests."""
    file = frame.file or ""
    is_tests = any(package in file for package in _TEST_RUNNERS)
    return is_tests or file.startswith((_PACKAGES[0], "<frozen", _RUNPY))


def program_frames(frames: Sequence[Frame]) -> Sequence[Frame]:
    """Calls without those of what ran the program; all, where there are no others."""
    return [frame for frame in frames if not is_a_runners(frame)] or frames


def _is_the_users(frame: Frame) -> bool:
    """Whether it is Python code of neither memrt, NumPy nor the standard library."""
    if frame.is_native or frame.file is None or frame.file.startswith("<frozen"):
        return False
    if frame.file.startswith(_PACKAGES):
        return False
    return "site-packages" in frame.file or not frame.file.startswith(_STANDARD_LIBRARY)


@dataclass(frozen=True, slots=True)
class Site:
    """Where buffers are born: the calls that led there."""

    number: int
    """Unique in the process."""
    frames: tuple[Frame, ...]
    """The calls that led there: native code first, then Python's, each innermost first."""

    @property
    def place(self) -> Place:
        """The innermost call in code of the user's: of neither memrt, NumPy nor the standard
        library. Where there is none, the innermost of all."""
        found = self.frames[0]
        for frame in self.frames:
            if _is_the_users(frame):
                found = frame
                break
        return Place(found.file, found.function, found.line)

    def __str__(self) -> str:
        return str(self.place)


class Place(NamedTuple):
    """A line of source code, or a function of native code, where memory is born."""

    file: str | None
    function: str | None
    line: int

    def __str__(self) -> str:
        line = f":{self.line}" if self.line else ""
        return f"{self.function or 'code'} at {self.file or 'an unknown place'}{line}"


_sites: dict[int, Site] = {}


def _without_the_loop(frames: list[Frame]) -> list[Frame]:
    """The native calls that led from Python's code, without those of the interpreter that led
    there: where Python's calls are known they say the same."""
    natives = [frame for frame in frames if frame.is_native]
    if len(natives) == len(frames):
        return frames
    loops = (i for i, frame in enumerate(natives) if _is_the_loop(frame))
    return natives[: next(loops, len(natives))] + frames[len(natives) :]


def _is_the_loop(frame: Frame) -> bool:
    return frame.function is not None and frame.function.startswith("_PyEval_EvalFrame")


def site_of(number: int) -> Site | None:
    """The site of that number; None for 0 and for numbers that no site has."""
    found = _sites.get(number)
    if found is None and number != 0:
        frames = [Frame(*frame) for frame in _memrt.site_frames(number)]
        if frames:
            found = _sites[number] = Site(number, tuple(_without_the_loop(frames)))
    return found


@cache
def place_of(number: int) -> Place | None:
    """The place of the site of that number; None where it is not known."""
    found = site_of(number)
    return None if found is None else found.place
