"""Report leaks: buffers that a part of a program allocates and leaves live."""

from __future__ import annotations

import gc
import glob
import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from contextlib import ContextDecorator
from dataclasses import dataclass
from functools import cache
from types import TracebackType
from typing import Any

import numpy

from memrt import _memrt
from memrt._holders.report import Holders
from memrt._holders.search import holders
from memrt._leaks.advice import fix_for
from memrt._leaks.survey import Survey
from memrt._support.public import public
from memrt._support.units import human_bytes, human_seconds, plural
from memrt._tracking.live import LiveBuffer, live, tracking
from memrt._tracking.sites import Place
from memrt._tracking.user_code import is_a_runners, shows_all_frames

GROUPS_SHOWN = 5
_CALLS_SHOWN = 4


@public("memrt.types")
@dataclass(frozen=True, slots=True)
class LeakGroup:
    """Live buffers allocated at one source line.

    Examples
    --------
    >>> import memrt
    >>> kept = []
    >>> try:
    ...     with memrt.debug.assert_no_leaks():
    ...         kept.append(memrt.alloc(1000))
    ... except memrt.debug.LeakError as error:
    ...     print([(group.nbytes, len(group.buffers)) for group in error.groups])
    [(1000, 1)]
    """

    place: Place | None
    """Source line; None if not known."""
    buffers: tuple[LiveBuffer, ...]
    """Buffers of the group, the largest first."""
    suppression: str | None
    """Description from the suppression that matches the buffers, or None: see
    :func:`suppress_leaks`."""

    @property
    def nbytes(self) -> int:
        """Bytes of all buffers of the group; an estimate if allocations were sampled."""
        return round(sum(buffer.nbytes * buffer.weight for buffer in self.buffers))

    def __str__(self) -> str:
        return (
            f"{human_bytes(self.nbytes)} in {plural(len(self.buffers), 'buffer')} {self._site_text}"
        )

    @property
    def _site_text(self) -> str:
        return (
            "allocated at an unknown source line"
            if self.place is None
            else f"allocated in {self.place}"
        )


def group(buffers: Iterable[LiveBuffer]) -> list[LeakGroup]:
    """Group buffers by the source line of their allocation and by suppression, most bytes first.

    Buffers that were listed only for their name are left out.
    """
    found: defaultdict[tuple[Place | None, str | None], list[LiveBuffer]] = defaultdict(list)
    suppression_at = cache(_memrt.suppression_at)  # compares all patterns with all calls of a site
    for buffer in buffers:
        if buffer.weight:
            found[buffer.place, suppression_at(buffer.site_number)].append(buffer)
    groups = [
        LeakGroup(place, tuple(sorted(members, key=lambda buffer: -buffer.nbytes)), suppression)
        for (place, suppression), members in found.items()
    ]
    return sorted(groups, key=lambda each: -each.nbytes)


def unexpected(groups: Iterable[LeakGroup]) -> list[LeakGroup]:
    """Return the groups that no suppression matches."""
    return [each for each in groups if each.suppression is None]


def amount(groups: Iterable[LeakGroup]) -> tuple[int, int]:
    """Return the number of buffers, and the number of bytes, in groups."""
    found = list(groups)
    return sum(len(each.buffers) for each in found), sum(each.nbytes for each in found)


