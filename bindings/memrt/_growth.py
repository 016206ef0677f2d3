"""Growth: what rises when a function runs again and again."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from statistics import median
from typing import Any

from memrt._holders import Holders
from memrt._leaks import held, run_rounds
from memrt._live import LiveBuffer
from memrt._units import human_bytes, plural

_ROUNDS_MIN = 12
_HELD = 5  # places of which it is told who holds their newest buffer
_CHANCE = 0.01  # of a false alarm, for each place and scope


@dataclass(frozen=True, slots=True)
class Trend:
    """How the live bytes of one place of birth, or of one scope, went from round to round."""

    what: str
    """The place, or the path of the scope."""
    bytes: tuple[int, ...]
    """Live after each round."""
    slope: float
    """Bytes a round, over the second half of the rounds: the median over all pairs of rounds
    (Theil and Sen)."""
    chance: float
    """How likely bytes that do not rise would rise as often in that half (Mann and Kendall)."""
    newest: Holders | None = None
    """Who holds the newest buffer of a place that grows; None for other trends, for places beyond
    the first few, and where it is gone."""

    @property
    def is_growing(self) -> bool:
        """Whether they rise, and not by chance."""
        return self.slope > 0 and self.chance < _CHANCE

    def __repr__(self) -> str:
        if not self.is_growing:
            return f"<{self.what}: {human_bytes(self.bytes[-1])}, not growing>"
        return (
            f"<{self.what}: +{human_bytes(round(self.slope))} a round, "
            f"{human_bytes(self.bytes[-1])} after {len(self.bytes)} rounds>"
        )

    def _lines(self) -> list[str]:
        """What it is, and who holds the newest of it."""
        if self.newest is None:
            return [f"  {self!r}"]
        title = f"the newest is {human_bytes(self.newest.size)}, refcount {self.newest.refcount}"
        return [f"  {self!r}", *(f"      {line}" for line in [title, *self.newest.tree()])]


def _slope(values: Sequence[int]) -> float:
    pairs = combinations(enumerate(values), 2)
    return median((later - sooner) / (j - i) for (i, sooner), (j, later) in pairs)


def _chance(values: Sequence[int]) -> float:
    """Of a sum of rises and falls that is as large, where there is no trend; by the normal
    approximation, corrected for values that are equal."""
    count = len(values)
    rises = sum((b > a) - (b < a) for a, b in combinations(values, 2))
    equal = [values.count(value) for value in set(values)]
    variance = sum(
        sign * n * (n - 1) * (2 * n + 5) for sign, ns in ((1, [count]), (-1, equal)) for n in ns
    )
    if rises <= 0 or variance == 0:
        return 1.0
    return 0.5 * math.erfc((rises - 1) / math.sqrt(variance / 18) / math.sqrt(2))


def _trend(what: str, values: Sequence[int]) -> Trend:
    half = values[len(values) // 2 :]
    return Trend(what, tuple(values), _slope(half), _chance(half))


@dataclass(frozen=True, slots=True)
class Growth:
    """What rose while a function ran again and again; true where something did."""

    places: tuple[Trend, ...]
    """By place of birth, the steepest first."""
    scopes: tuple[Trend, ...]
    """By scope of birth, the steepest first; a scope without those inside of it."""
    total: Trend
    """Of all that was born in the rounds."""

    @property
    def growing(self) -> tuple[Trend, ...]:
        """The places that rise."""
        return tuple(trend for trend in self.places if trend.is_growing)

    def __bool__(self) -> bool:
        return bool(self.growing)

    def to_dict(self) -> dict[str, Any]:
        """All of it as dicts, lists, texts and numbers, for JSON."""

        def plain(trend: Trend) -> dict[str, Any]:
            return {
                "what": trend.what,
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
        rounds = len(self.total.bytes)
        if not self:
            last = human_bytes(self.total.bytes[-1])
            return f"memrt.Growth: nothing grows in {rounds} rounds; {last} are left"
        growing = [*self.growing, *(trend for trend in self.scopes if trend.is_growing)]
        title = f"memrt.Growth: {plural(len(self.growing), 'place')} of birth in {rounds} rounds"
        lines = [line for trend in growing for line in trend._lines()]
        return "\n".join([f"{title}, and the scopes of these:", *lines])


def _by(rounds: list[list[LiveBuffer]], key: Callable[[LiveBuffer], str | None]) -> list[Trend]:
    """Trends of what buffers have in common; those without are left out."""
    series: defaultdict[str, list[int]] = defaultdict(lambda: [0] * len(rounds))
    for number, buffers in enumerate(rounds):
        for buffer in buffers:
            what = key(buffer)
            if what is not None:
                series[what][number] += buffer.size
    trends = [_trend(what, values) for what, values in series.items()]
    return sorted(trends, key=lambda trend: -trend.slope)


def _with_holders(trends: list[Trend], buffers: list[LiveBuffer]) -> list[Trend]:
    """The same, with who holds the newest of those buffers at each of the first that grow."""
    newest = {_place_of(buffer): buffer for buffer in buffers}  # oldest first
    growing = [trend.what for trend in trends if trend.is_growing][:_HELD]
    return [
        replace(trend, newest=held(newest[trend.what])) if trend.what in growing else trend
        for trend in trends
    ]


def _place_of(buffer: LiveBuffer) -> str:
    return "a place not known" if buffer.place is None else str(buffer.place)


def _scope_of(buffer: LiveBuffer) -> str | None:
    return None if buffer.scope is None else f"scope {buffer.scope}"


def growth(
    function: Callable[..., object], *args: object, rounds: int = 24, **kwargs: object
) -> Growth:
    """Run a function again and again and report the places of birth whose live bytes rise.

    Garbage is collected after each round. What counts is the second half of the rounds, so that a
    cache that fills and then stays as it is does not grow; and a rise must be steadier than chance
    would have it in one of a hundred cases. The result of the function is dropped. Of the five
    steepest places it is told who holds their newest buffer.

    :param function: called with `args` and `kwargs` in each round.
    :param rounds: at least 12.
    :raises ValueError: when there are fewer rounds than can show a trend.
    """
    if rounds < _ROUNDS_MIN:
        raise ValueError(f"rounds must be at least {_ROUNDS_MIN} to show a trend, not {rounds}")
    found = run_rounds(lambda: function(*args, **kwargs), rounds)
    places = _with_holders(_by(found, _place_of), found[-1])
    total = [sum(buffer.size for buffer in buffers) for buffers in found]
    return Growth(tuple(places), tuple(_by(found, _scope_of)), _trend("all", total))
