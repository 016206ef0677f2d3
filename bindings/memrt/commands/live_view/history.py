"""Remember the live bytes of the last updates: growth per second, and a line of bars."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import TypeVar

from memrt._support.units import human_bytes

WIDTH = 12  # number of bars
_SECONDS = 10.0  # time span of the growth
_BARS, _ASCII_BARS = "▁▂▃▄▅▆▇█", ".:-=+*#@"

Key = TypeVar("Key")


class History:
    """Live bytes over time, by row of the view."""

    def __init__(self) -> None:
        self._points: dict[object, deque[tuple[float, int]]] = {}

    def update(self, seen: Mapping[Key, tuple[float, int]]) -> None:
        """Add the time and the live bytes of each row, and forget all other rows.

        A row whose time has not changed gets no point.
        """
        self._points = {key: self._points.get(key) or deque(maxlen=256) for key in seen}
        for key, point in seen.items():
            points = self._points[key]
            if not points or points[-1][0] < point[0]:
                points.append(point)

    def rate(self, key: object) -> float | None:
        """Return the growth in bytes per second over the last ten seconds; None: not known yet."""
        points = list(self._points.get(key, []))
        if len(points) < 2:
            return None
        time, live = points[-1]
        before, first = next(point for point in points if point[0] >= time - _SECONDS)
        if before == time:  # no update for longer than the span
            before, first = points[-2]
        return (live - first) / (time - before)

    def bars(self, key: object, *, ascii_only: bool = False) -> str:
        """Return a bar for each of the last twelve updates, as parts of the largest."""
        steps = _ASCII_BARS if ascii_only else _BARS
        values = [live for _, live in self._points.get(key, ())][-WIDTH:]
        top = max(values, default=0)
        return "".join(steps[min(value * 8 // top, 7) if top else 0] for value in values)


def rate_text(rate: float | None) -> str:
    """Return a growth as text, such as "+1.5 MiB/s"; empty if not known."""
    if rate is None:
        return ""
    size = round(rate)
    return f"{'+' if size > 0 else ''}{human_bytes(size)}/s" if size else "0"
