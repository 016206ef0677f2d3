"""Keep listings of live buffers over time, with the allocations in between, in bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import zip_longest
from typing import Any, NamedTuple

MOST_LISTINGS = 64
MOST_ROWS = 200  # rows of a listing, and of the allocations before a listing
FIRST_GAP = 0.02  # least seconds between two listings; doubled when the listings are thinned

Sums = dict[Any, tuple[float, float]]
"""Number and bytes of buffers, by number of the allocation site and scope, or by number alone."""


class Listing(NamedTuple):
    """Live buffers at one moment, and the allocations since the listing before."""

    t: float
    """Seconds since the start."""
    nbytes: float
    """Bytes of all live buffers."""
    by_site: Sums
    """Live buffers by number of the allocation site and path of the scope."""
    came: Sums
    """Buffers allocated since the listing before, by number of the site."""


class Listings:
    """Listings in order of time, at most MOST_LISTINGS.

    Full listings are thinned: of each two neighbours, the listing with more bytes stays. The
    highest listing is therefore never lost, and the allocations of a lost listing count in the
    next listing.
    """

    def __init__(self) -> None:
        self.kept: list[Listing] = []
        self.gap = FIRST_GAP
        """Least number of seconds between two listings. 0: each listing is kept."""
        self._total: list[tuple[int, int]] = []  # allocations by site until the last listing

    def is_due(self, t: float) -> bool:
        """Return whether a listing at `t` would be kept, whatever its bytes."""
        return not self.kept or t - self.kept[-1].t >= self.gap

    def add(self, t: float, by_site: Sums, total: list[tuple[int, int]]) -> None:
        """Add a listing. Within the gap after the last listing, only the higher of both stays.

        Parameters
        ----------
        t : float
            Seconds since the start.
        by_site : dict
            Live buffers.
        total : list of (int, int)
            Number and bytes of all allocations so far, by number of the site less 1.
        """
        nbytes = sum(size for _, size in by_site.values())
        came = self._allocated_since(total)
        if not self.is_due(t):
            if nbytes < self.kept[-1].nbytes:
                return
            came = added(came, self.kept.pop().came)
        elif len(self.kept) >= MOST_LISTINGS:
            came = added(came, self._thin())
        self._total = total
        rest = (0, None)  # site and scope
        self.kept.append(Listing(t, nbytes, largest(by_site, rest), largest(came, 0)))

    def _allocated_since(self, total: list[tuple[int, int]]) -> Sums:
        pairs = enumerate(zip_longest(self._total, total, fillvalue=(0, 0)), 1)
        return {
            number: (now[0] - before[0], now[1] - before[1])
            for number, (before, now) in pairs
            if now != before
        }

    def _thin(self) -> Sums:
        """Halve the listings. Returns the allocations that belong to the next listing."""
        kept: list[Listing] = []
        lost: Sums = {}
        for i in range(0, len(self.kept), 2):
            first, second = self.kept[i : i + 2]
            if first.nbytes > second.nbytes:
                kept.append(first._replace(came=added(first.came, lost)))
                lost = second.came
            else:
                kept.append(second._replace(came=added(second.came, added(first.came, lost))))
                lost = {}
        self.kept = kept
        self.gap *= 2
        return lost

    def sites(self) -> Iterator[int]:
        """Return the numbers of the sites, with repetitions."""
        for each in self.kept:
            yield from (site for site, _ in each.by_site)
            yield from each.came

    def to_dict(self, number: Callable[[int], int]) -> list[dict[str, Any]]:
        """Return the listings in the format of a recording.

        Parameters
        ----------
        number : Callable[[int], int]
            Maps the number of a site to its number in the recording.
        """
        return [
            {
                "t": round(each.t, 6),
                "bytes": round(each.nbytes),
                "rows": [
                    [number(site), scope, round(n), round(size)]
                    for (site, scope), (n, size) in each.by_site.items()
                ],
                "came": [[number(site), n, size] for site, (n, size) in each.came.items()],
            }
            for each in self.kept
        ]


def added(one: Sums, other: Sums) -> Sums:
    """Return the sums of two tables of buffers."""
    sums = dict(one)
    for key, (n, size) in other.items():
        before = sums.get(key, (0, 0))
        sums[key] = (before[0] + n, before[1] + size)
    return sums


def largest(sums: Sums, rest: Any) -> Sums:
    """Return the MOST_ROWS - 1 rows with most bytes, and the sum of all other rows as `rest`."""
    if len(sums) <= MOST_ROWS:
        return sums
    rows = sorted(sums.items(), key=lambda row: -row[1][1])
    kept = dict(rows[: MOST_ROWS - 1])
    others = [each for _, each in rows[MOST_ROWS - 1 :]]
    return added(kept, {rest: (sum(n for n, _ in others), sum(size for _, size in others))})
