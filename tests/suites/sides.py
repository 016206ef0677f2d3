"""The configurations of a suite run: unmodified NumPy, and the modes of memrt."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, eq=False)
class Side:
    """A configuration, as settings in the environment."""

    name: str
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_stock(self) -> bool:
        return not self.options


def _memrt(name: str, check: int, cache: int) -> Side:
    return Side(name, {"MEMRT_CHECK": str(check), "MEMRT_CACHE": str(cache)})


STOCK = Side("stock")

# Checking mode has no caches at any value of MEMRT_CACHE, so one side is enough.
SIDES = (
    STOCK,
    _memrt("release", 0, 1),
    _memrt("checking", 1, 0),
    _memrt("release-uncached", 0, 0),
)
QUICK_SIDES = SIDES[:3]
