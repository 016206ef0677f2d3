"""Decode the file of an event trace: the header, the records, and the events of all threads."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memrt._support.public import public
from memrt._trace.events import EVENT, FIELDS, STORED

MAGIC = b"MEMRTRC\n"
VERSION = 1
ORDER = 0x01020304

TEXT, SITE, POLICY, EVENTS, END = 1, 2, 3, 4, 5

_RECORDING = b'{"format": "memrt recording"'  # start of the files of `run --record`


@public("memrt.debug")
class TraceError(ValueError):
    """Exception for an invalid or unsupported trace file.

    The message states the problem and a remedy.

    Examples
    --------
    >>> import memrt, os
    >>> try:
    ...     memrt.debug.Trace(os.devnull)
    ... except memrt.debug.TraceError as error:
    ...     print(error)
    '/dev/null' is empty: record a trace with `python -m memrt trace SCRIPT`
    """


@dataclass(frozen=True)
class Header:
    """Contents of the header of a file."""

    order: str
    size: int
    process: int
    began: int
    last: int
    library: str


class Tables:
    """Contents of the records of a file."""

    def __init__(self) -> None:
        self.texts: dict[int, str] = {}
        self.frames: dict[int, list[tuple[int, int, int, int]]] = {}
        self.policies: dict[int, tuple[int, int, int, int]] = {}
        self.pieces: list[NDArray[Any]] = []
        self.threads: list[int] = []
        self.end: tuple[int, int, int, int] | None = None
        self.cut = False


def read_trace_file(path: str) -> tuple[Header, Tables]:
    """Read the header and all complete records of a file.

    Raises
    ------
    TraceError
        The file is not a trace, is damaged, or has an unsupported version.
    OSError
        The file cannot be read.
    """
    with open(path, "rb") as file:
        data = file.read()
    header = _read_header(path, data)
    return header, _read_records(path, data, header)


def collect_events(tables: Tables, order: str) -> NDArray[Any]:
    """Return the events of all threads, ordered by time. Removes the pieces from the tables."""
    lengths = [len(piece) for piece in tables.pieces]
    events = np.empty(sum(lengths), EVENT)
    at = 0
    for piece, thread in zip(tables.pieces, tables.threads, strict=True):
        part = events[at : at + len(piece)]
        for name in FIELDS:
            part[name] = piece[name]
        part["thread"] = thread
        at += len(piece)
    tables.pieces.clear()  # the pieces keep the bytes of the file alive
    times = events["time"]
    if len(events) and (times[1:] < times[:-1]).any():
        events = events[np.argsort(times, kind="stable")]
    return events


def _read_header(path: str, data: bytes) -> Header:
    if data.startswith(_RECORDING):
        raise TraceError(
            f"{path!r} is a recording, not a trace: use `python -m memrt report` for recordings"
        )
    if data[: len(MAGIC)] != MAGIC:
        what = "is empty" if not data else "is not a trace of memrt"
        raise TraceError(f"{path!r} {what}: record a trace with `python -m memrt trace SCRIPT`")
    if len(data) < 64:
        raise TraceError(f"{path!r} was cut off in the header: record the trace again")
    order = _byte_order(path, data)
    version, header_size, event_size = struct.unpack_from(f"{order}3I", data, 12)
    if version != VERSION:
        newer = "a newer" if version > VERSION else "another"
        raise TraceError(
            f"{path!r} must have format version {VERSION}, got {version}: read the trace with "
            f"{newer} memrt"
        )
    process, began, last, library = struct.unpack_from(f"{order}3Q16s", data, 24)
    if header_size < 64 or header_size % 8 or event_size != STORED.itemsize:
        raise _damaged(path, 16)
    text = library.rstrip(b"\0").decode("utf-8", "replace")
    return Header(order, header_size, process, began, last, text)


def _byte_order(path: str, data: bytes) -> str:
    for order in "<>":
        if struct.unpack_from(f"{order}I", data, 8)[0] == ORDER:
            return order
    raise _damaged(path, 8)


def _damaged(path: str, at: int) -> TraceError:
    return TraceError(f"{path!r} is damaged at byte {at}: record the trace again")


def _read_records(path: str, data: bytes, header: Header) -> Tables:
    tables, at, size = Tables(), header.size, len(data)
    head = struct.Struct(f"{header.order}2I")
    while at + 8 <= size:
        kind, length = head.unpack_from(data, at)
        if length % 8:
            raise _damaged(path, at)
        if at + 8 + length > size:
            break
        try:
            _read_record(tables, kind, data, at + 8, length, header.order)
        except (struct.error, ValueError) as error:
            raise _damaged(path, at) from error
        at += 8 + length
    tables.cut = at != size
    return tables


def _read_record(tables: Tables, kind: int, data: bytes, at: int, length: int, order: str) -> None:
    """Read one record into the tables. A record of an unknown kind is skipped.

    Raises
    ------
    ValueError
        The record is malformed.
    """
    if kind == EVENTS:
        thread, count = _numbers(f"{order}2I", data, at, length)
        _require(length == 8 + count * STORED.itemsize)
        dtype = STORED.newbyteorder(order)  # type: ignore[arg-type]
        tables.pieces.append(np.frombuffer(data, dtype, count, at + 8))
        tables.threads.append(thread)
    elif kind == TEXT:
        number, size = _numbers(f"{order}2I", data, at, length)
        _require(size <= length - 8)
        tables.texts[number] = data[at + 8 : at + 8 + size].decode("utf-8", "replace")
    elif kind == SITE:
        number, count = _numbers(f"{order}2I", data, at, length)
        _require(length == 8 + count * 24)
        frames = struct.iter_unpack(f"{order}2I2Q", data[at + 8 : at + length])
        tables.frames[number] = list(frames)
    elif kind == POLICY:
        number, name, scope, index, alignment = _numbers(f"{order}4IQ", data, at, length)
        tables.policies[number] = (name, scope, index, alignment)
    elif kind == END:
        tables.end = _numbers(f"{order}4Q", data, at, length)


def _numbers(form: str, data: bytes, at: int, length: int) -> tuple[Any, ...]:
    _require(struct.calcsize(form) <= length)
    return struct.unpack_from(form, data, at)


def _require(holds: bool) -> None:
    if not holds:
        raise ValueError
