"""Leaks: what a piece of a program leaves behind."""

from __future__ import annotations

import gc
import glob
import os
from collections import defaultdict
from collections.abc import Callable, Iterable
from contextlib import ContextDecorator
from dataclasses import dataclass
from functools import cache
from types import TracebackType
from typing import Any

import numpy

from memrt import _memrt
from memrt._holders import Holders, holders
from memrt._live import LiveBuffer, live, tracking
from memrt._sites import Frame, Place, is_a_runners
from memrt._units import human_bytes, human_seconds, plural

_GROUPS_SHOWN = 5
_CALLS_SHOWN = 4


@dataclass(frozen=True, slots=True)
class LeakGroup:
    """Live buffers that were born in one line."""

    place: Place | None
    """The line; None where it is not known."""
    buffers: tuple[LiveBuffer, ...]
    """The buffers, the largest first."""
    lasting: str | None
    """What they are, if they are known to last: see :func:`expect_to_last`."""

    @property
    def nbytes(self) -> int:
        """Bytes of all, an estimate where a sample was taken."""
        return round(sum(buffer.size * buffer.stands_for for buffer in self.buffers))

    def __str__(self) -> str:
        return f"{human_bytes(self.nbytes)} in {plural(len(self.buffers), 'buffer')} {self._where}"

    @property
    def _where(self) -> str:
        return "of a place not known" if self.place is None else f"born in {self.place}"


def group(buffers: Iterable[LiveBuffer]) -> list[LeakGroup]:
    """Buffers by the line where they were born, the most bytes first."""
    found: defaultdict[tuple[Place | None, str | None], list[LiveBuffer]] = defaultdict(list)
    lasting_at = cache(_memrt.lasting_at)  # which compares all calls of a site
    for buffer in buffers:
        if buffer.stands_for:
            found[buffer.place, lasting_at(buffer.site_number)].append(buffer)
    groups = [
        LeakGroup(place, tuple(sorted(members, key=lambda buffer: -buffer.size)), lasting)
        for (place, lasting), members in found.items()
    ]
    return sorted(groups, key=lambda each: -each.nbytes)


def unexpected(groups: Iterable[LeakGroup]) -> list[LeakGroup]:
    """Those that nobody expects to last."""
    return [each for each in groups if each.lasting is None]


def amount(groups: Iterable[LeakGroup]) -> tuple[int, int]:
    """Buffers and bytes of groups."""
    found = list(groups)
    return sum(len(each.buffers) for each in found), sum(each.nbytes for each in found)


def describe(groups: list[LeakGroup]) -> list[str]:
    """Groups as lines of text: where they were born, by which calls, and who holds the largest."""
    lines = []
    for each in groups[:_GROUPS_SHOWN]:
        lines.append(f"  {each}")
        lines += [f"      {line}" for line in _details(each)]
    if len(groups) > _GROUPS_SHOWN:
        _, rest = amount(groups[_GROUPS_SHOWN:])
        left = plural(len(groups) - _GROUPS_SHOWN, "more place")
        lines.append(f"  and {human_bytes(rest)} at {left}")
    return lines


def _details(each: LeakGroup) -> list[str]:
    largest = each.buffers[0]
    lines = [f"called from {frame}" for frame in _callers(each, largest)]
    what = "it" if len(each.buffers) == 1 else "the largest"
    name = "" if largest.name is None else f" {largest.name!r},"
    scope = "" if largest.scope is None else f", scope {largest.scope}"
    lines.append(
        f"{what} is{name} {human_bytes(largest.size)}, {human_seconds(largest.age)} old, "
        f"refcount {largest.refcount}, policy {largest.policy}{scope}"
    )
    found = held(largest)
    return lines + ([] if found is None else found.tree())


def _callers(each: LeakGroup, buffer: LiveBuffer) -> list[Frame]:
    """The calls that led to the line of a group, without those of who runs the program."""
    frames = [] if buffer.site is None else list(buffer.site.frames)
    places = [Place(frame.file, frame.function, frame.line) for frame in frames]
    below = places.index(each.place) + 1 if each.place in places else 0
    return [frame for frame in frames[below:] if not is_a_runners(frame)][:_CALLS_SHOWN]


