"""Keep samples of live, cached and resident bytes over time, in bounded memory."""

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
    """Resident bytes of the process, or -1 if unknown."""
    scoped: Scoped
    """Bytes in use by scope of the allocation, without child scopes. See largest()."""


class Timeline:
    """Samples in order of time, at most MOST_SAMPLES.

    A full timeline is halved: of each two neighbours, the sample with more live bytes stays. The
    highest sample is therefore never lost.
    """

    def __init__(self) -> None:
        self.samples: list[Sample] = []
        self.halvings = 0

    def add(self, sample: Sample) -> None:
        """Append a sample. Halve a full timeline first."""
        if len(self.samples) >= MOST_SAMPLES:
            self.samples = [
                max(self.samples[i : i + 2], key=lambda each: each.live)
                for i in range(0, len(self.samples), 2)
            ]
            self.halvings += 1
        self.samples.append(sample)

    def to_dict(self) -> dict[str, Any]:
        """Return the timeline in the format of a recording: a list per field, scopes by number."""
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
    """Return the SCOPES_IN_A_SAMPLE largest scopes, and the sum of the rest under an empty name.

    Scopes with no live bytes are left out.
    """
    found = sorted((each for each in scoped if each[1] > 0), key=lambda each: -each[1])
    rest = sum(size for _, size in found[SCOPES_IN_A_SAMPLE:])
    return [*found[:SCOPES_IN_A_SAMPLE], *([("", rest)] if rest else [])]