def describe(
    groups: list[LeakGroup], survey: Survey | None = None, *, in_command: bool = False
) -> list[str]:
    """Return groups as lines of text.

    Each group has the allocation site, the callers, the number of buffers by kind of holder, and
    the holders of the largest buffer.

    Parameters
    ----------
    survey : Survey or None
        An existing survey of the buffers of the groups; None: make a survey. If the search for
        holders is refused, the last line has the reason.
    in_command : bool, default False
        Add a line with the change of the program that frees the buffers, and name a command as the
        next step in place of a function.
    """
    shown = groups[:GROUPS_SHOWN]
    refusal = []
    if survey is None:
        try:
            survey = Survey(buffer for each in shown for buffer in each.buffers)
        except RuntimeError as error:
            refusal = [f"  {error}"]
    lines = []
    for each in shown:
        lines.append(f"  {each}")
        lines += [f"      {line}" for line in _details(each, survey, in_command)]
        if in_command and survey is not None:
            kinds = Counter(map(survey.main_holder, each.buffers))
            lines.append(f"      fix: {fix_for(kinds.most_common(1)[0][0])}")
    if len(groups) > GROUPS_SHOWN:
        _, rest = amount(groups[GROUPS_SHOWN:])
        left = plural(len(groups) - GROUPS_SHOWN, "more source line")
        lines.append(f"  and {human_bytes(rest)} at {left}")
    return lines + refusal


def _details(each: LeakGroup, survey: Survey | None, in_command: bool) -> list[str]:
    largest = each.buffers[0]
    lines = call_lines(each, None if shows_all_frames() else _CALLS_SHOWN)
    if survey is not None:  # the buffers of a group may have different holders
        lines += survey.lines(each.buffers, in_command=in_command)
    what = "buffer" if len(each.buffers) == 1 else "largest buffer"
    name = "" if largest.name is None else f" {largest.name!r},"
    scope = "" if largest.scope is None else f", scope {largest.scope}"
    lines.append(
        f"{what}:{name} {human_bytes(largest.nbytes)}, {human_seconds(largest.age)} old, "
        f"refcount {largest.refcount}, policy {largest.policy}{scope}"
    )
    found = None if survey is None else held(largest)
    return lines + ([] if found is None else found.tree())


def call_lines(each: LeakGroup, most: int | None) -> list[str]:
    """Return the calls of a group as lines: the line of a library, then the callers.

    The calls are of the largest buffer, without the calls of the runner. `most` is the most
    callers; None: all.
    """
    site = each.buffers[0].site
    if site is None:
        return []
    through, frames = site.through, site.frames
    places = [Place(frame.file, frame.function, frame.line) for frame in frames]
    below = places.index(each.place) + 1 if each.place in places else 0
    callers = [frame for frame in frames[below:] if not is_a_runners(frame)][:most]
    lines = [] if through is None else [f"through {through}"]
    return lines + [f"called from {frame}" for frame in callers]


def held(buffer: LiveBuffer) -> Holders | None:
    """Return the holders of a buffer, or None if the buffer was freed."""
    try:
        return holders(buffer)
    except LookupError:
        return None


@public("memrt.debug")
class LeakError(AssertionError):
    """Exception for buffers that outlived a block of :class:`assert_no_leaks`.

    The message lists the buffers with their allocation sites and holders.

    Examples
    --------
    >>> import memrt
    >>> kept = []
    >>> try:
    ...     with memrt.debug.assert_no_leaks():
    ...         kept.append(memrt.alloc(1000))
    ... except memrt.debug.LeakError as error:
    ...     print(str(error).splitlines()[0])
    1 buffer allocated in this block is still live, 1000 B:
    """

    def __init__(self, groups: list[LeakGroup]) -> None:
        count, size = amount(groups)
        still = "is still live" if count == 1 else "are still live"
        title = f"{plural(count, 'buffer')} allocated in this block {still}, {human_bytes(size)}:"
        super().__init__("\n".join([title, *describe(groups)]))
        self.groups = groups
        """Leaked buffers by source line of the allocation, most bytes first."""


@dataclass(frozen=True, slots=True)
class _Begin:
    """Start of an open ``with`` block."""

    allocations: int
    """Serial number of the last listed allocation before the block."""
    outer: _Begin | None