def held(buffer: LiveBuffer) -> Holders | None:
    """Who holds a buffer; None where it is gone by now."""
    try:
        return holders(buffer)
    except LookupError:
        return None


class LeakError(AssertionError):
    """Buffers were left behind; the message tells which, born where, and who holds them."""

    def __init__(self, groups: list[LeakGroup]) -> None:
        count, size = amount(groups)
        still = "is still live" if count == 1 else "are still live"
        title = f"{plural(count, 'buffer')} born in this block {still}, {human_bytes(size)}:"
        super().__init__("\n".join([title, *describe(groups)]))
        self.groups = groups
        """By the line of birth, the most bytes first."""


@dataclass(frozen=True, slots=True)
class _Begin:
    """Of a block that is open."""

    births: int
    """Serial number of the last birth before it."""
    outer: _Begin | None


class assert_no_leaks(ContextDecorator):  # noqa: N801 - reads as a verb where it is used
    """Raise :class:`LeakError` when buffers that were born in the block are live at its end.

    A context manager, or a decorator; cycles are collected first. Counts the buffers of memrt's
    alone: arrays of NumPy's are among them under a policy or :func:`enable`. Those of other threads
    count as well. What the block is to leave behind is named by :meth:`allow`, or is known to last
    by :func:`expect_to_last`, as NumPy's own caches are. An error on its way out of the block is
    left alone.

    :param frames: most Python calls to record of each birth.
    :param native: most native calls.
    """

    def __init__(self, *, frames: int = 16, native: int = 0) -> None:
        self._tracking = tracking(frames=frames, native=native)
        self._begins: _Begin | None = None
        self._allowed: set[int] = set()

    def allow(self, *arrays: Any) -> None:
        """Let the buffers behind these arrays, memoryviews or MemInfos outlive the block."""
        self._allowed |= {_memrt.meminfo(array).data for array in arrays}

    def __enter__(self) -> assert_no_leaks:
        begin = _Begin(_memrt.tracking_births(), self._begins)
        self._tracking.__enter__()
        self._begins = begin
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None = None,
        error: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None:
        self._tracking.__exit__()
        begin = self._begins
        if begin is None:
            raise RuntimeError("this block of assert_no_leaks is not open")
        self._begins = begin.outer
        if kind is None:
            leaks = self._leaks(begin.births)
            if leaks:
                raise LeakError(leaks)

    def _leaks(self, begin: int) -> list[LeakGroup]:
        born = [buffer for buffer in born_since(begin) if buffer.address not in self._allowed]
        return unexpected(group(born))


def born_since(begin: int) -> list[LiveBuffer]:
    """What was born after the birth of that number and is live when garbage is collected."""
    gc.collect()
    _memrt.stats_read(None)  # which lets go what waits for the GIL
    return [buffer for buffer in live() if buffer.id > begin]


def expect_to_last(pattern: str, what: str) -> None:
    """Let reports of leaks tell buffers apart that are born where `pattern` fits a call.

    :param pattern: as of a shell, against "function at file:line" of Python's calls and
        "function+0xNN in object" of native ones; "*" stands for any text.
    :param what: what they are, for the report: "the cache of the parser".
    :raises ValueError: when one is empty or has more than 255 bytes.
    """
    _memrt.lasting_add(pattern, what)


def _expect_numpys() -> None:
    """Arrays that NumPy keeps for good, wherever it is installed."""
    package = glob.escape(os.path.dirname(numpy.__file__))
    for place, what in (
        ("_core/getlimits.py", "what numpy.finfo keeps of a type"),
        ("core/getlimits.py", "what numpy.finfo keeps of a type"),
    ):
        expect_to_last(f"* at {package}/{place}:*", what)
    expect_to_last(f"<module> at {package}/*", "made while a module of NumPy was imported")


_expect_numpys()


def run_rounds(function: Callable[[], object], rounds: int) -> list[list[LiveBuffer]]:
    """What is live after each round that was born in one of them."""
    with tracking():
        begin = _memrt.tracking_births()
        found = []
        for _ in range(rounds):
            function()
            found.append(born_since(begin))
    return found
