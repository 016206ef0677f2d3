"""Observer levels: the settings that decide how much memrt records about each block."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from subjects import Subject

OFF, SCOPE, CLOSE, PEAK, LISTED = "off", "in a scope", "close peak", "exact peak", "listed"
SAMPLED, PYTHON, NATIVE = "sampled", "Python sites", "native sites"
FRAMES, CALLS, SAMPLE = 16, 8, "512K"  # Python frames, native frames, bytes per sample
NO_FRAMES = {"MEMRT_TRACK": "1", "MEMRT_TRACK_FRAMES": "0"}
ALL_FRAMES = {"MEMRT_TRACK": "1", "MEMRT_TRACK_FRAMES": str(FRAMES)}


@dataclass(frozen=True)
class Level:
    """The settings of one observer level."""

    variables: Mapping[str, str] = field(default_factory=dict)  # environment variables
    scope: bool = False  # allocate inside a scope
    in_c: bool = True  # the level also applies to C code without an interpreter

    def subject(self, name: str, kind: str, **needs: object) -> Subject:
        """Return a subject with a process at the level."""
        return Subject(name, kind, {"scope": self.scope, **needs}, variables=self.variables)


LEVELS = {
    OFF: Level(),
    SCOPE: Level(scope=True),
    CLOSE: Level({"MEMRT_PEAK": "close"}),
    PEAK: Level({"MEMRT_PEAK": "exact"}),
    SAMPLED: Level({**ALL_FRAMES, "MEMRT_TRACK_SAMPLE": SAMPLE}),
    LISTED: Level(NO_FRAMES),
    PYTHON: Level(ALL_FRAMES, in_c=False),
    NATIVE: Level({**NO_FRAMES, "MEMRT_TRACK_NATIVE": str(CALLS)}),
}
ABOUT = (
    f"`{SCOPE}`: inside a scope. `{CLOSE}`: with `MEMRT_PEAK=close`, as in `python -m memrt run`. "
    f"`{PEAK}`: with `MEMRT_PEAK=exact`. `{LISTED}`: all allocations are tracked without call "
    f"stacks, `{PYTHON}`: with {FRAMES} calls of Python, `{NATIVE}`: with {CALLS} native calls. "
    f"`{SAMPLED}`: one allocation in about {SAMPLE} bytes is tracked, with {FRAMES} calls of "
    "Python."
)
