"""Tracking: which buffers are live, since when, and where they were born."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from types import TracebackType
from typing import NamedTuple

from memrt import _memrt
from memrt._scopes import scopes
from memrt._sites import Place, Site, place_of, site_of
from memrt._units import human_bytes, human_seconds, parse_bytes

FRAMES_MAX = 128


class LiveBuffer(NamedTuple):
    """One buffer that was live when :func:`live` was called."""

    id: int
    """Serial number, unique in the process, in order of birth."""
    size: int
    """Bytes."""
    refcount: int
    """References at that moment."""
    name: str | None
    """Its name, if it was given one."""
    age: float
    """Seconds since birth, or since the system's clock ticked before it: some milliseconds more."""
    thread: int
    """The operating system's number of the thread of birth."""
    policy: str
    """Name of its policy; empty when the policy is gone."""
    kind: str
    """'inline', 'adopted', 'resizable', or 'block' for one known by its data pointer alone."""
    address: int
    """Address of the first byte."""
    scope: str | None
    """Path of the scope of birth, names joined by slashes; None: in none."""
    site_number: int
    """Number of the place of birth; 0: not known."""
    stands_for: float
    """Buffers of that size, listed or not: 1; more where only a sample is listed; 0 for one that is
    listed for its name alone."""
    inherited: bool
    """Whether it was born before the fork that made this process."""

    @property
    def site(self) -> Site | None:
        """The place of birth, as far as it was recorded."""
        return site_of(self.site_number)

    @property
    def place(self) -> Place | None:
        """The line of the program that it was born in, as far as it was recorded."""
        return place_of(self.site_number)

    def to_dict(self) -> dict[str, object]:
        """The fields by name, with the place and the calls of birth as texts."""
        calls = [] if self.site is None else [str(frame) for frame in self.site.frames]
        place = None if self.place is None else str(self.place)
        return {**self._asdict(), "place": place, "calls": calls}

    def __repr__(self) -> str:
        name = f" {self.name!r}" if self.name is not None else ""
        scope = f" in scope {self.scope}" if self.scope is not None else ""
        place = f", born in {self.place}" if self.place is not None else ""
        inherited = ", inherited" if self.inherited else ""
        return (
            f"<LiveBuffer {self.id}{name}: {human_bytes(self.size)}, "
            f"{human_seconds(self.age)} old, refcount {self.refcount}, {self.kind} of policy "
            f"{self.policy!r}{scope}{place}{inherited}>"
        )


def live() -> list[LiveBuffer]:
    """The live buffers born while tracking was on, oldest first.

    After a sample was taken, each stands for :attr:`LiveBuffer.stands_for` buffers of its size: the
    sum of ``size * stands_for`` is an unbiased estimate of the bytes of all.
    """
    paths = {scope._id: "/".join(scope.path) for scope in scopes()}
    return list(map(LiveBuffer._make, _memrt.live(paths)))


@dataclass(frozen=True, slots=True)
class SiteUsage:
    """What buffers of one place of birth take."""

    place: Place | None
    """Where; None for all whose place is not known."""
    blocks: float
    """Live buffers; an estimate where a sample was taken."""
    bytes: float
    """Bytes of them; likewise."""

    def __repr__(self) -> str:
        where = "a place not known" if self.place is None else self.place
        count = f"{self.blocks:,.0f} buffer" + ("" if self.blocks == 1 else "s")
        return f"<{human_bytes(round(self.bytes))} in {count} of {where}>"


def sites(buffers: Iterable[LiveBuffer] | None = None) -> list[SiteUsage]:
    """What is live by place of birth, the largest first.

    :param buffers: those to add up; None: :func:`live`.
    """
    blocks: defaultdict[Place | None, float] = defaultdict(float)
    sizes: defaultdict[Place | None, float] = defaultdict(float)
    for buffer in live() if buffers is None else buffers:
        place = place_of(buffer.site_number)
        blocks[place] += buffer.stands_for
        sizes[place] += buffer.stands_for * buffer.size
    found = [SiteUsage(place, blocks[place], sizes[place]) for place in blocks]
    return sorted(found, key=lambda usage: -usage.bytes)


class _Opened:
    """An entry of a block that is open: to leave it must need no memory, which list.pop may."""

    __slots__ = ("number", "outer")

    def __init__(self, outer: _Opened | None) -> None:
        self.number = 0
        self.outer = outer


class tracking:  # noqa: N801 - reads as a verb where it is used
    """Context manager: buffers born inside, on any thread, are listed by :func:`live`.

    They stay listed until they die, also after the block. Blocks may be nested, and on several
    threads at once: births are tracked as the block says that was entered last of those that are
    open; after all of them, as before.

    :param frames: most Python calls to record of each birth, 0 to 128.
    :param native: most calls of native code to record of each birth, 0 to 128. Quick where
        libunwind is installed (Debian: libunwind8).
    :param sample: list one birth in about so many bytes, a number or a text like "512K", chosen
        at random so that estimates are unbiased; None: list all.
    """

    def __init__(
        self, *, frames: int = 16, native: int = 0, sample: int | str | None = None
    ) -> None:
        for name, number in (("frames", frames), ("native", native)):
            if not isinstance(number, int):
                raise TypeError(f"{name} is a number of calls, not {number!r}")
            if not 0 <= number <= FRAMES_MAX:
                raise ValueError(f"{name} must be from 0 to {FRAMES_MAX}, not {number}")
        mean = 0 if sample is None else parse_bytes(sample)
        if sample is not None and mean <= 0:
            raise ValueError(f"sample must be a positive number of bytes, not {sample!r}")
        self._wanted = (True, frames, native, mean)
        self._opened: _Opened | None = None

    def __enter__(self) -> tracking:
        opened = _Opened(self._opened)
        opened.number = _memrt.tracking_open(self._wanted)
        self._opened = opened
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None = None,
        error: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None:
        opened = self._opened
        if opened is not None:
            self._opened = opened.outer  # from here on nothing needs memory
            _memrt.tracking_close(opened.number)
