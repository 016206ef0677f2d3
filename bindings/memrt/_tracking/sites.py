"""Describe allocation sites: call stacks, and the source lines where a program allocates."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from memrt import _memrt
from memrt._support.public import public
from memrt._tracking.debug_info import native_line
from memrt._tracking.user_code import library_call, user_call, where


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
    """Name of the function; None if neither the loader nor a symbol table knows the name."""
    file: str | None
    """Source file of Python code, or shared object of native code; None for code generated at run
    time."""
    line: int
    """Source line; 0 for native code without debug information."""
    offset: int
    """Offset in native code: bytes from the start of the function, or of the object if the function
    is not known."""
    is_native: bool
    """Whether the call is in native code."""
    source: str | None = None
    """Source file of native code with debug information; None for all other code."""

    def __str__(self) -> str:
        if self.is_native:
            object_name = os.path.basename(self.file or "code made at run time")
            line = f" ({where(self.source, self.line)})" if self.source else ""
            return f"{self.function or ''}+{self.offset:#x} in {object_name}{line}"
        return f"{self.function} at {where(str(self.file), self.line)}"


def native_frame(function: str | None, file: str | None, offset: int) -> Frame:
    """Return a native call, described by symbols and debug information."""
    found = native_line(file, function, offset)
    return Frame(found.function, file, found.line, found.offset, True, found.source)


def frame_of(function: str | None, file: str | None, line: int, offset: int, native: bool) -> Frame:
    """Return a call as the C library describes it."""
    if native:
        return native_frame(function, file, offset)
    return Frame(function, file, line, offset, False)


def full_text(frame: Frame) -> str:
    """Return the text of a call with the whole path of its file."""
    return str(frame) if frame.is_native else f"{frame.function} at {frame.file}:{frame.line}"


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

        The line of the innermost call in user code: outside of installed packages, the standard
        library and memrt. Without such a call, the innermost line of a package other than NumPy.
        Without both, the line of the innermost call.
        """
        found = user_call(self.frames)
        return Place(found.file, found.function, found.line)

    @property
    def through(self) -> Place | None:
        """Innermost source line of a library that the user's line calls.

        None if the user's line allocates by itself, or through memrt alone.
        """
        found = library_call(self.frames)
        return None if found is None else Place(found.file, found.function, found.line)

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
        return f"{self.function or 'code'} at {where(self.file or 'an unknown file', self.line)}"


def full_place(site: Site | None) -> str | None:
    """Return the source line of a site with the whole path of its file; None for None."""
    if site is None:
        return None
    file, function, line = site.place
    end = f":{line}" if line else ""
    return f"{function or 'code'} at {file or 'an unknown file'}{end}"


def site_text(site: Site | None) -> str:
    """Return the source line of a site, and the line of the library that allocates, if any.

    Such as ``load at app.py:3, through numpy/lib/_npyio_impl.py:400``.
    """
    if site is None:
        return "unknown source line"
    through = site.through
    if through is None:
        return str(site)
    return f"{site}, through {where(through.file or 'an unknown file', through.line)}"


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
        frames = [frame_of(*frame) for frame in _memrt.site_frames(number)]
        if frames:
            found = _sites[number] = Site(number, tuple(_remove_loop_frames(frames)))
    return found


@cache
def place_of(number: int) -> Place | None:
    """Return the source line of a site, by the number of the site; None if not known."""
    found = site_of(number)
    return None if found is None else found.place
