"""Write event traces for Perfetto: tracks of live bytes, marks and failures as instant events.

The file is a `Trace` message of Perfetto's protobuf schema. Only a few fields are used.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO

import numpy as np
from numpy.typing import NDArray

from memrt._support.units import human_bytes
from memrt._trace.events import FAILURE
from memrt._trace.reader import Trace
from memrt._tracking.protobuf import field
from memrt.commands.output.progress import with_progress

MOST_POINTS = 100_000
"""Points of one track. A longer track keeps the lowest, highest and last point of each run."""
MOST_SCOPES = 50
"""Number of scopes with a track of their own: those with the most live bytes at the peak."""

# Field numbers of the messages of perfetto/protos/perfetto/trace.
_PACKET = 1
_TIMESTAMP, _SEQUENCE, _TRACK_EVENT, _TRACK_DESCRIPTOR = 8, 10, 11, 60
_UUID, _NAME, _PROCESS, _PARENT, _COUNTER = 1, 2, 3, 5, 8
_PID, _PROCESS_NAME = 1, 6
_UNIT, _UNIT_BYTES = 3, 3
_TYPE, _TRACK, _EVENT_NAME, _VALUE = 9, 11, 23, 30
_INSTANT, _COUNTER_EVENT = 3, 4

_PROCESS_TRACK, _LIVE_TRACK, _REFUSED_TRACK, _FIRST_SCOPE = 1, 2, 3, 10


def write(trace: Trace, file: IO[bytes]) -> None:
    base = round(trace.began.timestamp() * 1e9)
    for packet in _packets(trace, base):
        file.write(field(_PACKET, packet))


def _packets(trace: Trace, base: int) -> Iterator[bytes]:
    process = field(_PID, trace.process) + field(_PROCESS_NAME, f"memrt {trace.library}")
    yield _track(_PROCESS_TRACK, "marks", field(_PROCESS, process))
    yield from _counter(trace, base, _LIVE_TRACK, "live bytes", np.arange(len(trace)), trace.live)
    yield from _scopes(trace, base)
    for mark in trace.marks:
        yield _moment(base + round(mark.time * 1e9), _PROCESS_TRACK, mark.name)
    yield from _refusals(trace, base)


def _scopes(trace: Trace, base: int) -> Iterator[bytes]:
    keys, names = trace._names("scope")
    numbers = {name: number for number, name in enumerate(names)}
    largest = [usage.name for usage in trace.usage("scope")][:MOST_SCOPES]
    for at, name in enumerate(with_progress(largest, len(largest), "writing")):
        chosen = np.flatnonzero(keys == numbers[name])
        live = np.cumsum(trace._by_buffer.changes[chosen])
        yield from _counter(trace, base, _FIRST_SCOPE + at, f"live bytes: {name}", chosen, live)


def _refusals(trace: Trace, base: int) -> Iterator[bytes]:
    refused = trace.events[trace.events["type"] == FAILURE][:MOST_POINTS]
    if len(refused):
        yield _track(_REFUSED_TRACK, "refused requests", field(_PARENT, _PROCESS_TRACK))
    for event in refused:
        name = f"refused: {human_bytes(int(event['nbytes']))}"
        yield _moment(base + int(event["time"]), _REFUSED_TRACK, name)


def _counter(
    trace: Trace,
    base: int,
    uuid: int,
    name: str,
    events: NDArray[np.intp],
    values: NDArray[np.int64],
) -> Iterator[bytes]:
    counter = field(_COUNTER, field(_UNIT, _UNIT_BYTES))
    yield _track(uuid, name, field(_PARENT, _PROCESS_TRACK) + counter)
    points = thinned(values, MOST_POINTS)
    times = trace.events["time"][events[points]].tolist()
    for time, value in zip(times, values[points].tolist(), strict=True):
        sample = field(_TYPE, _COUNTER_EVENT) + field(_TRACK, uuid) + field(_VALUE, value)
        yield _packet(base + time, field(_TRACK_EVENT, sample))


def thinned(values: NDArray[np.int64], most: int) -> NDArray[np.intp]:
    """Return ascending indices of about `most` values at most.

    A longer array keeps the lowest, highest and last value of each run, so that no peak is missing.
    """
    if len(values) <= most:
        return np.arange(len(values))
    few = -(-len(values) * 3 // most)
    last = len(values) - 1
    grid = np.pad(values, (0, -len(values) % few), "edge").reshape(-1, few)
    starts = np.arange(0, len(values), few)
    chosen = [starts + grid.argmin(1), starts + grid.argmax(1), starts + few - 1]
    return np.unique(np.minimum(np.concatenate(chosen), last))


def _track(uuid: int, name: str, more: bytes) -> bytes:
    descriptor = field(_UUID, uuid) + field(_NAME, name) + more
    return field(_TRACK_DESCRIPTOR, descriptor) + field(_SEQUENCE, 1)


def _moment(time: int, track: int, name: str) -> bytes:
    event = field(_TYPE, _INSTANT) + field(_TRACK, track) + field(_EVENT_NAME, name)
    return _packet(time, field(_TRACK_EVENT, event))


def _packet(time: int, content: bytes) -> bytes:
    return field(_TIMESTAMP, time) + content + field(_SEQUENCE, 1)
