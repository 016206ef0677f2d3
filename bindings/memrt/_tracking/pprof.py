"""Build gzipped profile.proto messages, which pprof, Pyroscope and Parca read.

A file is a `Profile` message of github.com/google/pprof/proto/profile.proto. Its sample types are
the types of Go's heap profiles.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from memrt import __version__
from memrt._tracking.protobuf import field, packed
from memrt._tracking.sites import Frame
from memrt._tracking.user_code import program_frames

SAMPLE_TYPES = (
    ("inuse_space", "bytes"),
    ("inuse_objects", "count"),
    ("alloc_space", "bytes"),
    ("alloc_objects", "count"),
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


class Call(NamedTuple):
    """A call in a call stack."""

    function: str
    file: str
    line: int


UNKNOWN = Call("unknown source line", "", 0)


class Profile:
    """The tables of a profile: each text, function and location is stored once.

    Parameters
    ----------
    moment : str
        Moment of the samples `inuse_space` and `inuse_objects`, for a comment in the profile.
    """

    def __init__(self, moment: str) -> None:
        self._moment = moment
        self._texts: dict[str, int] = {"": 0}
        self._functions: dict[tuple[str, str], int] = {}
        self._locations: dict[Call, int] = {}
        self._samples: list[bytes] = []

    def add(
        self, calls: Sequence[Call], labels: Mapping[str, str | None], values: Iterable[int]
    ) -> None:
        """Add the values of SAMPLE_TYPES for one call stack, innermost call first."""
        sample = packed(_LOCATIONS, map(self._location, calls)) + packed(_VALUES, values)
        for key, text in labels.items():
            if text is not None:
                label = field(_KEY, self._text(key)) + field(_TEXT, self._text(text))
                sample += field(_LABEL, label)
        self._samples.append(field(_SAMPLE, sample))

    def encoded(self, program: str, began: float, seconds: float, period: int = 1) -> bytes:
        """Return the gzipped message. `period` is the number of bytes of one sample.

        Functions have no system name: pprof would take names like <module> for templates of C++.
        """
        comments = (f"memrt {__version__}", f"inuse_space and inuse_objects: {self._moment}")
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
            field(_PERIOD, period),
            packed(_COMMENT, map(self._text, comments)),
            field(_DEFAULT_TYPE, self._text(SAMPLE_TYPES[0][0])),
        ]
        parts += [field(_STRINGS, text) for text in self._texts]
        return gzip.compress(b"".join(parts), mtime=0)

    def _text(self, text: str) -> int:
        return self._texts.setdefault(text, len(self._texts))

    def _type(self, type: str, unit: str) -> bytes:
        return field(_TYPE, self._text(type)) + field(_UNIT, self._text(unit))

    def _location(self, call: Call) -> int:
        self._functions.setdefault(call[:2], len(self._functions) + 1)
        return self._locations.setdefault(call, len(self._locations) + 1)

    def _location_row(self, call: Call, id: int) -> bytes:
        function = field(_FUNCTION_ID, self._functions[call[:2]])
        line = function + field(_LINE_NUMBER, call.line)
        return field(_LOCATION, field(_ID, id) + field(_MAPPING_ID, 1) + field(_LINE, line))

    def _mapping(self, program: str) -> bytes:
        """Return the mapping of all locations. Readers look for no symbols in the mapping."""
        known = field(_HAS_FUNCTIONS, 1) + field(_HAS_FILES, 1) + field(_HAS_LINES, 1)
        return field(_MAPPING, field(_ID, 1) + field(_MAPPING_FILE, self._text(program)) + known)


def calls_of(frames: Sequence[Frame]) -> list[Call]:
    """Return the calls of a site, innermost call first, without the calls of the runner."""
    return [_call(frame) for frame in program_frames(frames)] or [UNKNOWN]


def _call(frame: Frame) -> Call:
    return Call(frame.function or (str(frame) if frame.is_native else "?"),
                frame.source or frame.file or "", frame.line)  # fmt: skip
