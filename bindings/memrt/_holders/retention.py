"""Find wasted memory: buffers that only views of a part of the buffer keep alive."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, SupportsIndex

from memrt import _memrt
from memrt._holders.report import Holders, as_plain
from memrt._holders.search import build
from memrt._support.public import public
from memrt._support.units import human_bytes
from memrt._tracking.sites import Place, Site

_MOST = 10_000  # most buffers to report
_LARGEST = 2**62  # bytes: no buffer is larger
_OBJECTS = 4  # index in a row of find_retention(): number of objects of the buffer


@public("memrt.types")
@dataclass(frozen=True)
class Retained:
    """Buffer that is kept alive by views of a part of the buffer.

    Examples
    --------
    >>> import memrt
    >>> head = memrt.zeros(100_000)[:10]
    >>> found = memrt.debug.retention().buffers[0]
    >>> found.nbytes, found.viewed, found.wasted
    (800000, 80, 799920)
    """

    holders: Holders
    """Holders of the buffer. The referrers of the views show where the views are stored."""
    nbytes: int
    """Size of the buffer in bytes."""
    viewed: int
    """Bytes that any view addresses. Bytes in several views count once, bytes between the elements
    of a view do not count."""
    exact: bool
    """Whether `viewed` is exact. If more than 4 million runs of bytes may overlap, `viewed` is an
    upper bound."""
    views: int
    """Number of arrays and memoryviews with a reference other than as the base of another view."""

    @property
    def site(self) -> Site | None:
        """Allocation site with its call stack; None if not recorded: see :func:`tracking`."""
        return self.holders.site

    @property
    def place(self) -> Place | None:
        """Source line of the allocation; None if not recorded."""
        return self.holders.place

    @property
    def wasted(self) -> int:
        """Bytes in no view."""
        return self.nbytes - self.viewed

    @property
    def why(self) -> str:
        """Reason for the listing, as a text with the bytes wasted, kept and viewed."""
        about = "" if self.exact else "at most "
        return (
            f"{human_bytes(self.wasted)} wasted: {human_bytes(self.nbytes)} kept for "
            f"{about}{human_bytes(self.viewed)} in {self.views:,} "
            f"view{'' if self.views == 1 else 's'}"
        )

    def __repr__(self) -> str:
        return f"{self.why}\n{self.holders}"


@public("memrt.types")
@dataclass(frozen=True)
class Retention:
    """Result of :func:`memrt.debug.retention`; iteration yields the buffers.

    Examples
    --------
    >>> import memrt
    >>> head = memrt.zeros(100_000)[:10]
    >>> found = memrt.debug.retention(min_bytes=700_000)
    >>> len(found), found.wasted
    (1, 799920)
    """

    buffers: tuple[Retained, ...]
    """Buffers found, the most wasted bytes first, up to the limit."""
    count: int
    """Number of buffers found, including buffers beyond the limit."""
    wasted: int
    """Bytes in no view, summed over all buffers found."""

    def __iter__(self) -> Iterator[Retained]:
        return iter(self.buffers)

    def __len__(self) -> int:
        return len(self.buffers)

    def to_dict(self) -> dict[str, Any]:
        """Return the result for JSON.

        Returns
        -------
        dict
            Fields by name, as dicts, lists, texts and numbers.
        """
        buffers = [
            {
                **asdict(each),
                "holders": each.holders.to_dict(),
                "wasted": each.wasted,
                "why": each.why,
            }
            for each in self.buffers
        ]
        return dict(as_plain({"buffers": buffers, "count": self.count, "wasted": self.wasted}))

    def __repr__(self) -> str:
        title = (
            f"memrt.debug.retention: {self.count:,} buffer{'' if self.count == 1 else 's'}, "
            f"{human_bytes(self.wasted)} wasted"
        )
        listed = [repr(each) for each in self.buffers]
        if len(listed) < self.count:
            listed.append(f"{self.count - len(listed):,} more")
        return "\n\n".join([title, *listed])


def _retained(row: tuple[Any, ...], found: tuple[Any, ...]) -> Retained:
    meminfo, viewed, exact, views, _, left_out = row
    holders = build(meminfo, found, left_out)
    return Retained(holders, holders.nbytes, viewed, exact, views)


def _split_rows(
    rows: list[tuple[Any, ...]], found: tuple[list[Any], list[Any]]
) -> Iterator[tuple[tuple[Any, ...], tuple[list[Any], list[Any]]]]:
    """Yield each row with the objects and references of the row's buffer.

    The objects of all rows follow each other. A reference begins with two indexes of objects, which
    are made relative to the row; the second is -1 for none.
    """
    objects, references = found
    counts = [row[_OBJECTS] for row in rows]
    ends = list(itertools.accumulate(counts))
    row_of = [index for index, count in enumerate(counts) for _ in range(count)]
    parts: list[list[Any]] = [[] for _ in rows]
    for to, link, *rest in references:
        start = ends[row_of[to]] - counts[row_of[to]]
        parts[row_of[to]].append((to - start, max(-1, link - start), *rest))
    for row, count, end, part in zip(rows, counts, ends, parts, strict=True):
        yield row, (objects[end - count : end], part)


@public("memrt.debug")
def retention(
    min_bytes: SupportsIndex = 64 * 1024, min_ratio: float = 0.5, *, limit: SupportsIndex = 100
) -> Retention:
    """Find memrt's buffers kept alive only by views of a part, the most wasted bytes first.

    ``head = table[:10]`` keeps all of the table alive. A buffer is listed if nothing uses the whole
    buffer. An array over the whole buffer, or a MemInfo, uses the whole buffer if anything other
    than a view refers to the array or MemInfo. A reference of C code also uses the whole buffer.

    Parameters
    ----------
    min_bytes : int, default 65536
        Minimum number of bytes in no view.
    min_ratio : float, default 0.5
        Minimum part of the buffer in no view, from 0 to 1.
    limit : int, default 100
        Maximum number of buffers to list, up to 10,000. The counts include all buffers.

    Returns
    -------
    memrt.types.Retention
        Buffers with viewed bytes and holders. Viewed bytes are counted exactly.

    Raises
    ------
    ValueError
        A number is out of range.
    RuntimeError
        The GIL is off, so other threads change objects during the search.

    Notes
    -----
    The search covers memory allocated by memrt, also for NumPy under a policy, except blocks of up
    to 64 bytes. Ctrl-C interrupts the search.

    Threads: all threads wait during the search, about a second for a million objects.

    Examples
    --------
    >>> import memrt
    >>> head = memrt.zeros(100_000)[:10]
    >>> memrt.debug.retention().buffers[0].why
    '781.2 KiB wasted: 781.2 KiB kept for 80 B in 1 view'
    """
    least, most = operator.index(min_bytes), operator.index(limit)
    if least < 0:
        raise ValueError(f"min_bytes must be 0 or more, got {least}")
    if not 0 <= most <= _MOST:
        raise ValueError(f"limit must be from 0 to {_MOST}, got {most}")
    if not 0 <= min_ratio <= 1:
        raise ValueError(f"min_ratio must be from 0 to 1, got {min_ratio}")
    rows, found, count, wasted = _memrt.find_retention(min(least, _LARGEST), float(min_ratio), most)
    buffers = tuple(_retained(row, part) for row, part in _split_rows(rows, found))
    return Retention(buffers, count, wasted)
