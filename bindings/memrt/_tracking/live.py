"""Track live buffers: list each buffer with its age and allocation site."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from types import TracebackType
from typing import NamedTuple

from memrt import _memrt
from memrt._policy.scope_tree import scope_paths
from memrt._support.public import public
from memrt._support.units import human_bytes, human_seconds, parse_bytes
from memrt._tracking.sites import Place, Site, full_place, full_text, place_of, site_of

FRAMES_MAX = 128


@public("memrt.types")
class LiveBuffer(NamedTuple):
    """Buffer that was live when :func:`memrt.debug.live` was called.

    Examples
    --------
    >>> import memrt
    >>> mi = memrt.alloc(1000, name="table")
    >>> [buffer] = [each for each in memrt.debug.live() if each.name == "table"]
    >>> buffer.nbytes, buffer.address == mi.address, buffer.refcount
    (1000, True, 1)
    """

    id: int
    """Serial number, unique in the process, in order of allocation."""
    nbytes: int
    """Size of the buffer in bytes."""
    refcount: int
    """Number of references at the time of the call."""
    name: str | None
    """Name of the buffer, or None."""
    age: float
    """Seconds since the allocation. The value may be some milliseconds too high, because the start
    is the last clock tick before the allocation."""
    thread: int
    """Operating system's number of the thread that allocated the buffer."""
    policy: str
    """Name of the policy; empty if the policy no longer exists."""
    kind: str
    """'inline', 'adopted', 'resizable', or 'block' for a buffer known by its data pointer only."""
    address: int
    """Address of the first byte."""
    scope: str | None
    """Path of the scope of the allocation, names joined by slashes; None outside of scopes."""
    site_number: int
    """Number of the allocation site; 0: not known."""
    weight: float
    """Sampling weight: number of buffers of this size that the entry represents. The weight is 1
    when all buffers are listed, and higher when a sample is listed. A buffer listed only for its
    name has weight 0."""
    inherited: bool
    """Whether the allocation happened before the fork that created this process."""

    @property
    def site(self) -> Site | None:
        """Allocation site with its call stack; None if not recorded."""
        return site_of(self.site_number)

    @property
    def place(self) -> Place | None:
        """Source line of the allocation; None if not recorded."""
        return place_of(self.site_number)

    def to_dict(self) -> dict[str, object]:
        """Return the fields by name, with the source line and the call stack as texts.

        The texts have the whole paths of files.

        Returns
        -------
        dict
            Fields, ``place`` and ``calls``, for JSON.
        """
        calls = [] if self.site is None else [full_text(frame) for frame in self.site.frames]
        return {**self._asdict(), "place": full_place(self.site), "calls": calls}

    def __repr__(self) -> str:
        name = f" {self.name!r}" if self.name is not None else ""
        scope = f" in scope {self.scope}" if self.scope is not None else ""
        place = f", allocated in {self.place}" if self.place is not None else ""
        inherited = ", inherited" if self.inherited else ""
        return (
            f"<LiveBuffer {self.id}{name}: {human_bytes(self.nbytes)}, "
            f"{human_seconds(self.age)} old, refcount {self.refcount}, {self.kind} of policy "
            f"{self.policy!r}{scope}{place}{inherited}>"
        )


@public("memrt.debug")
def live() -> list[LiveBuffer]:
    """Return the live buffers allocated while tracking was on, oldest first.

    Buffers with a name are listed in any case.

    Returns
    -------
    list of memrt.types.LiveBuffer
        Buffers of all threads. When tracking samples allocations, each entry represents
        :attr:`LiveBuffer.weight` buffers of the same size. The sum of ``nbytes * weight``
        is then an unbiased estimate of all live bytes.

    Examples
    --------
    >>> import memrt
    >>> with memrt.debug.tracking():
    ...     table = memrt.zeros(1000)
    >>> [buffer.nbytes for buffer in memrt.debug.live() if buffer.address == table.ctypes.data]
    [8000]
    """
    return list(map(LiveBuffer._make, _memrt.live(scope_paths)))


