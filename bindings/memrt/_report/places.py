"""The places of birth of a recording: what the numbers of its sites stand for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from memrt._sites import Site, program_frames, site_of

MOST = 3000  # sites that are told apart in one recording


class Places:
    """Sites with their calls, each text of a call once."""

    def __init__(self, wanted: Iterable[int]) -> None:
        """Of the sites in `wanted`, the most important first, those that there is room for."""
        self._frames: dict[str, int] = {}
        self._rows: dict[int, list[Any]] = {}
        for number in wanted:
            if len(self._rows) >= MOST:
                break
            site = site_of(number)
            if site is not None and number not in self._rows:
                self._rows[number] = [number, str(site.place), self._calls(site)]

    def _calls(self, site: Site) -> list[int]:
        """The calls of the program, the outermost first."""
        frames = reversed(program_frames(site.frames))
        return [self._frames.setdefault(str(f), len(self._frames)) for f in frames]

    def number(self, site: int) -> int:
        """The number by which a recording has a site: 0 where it has none."""
        return site if site in self._rows else 0

    def to_dict(self) -> dict[str, Any]:
        """As a recording has them."""
        return {"frames": list(self._frames), "sites": list(self._rows.values())}
