"""Options that decide how thoroughly a part is measured."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Options:
    """The choices of the command line."""

    quick: bool = False
    rounds: int | None = None  # rounds of every part; None: the default of the part
    uncounted: str | None = None  # path of a libmemrt built without counters
    instructions: bool = False  # also count instructions

    def rounds_of(self, complete: int, quick: int) -> int:
        """Return the rounds of a part, given its defaults for a complete and a quick run."""
        return self.rounds or (quick if self.quick else complete)