@public("memrt.types")
@dataclass(frozen=True, slots=True)
class SiteUsage:
    """Live memory allocated at one source line.

    Examples
    --------
    >>> import memrt
    >>> with memrt.debug.tracking():
    ...     tables = [memrt.zeros(1000) for _ in range(3)]
    >>> [(usage.blocks, usage.bytes) for usage in memrt.debug.sites(memrt.debug.live()[-3:])]
    [(3.0, 24000.0)]
    """

    place: Place | None
    """Source line; None for all buffers whose line is not known."""
    blocks: float
    """Number of live buffers; an estimate if allocations were sampled."""
    bytes: float
    """Bytes of the live buffers; an estimate if allocations were sampled."""

    def __repr__(self) -> str:
        where = "an unknown source line" if self.place is None else self.place
        count = f"{self.blocks:,.0f} buffer" + ("" if self.blocks == 1 else "s")
        return f"<{human_bytes(round(self.bytes))} in {count} of {where}>"


@public("memrt.debug")
def sites(buffers: Iterable[LiveBuffer] | None = None) -> list[SiteUsage]:
    """Return the live memory by source line of the allocation, most bytes first.

    Parameters
    ----------
    buffers : iterable of memrt.types.LiveBuffer, optional
        Buffers to add up. None: the result of :func:`live`.

    Returns
    -------
    list of memrt.types.SiteUsage
        Number and bytes of the buffers of each source line.

    Examples
    --------
    >>> import memrt
    >>> with memrt.debug.tracking():
    ...     table = memrt.zeros(1000)
    >>> usage = memrt.debug.sites(memrt.debug.live()[-1:])[0]
    >>> usage.blocks, usage.bytes
    (1.0, 8000.0)
    """
    blocks: defaultdict[Place | None, float] = defaultdict(float)
    sizes: defaultdict[Place | None, float] = defaultdict(float)
    for buffer in live() if buffers is None else buffers:
        place = place_of(buffer.site_number)
        blocks[place] += buffer.weight
        sizes[place] += buffer.weight * buffer.nbytes
    found = [SiteUsage(place, blocks[place], sizes[place]) for place in blocks]
    return sorted(found, key=lambda usage: -usage.bytes)


class _Opened:
    """Entry of a linked stack of open ``with`` blocks.

    Leaving a block must not allocate memory, and ``list.pop`` may allocate.
    """

    __slots__ = ("number", "outer")

    def __init__(self, outer: _Opened | None) -> None:
        self.number = 0
        self.outer = outer


@public("memrt.debug")
class tracking:  # noqa: N801 - reads as a verb where it is used
    """Context manager: :func:`live` lists buffers allocated inside, on any thread.

    A buffer stays listed until the buffer is freed, also after the ``with`` block. Blocks may be
    nested. The settings of the open block that was entered last apply to all threads. After the
    last block the previous settings apply again.

    Parameters
    ----------
    frames : int, default 16
        Maximum of Python calls to record for each allocation, 0 to 128: the innermost calls. From 3
        on, if all of them are in libraries, the innermost call of the user's code and the call of
        the library there replace the last two.
    native : int, default 0
        Maximum of calls of native code to record for each allocation, 0 to 128. Some call
        stacks are fast only if libunwind is installed (Debian: libunwind8).
    sample : int or str, optional
        List about one allocation per `sample` bytes, a number or a text like "512K". Allocations
        are chosen at random, so that estimates are unbiased. None: list all.

    Raises
    ------
    TypeError
        A number of calls is not a whole number.
    ValueError
        A number is out of range.

    Notes
    -----
    Threads: several threads may open blocks at once.

    Examples
    --------
    >>> import memrt
    >>> with memrt.debug.tracking(frames=4):
    ...     table = memrt.zeros(1000)
    >>> memrt.debug.live()[-1].nbytes
    8000
    """

    def __init__(
        self, *, frames: int = 16, native: int = 0, sample: int | str | None = None
    ) -> None:
        for name, number in (("frames", frames), ("native", native)):
            if not isinstance(number, int):
                raise TypeError(f"{name} must be a whole number of calls, got {number!r}")
            if not 0 <= number <= FRAMES_MAX:
                raise ValueError(f"{name} must be from 0 to {FRAMES_MAX}, got {number}")
        mean = 0 if sample is None else parse_bytes(sample)
        if sample is not None and mean <= 0:
            raise ValueError(f"sample must be a positive number of bytes, got {sample!r}")
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
            self._opened = opened.outer  # from here on nothing allocates memory
            _memrt.tracking_close(opened.number)
