"""Find the source line that allocates most in a test, for the summary of pytest --memrt."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from itertools import zip_longest

from memrt import _memrt
from memrt._tracking.sites import Place, place_of

_SAMPLE = 4096  # bytes; nearly all allocations of 16 KiB and more are tracked
_TRACKING = (True, 16, 0, _SAMPLE)  # on, calls of Python, calls of native code

_Totals = list[tuple[int, int]]  # number and bytes of all allocations, by site


class Lines:
    """Allocations by source line between begin() and end().

    A sample of the allocations counts, unless tracking is on already. The time of a reading grows
    with the number of known sites, so tests without tracked allocations are not read.
    """

    def __init__(self) -> None:
        self._totals: _Totals = []
        self._last = 0  # serial number of the last allocation in the totals
        self._opened: int | None = None

    def begin(self) -> None:
        """Start to count, in tests without tracking by a sample."""
        if not _memrt.tracking_get()[0]:
            self._opened = _memrt.tracking_open(_TRACKING)
        if _memrt.tracking_allocations() != self._last:
            self._read()

    def end(self, *, is_wanted: bool) -> str | None:
        """Stop counting. Return the line with most bytes as text.

        Returns None without allocations, or if `is_wanted` is False, which saves a reading.
        """
        if self._opened is not None:
            _memrt.tracking_close(self._opened)
            self._opened = None
        if not is_wanted or _memrt.tracking_allocations() == self._last:
            return None
        before = self._totals
        self._read()
        return _heaviest(before, self._totals)

    def _read(self) -> None:
        self._last = _memrt.tracking_allocations()
        with contextlib.suppress(MemoryError):
            self._totals = _memrt.site_allocations()


def _heaviest(before: _Totals, after: _Totals) -> str | None:
    """Return the line with most bytes between two readings, as text."""
    sums: defaultdict[Place, int] = defaultdict(int)
    pairs = zip_longest(before, after, fillvalue=(0, 0))
    for number, ((_, old), (_, new)) in enumerate(pairs, 1):
        place = None if old == new else place_of(number)
        if place is not None:
            sums[place] += new - old
    return str(max(sums, key=lambda place: sums[place])) if sums else None
