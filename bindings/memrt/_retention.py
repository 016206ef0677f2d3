"""Wasted retention: buffers that are kept alive by views of a part of them."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, SupportsIndex

from memrt import _memrt
from memrt._holders import Holders, as_plain, build
from memrt._sites import Place, Site
from memrt._units import human_bytes


@dataclass(frozen=True)
class Retained:
    """A buffer that is kept for less than all of it."""

    holders: Holders
    """Who holds it; what refers to the views tells where they are kept."""
    size: int
    """Bytes that are kept."""
    viewed: int
    """Bytes that any view addresses: those in several views count once, those between the elements
    of a view not at all."""
    exact: bool
    """Whether `viewed` is exact; of very many pieces it is the most that it may be."""
    views: int
    """Arrays and memoryviews that somebody refers to otherwise than as the base of another."""

    @property
    def site(self) -> Site | None:
        """The place of birth, as far as it was recorded: see :func:`tracking`."""
        return self.holders.site

    @property
    def place(self) -> Place | None:
        """The line of the program that it was born in, as far as it was recorded."""
        return self.holders.place

    @property
    def wasted(self) -> int:
        """Bytes that nobody views."""
        return self.size - self.viewed

    @property
    def why(self) -> str:
        """Why it is listed, in words."""
        about = "" if self.exact else "at most "
        return (
            f"{human_bytes(self.wasted)} wasted: {human_bytes(self.size)} kept for "
            f"{about}{human_bytes(self.viewed)} in {self.views:,} "
            f"view{'' if self.views == 1 else 's'}"
        )

    def __repr__(self) -> str:
        return f"{self.why}\n{self.holders}"


@dataclass(frozen=True)
class Retention:
    """Buffers that are kept alive by views of a part of them; iterating gives these."""

    buffers: tuple[Retained, ...]
    """The worst first."""
    count: int
    """How many there are, also those beyond the limit."""
    wasted: int
    """Bytes of all of them that nobody views."""

    def __iter__(self) -> Iterator[Retained]:
        return iter(self.buffers)

    def __len__(self) -> int:
        return len(self.buffers)

    def to_dict(self) -> dict[str, Any]:
        """All of it as dicts, lists, texts and numbers, for JSON."""
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
            f"memrt.retention: {self.count:,} buffer{'' if self.count == 1 else 's'}, "
            f"{human_bytes(self.wasted)} wasted"
        )
        listed = [repr(each) for each in self.buffers]
        if len(listed) < self.count:
            listed.append(f"{self.count - len(listed):,} more")
        return "\n\n".join([title, *listed])


def _retained(row: tuple[Any, ...], found: tuple[Any, ...]) -> Retained:
    meminfo, viewed, exact, views, _, left_out = row
    holders = build(meminfo, found, left_out)
    return Retained(holders, holders.size, viewed, exact, views)


def _parted(
    rows: list[tuple[Any, ...]], found: tuple[list[Any], list[Any]]
) -> Iterator[tuple[tuple[Any, ...], tuple[list[Any], list[Any]]]]:
    """Each row with what was found of its own objects."""
    objects, references = found
    ends: list[int] = []
    for row in rows:
        ends.append((ends[-1] if ends else 0) + row[4])
    owners = [index for index, row in enumerate(rows) for _ in range(row[4])]
    parts: list[list[Any]] = [[] for _ in rows]
    for to, link, *rest in references:
        start = ends[owners[to]] - rows[owners[to]][4]
        parts[owners[to]].append((to - start, max(-1, link - start), *rest))
    for row, end, part in zip(rows, ends, parts, strict=True):
        yield row, (objects[end - row[4] : end], part)


def retention(
    min_bytes: SupportsIndex = 64 * 1024, min_ratio: float = 0.5, *, limit: SupportsIndex = 100
) -> Retention:
    """Buffers of memrt's that are kept alive by views of a part of them, the most wasted first.

    ``head = table[:10]`` keeps all of the table. A buffer is listed when nobody holds all of it: no
    array over the whole and no MemInfo that anything but a view refers to, no reference of C code.
    What views address is counted to the byte, see :class:`Retained`. Finds what memrt made, also
    by NumPy under a policy, but for blocks of up to 64 bytes. All threads wait meanwhile, about a
    second for a million objects; Ctrl-C interrupts.

    Args:
        min_bytes: least bytes that are in no view.
        min_ratio: least part of the buffer that is in no view, from 0 to 1.
        limit: most buffers to tell of, up to 10,000; all are counted.

    Raises:
        ValueError: for numbers outside of these.
    """
    least, most = operator.index(min_bytes), operator.index(limit)
    if least < 0 or most < 0:
        raise ValueError(f"min_bytes and limit must be 0 or more, got {least} and {most}")
    if not 0 <= min_ratio <= 1:
        raise ValueError(f"min_ratio must be from 0 to 1, got {min_ratio}")
    least, most = min(least, 2**62), min(most, 10_000)
    rows, found, count, wasted = _memrt.find_retention(least, float(min_ratio), most)
    buffers = tuple(_retained(row, part) for row, part in _parted(rows, found))
    return Retention(buffers, count, wasted)
