"""Write event traces and recordings as gzipped profile.proto: pprof, Pyroscope, Parca.

The file is a `Profile` message of github.com/google/pprof/proto/profile.proto. Its sample types are
the types of Go's heap profiles. Memory in use is the memory at the peak.
"""

from __future__ import annotations

import gzip
import os
import re
from collections.abc import Iterable, Sequence
from typing import IO, NamedTuple

import numpy as np

from memrt import __version__
from memrt._profile.recording import Document
from memrt._trace.reader import Trace
from memrt._tracking.sites import Frame
from memrt._tracking.user_code import program_frames
from memrt.commands.formats.protobuf import field, packed

SAMPLE_TYPES = (
    ("inuse_space", "bytes"),
    ("inuse_objects", "count"),
    ("alloc_space", "bytes"),
    ("alloc_objects", "count"),
)
_COMMENTS = (
    f"memrt {__version__}",
    "inuse_space and inuse_objects: at the moment with the most live bytes",
)

# Field numbers of the messages.
_SAMPLE_TYPE, _SAMPLE, _MAPPING, _LOCATION, _FUNCTION, _STRINGS = 1, 2, 3, 4, 5, 6
_TIME, _DURATION, _PERIOD_TYPE, _PERIOD, _COMMENT, _DEFAULT_TYPE = 9, 10, 11, 12, 13, 14
_TYPE, _UNIT = 1, 2
_LOCATIONS, _VALUES, _LABEL = 1, 2, 3
_KEY, _TEXT = 1, 2
_ID, _MAPPING_ID, _LINE = 1, 2, 4
_FUNCTION_ID, _LINE_NUMBER = 1, 2
_NAME, _FILE = 2, 4
_MAPPING_FILE, _HAS_FUNCTIONS, _HAS_FILES, _HAS_LINES = 5, 7, 8, 9


class _Call(NamedTuple):
    function: str
    file: str
    line: int


_UNKNOWN = _Call("unknown source line", "", 0)


class _Profile:
    """The tables of a profile: each text, function and location is stored once."""

    def __init__(self) -> None:
        self._texts: dict[str, int] = {"": 0}
        self._functions: dict[tuple[str, str], int] = {}
        self._locations: dict[_Call, int] = {}
        self._samples: list[bytes] = []

    def add(
        self, calls: Sequence[_Call], labels: dict[str, str | None], values: Iterable[int]
    ) -> None:
        """Add the values of SAMPLE_TYPES for one call stack, innermost call first."""
        sample = packed(_LOCATIONS, map(self._location, calls)) + packed(_VALUES, values)
        for key, text in labels.items():
            if text is not None:
                label = field(_KEY, self._text(key)) + field(_TEXT, self._text(text))
                sample += field(_LABEL, label)
        self._samples.append(field(_SAMPLE, sample))

    def encoded(self, program: str, began: float, seconds: float) -> bytes:
        """Return the message.

        Functions have no system name: pprof would take names like <module> for templates of C++.
        """
        parts = [field(_SAMPLE_TYPE, self._type(*each)) for each in SAMPLE_TYPES]
        parts += [*self._samples, self._mapping(program)]
        parts += [self._location_row(call, id) for call, id in self._locations.items()]
        parts += [
            field(
                _FUNCTION,
                field(_ID, id) + field(_NAME, self._text(name)) + field(_FILE, self._text(file)),
            )
            for (name, file), id in self._functions.items()
        ]
        parts += [
            field(_TIME, round(began * 1e9)),
            field(_DURATION, round(seconds * 1e9)),
            field(_PERIOD_TYPE, self._type("space", "bytes")),
            field(_PERIOD, 1),
            packed(_COMMENT, map(self._text, _COMMENTS)),
            field(_DEFAULT_TYPE, self._text(SAMPLE_TYPES[0][0])),
        ]
        return b"".join([*parts, *(field(_STRINGS, text) for text in self._texts)])

    def _text(self, text: str) -> int:
        return self._texts.setdefault(text, len(self._texts))

    def _type(self, type: str, unit: str) -> bytes:
        return field(_TYPE, self._text(type)) + field(_UNIT, self._text(unit))

    def _location(self, call: _Call) -> int:
        self._functions.setdefault(call[:2], len(self._functions) + 1)
        return self._locations.setdefault(call, len(self._locations) + 1)

    def _location_row(self, call: _Call, id: int) -> bytes:
        function = field(_FUNCTION_ID, self._functions[call[:2]])
        line = function + field(_LINE_NUMBER, call.line)
        return field(_LOCATION, field(_ID, id) + field(_MAPPING_ID, 1) + field(_LINE, line))

    def _mapping(self, program: str) -> bytes:
        """Return the mapping of all locations. Readers look for no symbols in the mapping."""
        known = field(_HAS_FUNCTIONS, 1) + field(_HAS_FILES, 1) + field(_HAS_LINES, 1)
        return field(_MAPPING, field(_ID, 1) + field(_MAPPING_FILE, self._text(program)) + known)


