"""Find growth: live memory that rises when a function runs repeatedly."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

from memrt._holders.report import Holders
from memrt._leaks.leaks import held, run_rounds
from memrt._support.public import public
from memrt._support.units import human_bytes, plural
from memrt._tracking.live import LiveBuffer

_ROUNDS_MIN = 12
_HELD = 5  # growing source lines whose newest buffer is reported with its holders
_CHANCE = 0.01  # probability of a false alarm, for each source line and scope


@public("memrt.types")
@dataclass(frozen=True, slots=True)
class Trend:
    """Live bytes of one allocating source line, or of one scope, after each round.

    Examples
    --------
    >>> import memrt
    >>> kept = []
    >>> result = memrt.debug.growth(lambda: kept.append(memrt.alloc(1000)))
    >>> result.total.is_growing, result.total.slope
    (True, 1000.0)
    """

    name: str
    """Source line, or path of the scope."""
    bytes: tuple[int, ...]
    """Live bytes after each round."""
    slope: float
    """Growth in bytes per round over the second half of the rounds: the median over all pairs of
    rounds (Theil-Sen estimator)."""
    chance: float
    """Probability that bytes without a trend rise as often in the second half (Mann-Kendall
    test)."""
    newest: Holders | None = None
    """Holders of the newest buffer of a growing source line. None for other trends, for source
    lines beyond the five steepest, and if the buffer was freed."""

    @property
    def is_growing(self) -> bool:
        """Whether the live bytes rise more steadily than chance explains."""
        return self.slope > 0 and self.chance < _CHANCE

    def __repr__(self) -> str:
        if not self.is_growing:
            return f"<{self.name}: {human_bytes(self.bytes[-1])}, not growing>"
        return (
            f"<{self.name}: +{human_bytes(round(self.slope))} a round, "
            f"{human_bytes(self.bytes[-1])} after {len(self.bytes)} rounds>"
        )

    def _lines(self) -> list[str]:
        """Return the trend, and the holders of the newest buffer, as lines of text."""
        if self.newest is None:
            return [f"  {self!r}"]
        title = f"newest buffer: {human_bytes(self.newest.nbytes)}, refcount {self.newest.refcount}"
        return [f"  {self!r}", *(f"      {line}" for line in [title, *self.newest.tree()])]


def _slope(values: Sequence[int]) -> float:
    from statistics import median  # imports decimal and random: too slow for `import memrt`

    pairs = combinations(enumerate(values), 2)
    return median((later - sooner) / (j - i) for (i, sooner), (j, later) in pairs)


def _p_value(values: Sequence[int]) -> float:
    """Return how likely values without a trend have an equal or larger excess of rises over falls.

    Uses the normal approximation of the Mann-Kendall test, corrected for equal values."""
    count = len(values)
    rises = sum((b > a) - (b < a) for a, b in combinations(values, 2))
    equal = [values.count(value) for value in set(values)]
    variance = sum(
        sign * n * (n - 1) * (2 * n + 5) for sign, ns in ((1, [count]), (-1, equal)) for n in ns
    )
    if rises <= 0 or variance == 0:
        return 1.0
    return 0.5 * math.erfc((rises - 1) / math.sqrt(variance / 18) / math.sqrt(2))


def _trend(name: str, values: Sequence[int]) -> Trend:
    half = values[len(values) // 2 :]
    return Trend(name, tuple(values), _slope(half), _p_value(half))


@public("memrt.types")
@dataclass(frozen=True, slots=True)
class Growth:
    """Result of :func:`memrt.debug.growth`; true if a source line grows.

    Examples
    --------
    >>> import memrt
    >>> bool(memrt.debug.growth(lambda: memrt.alloc(1000)))
    False
    """

    places: tuple[Trend, ...]
    """Trends by source line of the allocation, the steepest first."""
    scopes: tuple[Trend, ...]
    """Trends by scope of the allocation, the steepest first. A scope excludes the scopes inside."""
    total: Trend
    """Trend of all memory allocated in the rounds."""

    @property
    def growing(self) -> tuple[Trend, ...]:
        """Trends of the growing source lines."""
        return tuple(trend for trend in self.places if trend.is_growing)

    def __bool__(self) -> bool:
        return bool(self.growing)

    def to_dict(self) -> dict[str, Any]:
        """Return the result for JSON.

        Returns
        -------
        dict
            Fields by name, as dicts, lists, texts and numbers.
        """

        def plain(trend: Trend) -> dict[str, Any]:
            return {
                "name": trend.name,
                "bytes": list(trend.bytes),
                "slope": trend.slope,
                "chance": trend.chance,
                "is_growing": trend.is_growing,
                "newest": None if trend.newest is None else trend.newest.to_dict(),
            }

        return {
            "places": [plain(trend) for trend in self.places],
            "scopes": [plain(trend) for trend in self.scopes],
            "total": plain(self.total),
        }

    def __repr__(self) -> str:
        head, rounds = "memrt.types.Growth", len(self.total.bytes)
        if not self:
            last = human_bytes(self.total.bytes[-1])
            return f"{head}: no source line grows in {rounds} rounds; {last} live at the end"
        growing = [*self.growing, *(trend for trend in self.scopes if trend.is_growing)]
        title = f"{head}: {plural(len(self.growing), 'source line')} growing in {rounds} rounds"
        lines = [line for trend in growing for line in trend._lines()]
        return "\n".join([f"{title}, and the growing scopes:", *lines])


def _group_trends(
    rounds: list[list[LiveBuffer]], key: Callable[[LiveBuffer], str | None]
) -> list[Trend]:
    """Return the trends of buffers grouped by `key`, the steepest first.

    Buffers whose key is None are left out.
    """
    series: defaultdict[str, list[int]] = defaultdict(lambda: [0] * len(rounds))
    for number, buffers in enumerate(rounds):
        for buffer in buffers:
            name = key(buffer)
            if name is not None:
                series[name][number] += buffer.nbytes
    trends = [_trend(name, values) for name, values in series.items()]
    return sorted(trends, key=lambda trend: -trend.slope)


def _with_holders(trends: list[Trend], buffers: list[LiveBuffer]) -> list[Trend]:
    """Add the holders of the newest buffer to each of the first growing trends.

    While the search for holders is refused, nothing is added.
    """
    newest = {_place_of(buffer): buffer for buffer in buffers}  # oldest first
    growing = [trend.name for trend in trends if trend.is_growing][:_HELD]
    try:
        return [
            replace(trend, newest=held(newest[trend.name])) if trend.name in growing else trend
            for trend in trends
        ]
    except RuntimeError:
        return trends


def _place_of(buffer: LiveBuffer) -> str:
    return "an unknown source line" if buffer.place is None else str(buffer.place)


def _scope_of(buffer: LiveBuffer) -> str | None:
    return None if buffer.scope is None else f"scope {buffer.scope}"


@public("memrt.debug")
def growth(
    function: Callable[..., object], *args: object, rounds: int = 24, **kwargs: object
) -> Growth:
    """Run a function repeatedly, and report the source lines whose live bytes rise.

    Parameters
    ----------
    function : callable
        Function to call in each round. The result is dropped.
    *args : object
        Positional arguments of the calls.
    rounds : int, default 24
        Number of rounds, at least 12.
    **kwargs : object
        Keyword arguments of the calls.

    Returns
    -------
    memrt.types.Growth
        Trends by source line and by scope. The five steepest growing lines have the holders of
        their newest buffer.

    Raises
    ------
    ValueError
        The number of rounds is too small to show a trend.

    Notes
    -----
    Each round ends with a garbage collection. Only the second half of the rounds counts, so a cache
    that fills and then stays constant does not grow. A rise counts as growth if chance explains the
    rise in fewer than one of a hundred cases.

    Examples
    --------
    >>> import memrt
    >>> cache = []
    >>> result = memrt.debug.growth(lambda: cache.append(memrt.alloc(1000)))
    >>> [trend.slope for trend in result.growing]
    [1000.0]
    """
    if rounds < _ROUNDS_MIN:
        raise ValueError(f"rounds must be at least {_ROUNDS_MIN} to show a trend, got {rounds}")
    found = run_rounds(lambda: function(*args, **kwargs), rounds)
    places = _with_holders(_group_trends(found, _place_of), found[-1])
    total = [sum(buffer.nbytes for buffer in buffers) for buffers in found]
    return Growth(tuple(places), tuple(_group_trends(found, _scope_of)), _trend("all", total))
