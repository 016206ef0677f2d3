"""A timeline: what was live, cached and resident over time, in bounded memory."""

from __future__ import annotations

from typing import Any, NamedTuple

MOST_SAMPLES = 4096
SCOPES_IN_A_SAMPLE = 16

Scoped = list[tuple[str, int]]


class Sample(NamedTuple):
    """One reading."""

    t: float
    """Seconds since the start."""
    live: int
    """Bytes in use."""
    cached: int
    """Bytes kept for reuse."""
    resident: int
    """Bytes of the process that are in the machine's memory; -1: not known."""
    scoped: Scoped
    """Bytes in use by scope of birth, without those of the scopes inside of it: see largest()."""


class Timeline:
    """Samples in order of time.

    Where there would be more than MOST_SAMPLES, of two neighbours the one with more live bytes
    stays, so that no summit that was seen is lost.
    """

    def __init__(self) -> None:
        self.samples: list[Sample] = []
        self.halvings = 0

    def add(self, sample: Sample) -> None:
        """Append one; drops others where there are too many."""
        if len(self.samples) >= MOST_SAMPLES:
            self.samples = [
                max(self.samples[i : i + 2], key=lambda each: each.live)
                for i in range(0, len(self.samples), 2)
            ]
            self.halvings += 1
        self.samples.append(sample)

    def to_dict(self) -> dict[str, Any]:
        """As a recording has it: a list for each field, scopes by number."""
        numbers: dict[str, int] = {}
        scoped = [
            [[numbers.setdefault(path, len(numbers)), size] for path, size in each.scoped]
            for each in self.samples
        ]
        return {
            "t": [round(each.t, 6) for each in self.samples],
            "live": [each.live for each in self.samples],
            "cached": [each.cached for each in self.samples],
            "resident": [each.resident for each in self.samples],
            "scopes": list(numbers),
            "scoped": scoped,
            "halvings": self.halvings,
        }


def largest(scoped: Scoped) -> Scoped:
    """Those of a sample that are kept; what the others have together, as of no name."""
    found = sorted((each for each in scoped if each[1] > 0), key=lambda each: -each[1])
    rest = sum(size for _, size in found[SCOPES_IN_A_SAMPLE:])
    return [*found[:SCOPES_IN_A_SAMPLE], *([("", rest)] if rest else [])]