def write(trace: Trace, file: IO[bytes]) -> None:
    profile = _Profile()
    events = trace._by_buffer
    sites = events.allocation_values("site").astype(np.uint64)
    policies = events.allocation_values("policy").astype(np.uint64)
    pairs, keys = np.unique(sites << np.uint64(32) | policies, return_inverse=True)
    keys, peak = keys.reshape(-1), trace.peak_event + 1
    sums = [
        np.bincount(keys[:end], values[:end], len(pairs)).round().astype(np.int64)
        for values, end in (
            (events.changes, peak),
            (events.count_changes, peak),
            (np.maximum(events.changes, 0), None),
            (np.maximum(events.count_changes, 0), None),
        )
    ]
    for pair, values in zip(pairs.tolist(), np.transpose(sums).clip(0).tolist(), strict=True):
        if any(values):
            known = trace.policies.get(pair & (1 << 32) - 1)
            labels = {} if known is None else {"scope": known.scope, "policy": known.name}
            profile.add(_calls_of_trace(trace, pair >> 32), labels, values)
    name = os.path.basename(os.fsdecode(trace.path))
    _finish(file, profile.encoded(name, trace.began.timestamp(), trace.duration))


def _calls_of_trace(trace: Trace, site: int) -> list[_Call]:
    known = trace.sites.get(site)
    frames = () if known is None else program_frames(known.frames)
    return [_call(frame) for frame in frames] or [_UNKNOWN]


def _call(frame: Frame) -> _Call:
    return _Call(frame.function or (str(frame) if frame.is_native else "?"),
                 frame.file or "", frame.line)  # fmt: skip


def write_recording(documents: Sequence[Document], file: IO[bytes]) -> None:
    """Write a profile of all processes of a recording, each with the label `process`."""
    profile = _Profile()
    for document in documents:
        process = str(document["pid"]) if len(documents) > 1 else None
        calls = _calls_of_recording(document)
        for site, scope, count, nbytes in document["highest"]["rows"]:
            labels = {"scope": scope, "process": process}
            profile.add(calls.get(site, [_UNKNOWN]), labels, (nbytes, count, 0, 0))
        for site, count, nbytes in document["total"]:
            profile.add(calls.get(site, [_UNKNOWN]), {"process": process}, (0, 0, nbytes, count))
    first = documents[0]
    program = os.path.basename(first["program"][0]) if first["program"] else ""
    _finish(file, profile.encoded(program, first["started"], first["seconds"]))


_PYTHON_CALL = re.compile(r"(.*?) at (.*):(\d+)", re.DOTALL)
_NATIVE_CALL = re.compile(r"(.*)\+0x[0-9a-f]+ in (.*)", re.DOTALL)


def _calls_of_recording(document: Document) -> dict[int, list[_Call]]:
    """Return the calls of each site, innermost call first."""
    calls = [_parsed(text) for text in document["frames"]]
    return {
        site: [calls[number] for number in reversed(numbers)] or [_UNKNOWN]
        for site, _, numbers in document["sites"]
    }


def _parsed(text: str) -> _Call:
    """Return the parts of a call that a recording has as text."""
    found = _PYTHON_CALL.fullmatch(text)
    if found:
        return _Call(found[1], found[2], int(found[3]))
    found = _NATIVE_CALL.fullmatch(text)
    return _Call(found[1] or text, found[2], 0) if found else _Call(text, "", 0)


def _finish(file: IO[bytes], message: bytes) -> None:
    file.write(gzip.compress(message, mtime=0))
