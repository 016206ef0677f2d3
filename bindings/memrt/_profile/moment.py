"""Sum the live buffers at one moment: by allocation site and scope, and by size."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, NamedTuple

from memrt import _memrt
from memrt._tracking.live import LiveBuffer
from memrt._tracking.sites import site_of
from memrt._tracking.user_code import LibraryCall, has_user_call, outermost_library_call

LARGE = 64 * 1024


class Moment(NamedTuple):
    """Sums over the tracked buffers that were live at one moment."""

    t: float
    """Seconds since the start."""
    by_site: dict[tuple[int, str | None], tuple[float, float]]
    """Buffers and bytes, by number of the allocation site and path of the scope."""
    by_size: dict[int, tuple[float, float]]
    """Buffers and bytes, by number of bits of the size: 0 for an empty buffer."""
    large: Mapping[int, tuple[float, float]] = MappingProxyType({})
    """Buffers and bytes of buffers of at least LARGE bytes, by number of the site."""

    @property
    def blocks(self) -> float:
        """Return the number of buffers. With sampled tracking the number is an estimate."""
        return sum(blocks for blocks, _ in self.by_site.values())

    @property
    def nbytes(self) -> float:
        """Return the number of bytes. With sampled tracking the number is an estimate."""
        return sum(size for _, size in self.by_site.values())

    def to_dict(self) -> dict[str, Any]:
        """Return the moment in the format of a recording, with the largest rows first."""
        by_site = sorted(self.by_site.items(), key=lambda item: -item[1][1])
        rows = [[site, scope, round(n), round(size)] for (site, scope), (n, size) in by_site]
        sizes = [[bits, round(n), round(size)] for bits, (n, size) in sorted(self.by_size.items())]
        return {"t": self.t, "bytes": round(self.nbytes), "rows": rows, "sizes": sizes}


def scope_paths(capsules: Iterable[Any]) -> dict[int, str]:
    """Return the paths of scopes, keyed by scope number.

    Parameters
    ----------
    capsules : Iterable[Any]
        `_memrt.scopes()`, in which parents come before their children.
    """
    paths: dict[int, str] = {}
    for capsule in capsules:
        number, name, parent = _memrt.scope_info(capsule)
        paths[number] = f"{paths[parent]}/{name}" if parent in paths else name
    return paths


def moment_of(t: float, rows: Iterable[tuple[Any, ...]]) -> Moment:
    """Return the sums over rows of `_memrt.live()`, each row multiplied by its sampling weight."""
    sites: defaultdict[tuple[int, str | None], list[float]] = defaultdict(lambda: [0.0, 0.0])
    sizes: defaultdict[int, list[float]] = defaultdict(lambda: [0.0, 0.0])
    large: dict[int, tuple[float, float]] = {}
    for row in rows:
        size, weight = row[_SIZE], row[_WEIGHT]
        for sums in (sites[row[_SITE], row[_SCOPE]], sizes[size.bit_length()]):
            sums[0] += weight
            sums[1] += weight * size
        if size >= LARGE:
            blocks, nbytes = large.get(row[_SITE], (0.0, 0.0))
            large[row[_SITE]] = (blocks + weight, nbytes + weight * size)
    return Moment(
        t,
        {key: (blocks, size) for key, (blocks, size) in sites.items() if blocks},
        {bits: (blocks, size) for bits, (blocks, size) in sizes.items() if blocks},
        large,
    )


def content_rows(rows: Iterable[tuple[Any, ...]]) -> Iterator[tuple[int, int, int]]:
    """Return bytes, address and number of the site of rows of `_memrt.live()`."""
    return ((row[_SIZE], row[_ADDRESS], row[_SITE]) for row in rows)


def rows_outside_calls(
    rows: Iterable[tuple[Any, ...]], running: Collection[LibraryCall]
) -> list[tuple[Any, ...]]:
    """Return the rows of large buffers, without buffers inside calls of libraries that still run.

    Such a buffer may be a copy that user code cannot change. A site may have buffers of earlier
    calls, so only the newest buffer of a site is left out. Buffers without a call of user code are
    left out, too: the call may still run, deeper than recorded calls.

    Parameters
    ----------
    running : Collection[LibraryCall]
        Result of running_library_calls() before the listing.
    """
    found = [row for row in rows if row[_SIZE] >= LARGE and _is_of_user_code(row[_SITE])]
    newest: dict[int, int] = {}
    for row in found:
        newest[row[_SITE]] = max(newest.get(row[_SITE], 0), row[_ID])
    inside = {number for site, number in newest.items() if _library_call_of(site) in running}
    return [row for row in found if row[_ID] not in inside]


@cache
def _is_of_user_code(number: int) -> bool:
    """Return whether a site has a call of user code, or is not known."""
    site = site_of(number)
    return site is None or has_user_call(site.frames)


@cache
def _library_call_of(number: int) -> LibraryCall | None:
    site = site_of(number)
    return None if site is None else outermost_library_call(site.frames)


_ID, _SIZE, _SCOPE, _SITE, _WEIGHT, _ADDRESS = map(
    LiveBuffer._fields.index, ("id", "nbytes", "scope", "site_number", "weight", "address")
)
