"""Levels of watching: how a process is told what memrt is to know of each block."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from subjects import Subject

OFF, SCOPE, PEAK, LISTED = "off", "in a scope", "exact peak", "listed"
SAMPLED, PYTHON, NATIVE = "sampled", "Python sites", "native sites"
FRAMES, CALLS, SAMPLE = 16, 8, "512K"  # of Python and of native code; bytes to one of a sample
NO_FRAMES = {"MEMRT_TRACK": "1", "MEMRT_TRACK_FRAMES": "0"}
ALL_FRAMES = {"MEMRT_TRACK": "1", "MEMRT_TRACK_FRAMES": str(FRAMES)}


@dataclass(frozen=True)
class Level:
    """What is asked of memrt."""

    variables: Mapping[str, str] = field(default_factory=dict)  # of the environment
    scope: bool = False  # whether all is made in one
    in_c: bool = True  # whether it means something where there is no interpreter

    def subject(self, name: str, kind: str, **needs: object) -> Subject:
        """A process at this level."""
        return Subject(name, kind, {"scope": self.scope, **needs}, variables=self.variables)


LEVELS = {
    OFF: Level(),
    SCOPE: Level(scope=True),
    PEAK: Level({"MEMRT_PEAK": "exact"}),
    SAMPLED: Level({**ALL_FRAMES, "MEMRT_TRACK_SAMPLE": SAMPLE}),
    LISTED: Level(NO_FRAMES),
    PYTHON: Level(ALL_FRAMES, in_c=False),
    NATIVE: Level({**NO_FRAMES, "MEMRT_TRACK_NATIVE": str(CALLS)}),
}
ABOUT = (
    f"`{SCOPE}`: a scope is entered. `{PEAK}`: by `MEMRT_PEAK`. `{LISTED}`: all births are tracked "
    f"without calls, `{PYTHON}`: with {FRAMES} calls of Python, `{NATIVE}`: with {CALLS} native "
    f"calls. `{SAMPLED}`: one birth in about {SAMPLE} bytes is, with {FRAMES} calls of Python."
)
