"""A moment: what was live then, by place and scope of birth, and by size."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any, NamedTuple

from memrt import _memrt
from memrt._live import LiveBuffer


class Moment(NamedTuple):
    """The tracked buffers that were live at one moment, added up."""

    t: float
    """Seconds since the start."""
    by_place: dict[tuple[int, str | None], tuple[float, float]]
    """Buffers and bytes, by number of the site and path of the scope."""
    by_size: dict[int, tuple[float, float]]
    """Buffers and bytes, by the power of two above the size; 0 for empty ones."""

    @property
    def blocks(self) -> float:
        """Buffers; an estimate where a sample is tracked."""
        return sum(blocks for blocks, _ in self.by_place.values())

    @property
    def nbytes(self) -> float:
        """Bytes; likewise."""
        return sum(size for _, size in self.by_place.values())

    def to_dict(self) -> dict[str, Any]:
        """As a recording has it; the largest first."""
        by_place = sorted(self.by_place.items(), key=lambda item: -item[1][1])
        rows = [[site, scope, round(n), round(size)] for (site, scope), (n, size) in by_place]
        sizes = [[bits, round(n), round(size)] for bits, (n, size) in sorted(self.by_size.items())]
        return {"t": self.t, "bytes": round(self.nbytes), "rows": rows, "sizes": sizes}


def scope_paths(capsules: Iterable[Any]) -> dict[int, str]:
    """Paths of scopes by their numbers; of `_memrt.scopes()`, which has parents first."""
    paths: dict[int, str] = {}
    for capsule in capsules:
        number, name, parent = _memrt.scope_info(capsule)
        paths[number] = f"{paths[parent]}/{name}" if parent in paths else name
    return paths


def moment_of(t: float, rows: Iterable[tuple[Any, ...]]) -> Moment:
    """What rows of `_memrt.live()` add up to."""
    places: defaultdict[tuple[int, str | None], list[float]] = defaultdict(lambda: [0.0, 0.0])
    sizes: defaultdict[int, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for row in rows:
        size, stands_for = row[_SIZE], row[_STANDS_FOR]
        for sums in (places[row[_SITE], row[_SCOPE]], sizes[size.bit_length()]):
            sums[0] += stands_for
            sums[1] += stands_for * size
    return Moment(
        t,
        {key: (blocks, size) for key, (blocks, size) in places.items() if blocks},
        {bits: (blocks, size) for bits, (blocks, size) in sizes.items() if blocks},
    )


_SIZE, _SCOPE, _SITE, _STANDS_FOR = map(
    LiveBuffer._fields.index, ("size", "scope", "site_number", "stands_for")
)
