"""Write event traces for speedscope: bytes by the call stack of the allocation."""

from __future__ import annotations

import io
import json
import os
from typing import IO, Any

import numpy as np

from memrt import __version__
from memrt._trace.reader import Trace
from memrt._tracking.sites import Frame
from memrt._tracking.user_code import program_frames

SCHEMA = "https://www.speedscope.app/file-format-schema.json"
_UNKNOWN = Frame("unknown source line", None, 0, 0, False)


class _Frames:
    """The frames of a speedscope file, each stored once."""

    def __init__(self) -> None:
        self.listed: list[dict[str, Any]] = []
        self._numbers: dict[tuple[str, str | None, int], int] = {}

    def number(self, frame: Frame) -> int:
        name = frame.function or (str(frame) if frame.is_native else "?")
        key = (name, frame.file, frame.line)
        if key not in self._numbers:
            self._numbers[key] = len(self.listed)
            listed: dict[str, Any] = {"name": name}
            if (file := frame.source or frame.file) is not None:
                listed["file"] = file
            if frame.line:
                listed["line"] = frame.line
            self.listed.append(listed)
        return self._numbers[key]


def write(trace: Trace, file: IO[bytes]) -> None:
    frames = _Frames()
    sites, keys = np.unique(trace._by_buffer.allocation_values("site"), return_inverse=True)
    keys = keys.reshape(-1)
    stacks = [_stack(trace, frames, int(site)) for site in sites]
    changes, peak = trace._by_buffer.changes, trace.peak_event + 1

    def profile(name: str, chosen: slice, weights: Any) -> dict[str, Any]:
        sums = np.bincount(keys[chosen], weights, len(stacks)).round().astype(np.int64).tolist()
        return _profile(name, [(s, w) for s, w in zip(stacks, sums, strict=True) if w > 0])

    content = {
        "$schema": SCHEMA,
        "name": os.path.basename(os.fsdecode(trace.path)),
        "exporter": f"memrt {__version__}",
        "activeProfileIndex": 0,
        "shared": {"frames": frames.listed},
        "profiles": [
            profile("live at the peak", slice(0, peak), changes[:peak]),
            profile("allocated in total", slice(None), np.maximum(changes, 0)),
            profile("live at the end", slice(None), changes),
        ],
    }
    text = io.TextIOWrapper(file, "utf-8", write_through=True)
    json.dump(content, text)
    text.detach()


def _stack(trace: Trace, frames: _Frames, site: int) -> list[int]:
    """Return the frame numbers of a site's calls in the program, outermost call first."""
    known = trace.sites.get(site)
    calls = (_UNKNOWN,) if known is None else program_frames(known.frames)
    native = [frame for frame in calls if frame.is_native]
    others = [frame for frame in calls if not frame.is_native]
    return [frames.number(frame) for frame in [*reversed(others), *reversed(native)]]


def _profile(name: str, weighted: list[tuple[list[int], int]]) -> dict[str, Any]:
    return {
        "type": "sampled",
        "name": name,
        "unit": "bytes",
        "startValue": 0,
        "endValue": sum(weight for _, weight in weighted),
        "samples": [stack for stack, _ in weighted],
        "weights": [weight for _, weight in weighted],
    }
