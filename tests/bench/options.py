"""How thoroughly a part is measured."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Options:
    """What the command line chose."""

    quick: bool = False
    rounds: int | None = None  # of every part; None: as the part finds right
    uncounted: str | None = None  # a libmemrt built without counters
    instructions: bool = False  # count instructions, too

    def rounds_of(self, complete: int, quick: int) -> int:
        """Rounds of a part that says how many it wants."""
        return self.rounds or (quick if self.quick else complete)