@public("memrt.debug")
class assert_no_leaks(ContextDecorator):  # noqa: N801 - reads as a verb where it is used
    """Raise :class:`LeakError` if buffers allocated in the block are live at the end of the block.

    A context manager, or a decorator. The end of the block collects garbage cycles before the
    check. Exempt buffers that may outlive the block with :meth:`allow`, or with a suppression by
    :func:`suppress_leaks`. NumPy's own caches are suppressed from the start. If an exception leaves
    the block, the check is skipped and the exception continues.

    Parameters
    ----------
    frames : int, default 16
        Maximum of Python calls to record for each allocation, 0 to 128.
    native : int, default 0
        Maximum of native calls to record for each allocation, 0 to 128.

    Raises
    ------
    LeakError
        At the end of the block: buffers are live.

    Notes
    -----
    Only memrt's buffers count. Arrays of NumPy are memrt's buffers under a policy or
    :func:`memrt.enable`.

    Threads: buffers of all threads count.

    Examples
    --------
    >>> import memrt
    >>> with memrt.debug.assert_no_leaks() as block:
    ...     result = memrt.zeros(100)
    ...     block.allow(result)
    """

    def __init__(self, *, frames: int = 16, native: int = 0) -> None:
        self._tracking = tracking(frames=frames, native=native)
        self._begins: _Begin | None = None
        self._allowed: set[int] = set()

    def allow(self, *arrays: Any) -> None:
        """Exempt buffers from the check.

        Parameters
        ----------
        *arrays : object
            Arrays, memoryviews or MemInfos over the buffers.

        Raises
        ------
        ValueError
            memrt does not manage the memory.
        """
        self._allowed |= {_memrt.meminfo(array).address for array in arrays}

    def __enter__(self) -> assert_no_leaks:
        begin = _Begin(_memrt.tracking_allocations(), self._begins)
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
        if begin is not None:
            self._begins = begin.outer
        if kind is not None:
            return
        if begin is None:
            raise RuntimeError("assert_no_leaks was left without being entered")
        leaks = self._leaks(begin.allocations)
        if leaks:
            raise LeakError(leaks)

    def _leaks(self, begin: int) -> list[LeakGroup]:
        found = [buffer for buffer in allocated_since(begin) if buffer.address not in self._allowed]
        return unexpected(group(found))


def allocated_since(begin: int) -> list[LiveBuffer]:
    """Collect garbage, and return the live buffers allocated after allocation number `begin`."""
    gc.collect()
    _memrt.stats_read(None)  # also drops references whose release waits for the GIL
    return [buffer for buffer in live() if buffer.id > begin]


@public("memrt.debug")
def suppress_leaks(pattern: str, description: str) -> None:
    """Add a suppression: leak reports separate buffers whose call stack matches a pattern.

    Parameters
    ----------
    pattern : str
        Shell pattern, matched against each call of the stack. Python calls read "function at
        file:line", native calls "function+0xNN in object". "*" matches any text.
    description : str
        Description of the buffers for the report, such as "the cache of the parser".

    Raises
    ------
    ValueError
        An argument is empty or has more than 255 bytes.
    RuntimeError
        64 suppressions exist.

    Examples
    --------
    >>> import memrt
    >>> memrt.debug.suppress_leaks("* at */parser.py:*", "the cache of the parser")
    """
    _memrt.suppression_add(pattern, description)


def _suppress_numpy_caches() -> None:
    """Suppress arrays that NumPy keeps for the life of the process, in any installation folder."""
    package = glob.escape(os.path.dirname(numpy.__file__))
    for place, cache_name in (
        ("_core/getlimits.py", "cache of numpy.finfo"),
        ("core/getlimits.py", "cache of numpy.finfo"),
    ):
        suppress_leaks(f"* at {package}/{place}:*", cache_name)
    suppress_leaks(f"<module> at {package}/*", "allocated during the import of a NumPy module")


_suppress_numpy_caches()


def run_rounds(function: Callable[[], object], rounds: int) -> list[list[LiveBuffer]]:
    """Call a function `rounds` times, and return the live buffers of all rounds after each round.

    Buffers from before the first round are left out.
    """
    with tracking():
        begin = _memrt.tracking_allocations()
        found = []
        for _ in range(rounds):
            function()
            found.append(allocated_since(begin))
    return found
