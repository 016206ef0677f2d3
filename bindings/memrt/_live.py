"""Tracking: which buffers are live, since when."""

from __future__ import annotations

from dataclasses import dataclass
from types import TracebackType

from memrt import _memrt

_KINDS = {1: "inline", 2: "adopted", 3: "resizable", 4: "block"}


@dataclass(frozen=True, slots=True)
class LiveBuffer:
    """One buffer that was live when :func:`live` was called."""

    id: int
    """Serial number, unique in the process, in order of birth."""
    size: int
    """Bytes."""
    refcount: int
    """References at that moment."""
    name: str | None
    """Its name, if it was given one."""
    age: float
    """Seconds since birth."""
    thread: int
    """The operating system's number of the thread of birth."""
    policy: str
    """Name of its policy; empty when the policy is gone."""
    kind: str
    """'inline', 'adopted', 'resizable', or 'block' for one known by its data pointer alone."""
    address: int
    """Address of the first byte."""


def live() -> list[LiveBuffer]:
    """The live buffers born while tracking was on, oldest first."""
    return [_buffer(*row) for row in _memrt.live()]


def _buffer(
    serial: int,
    meminfo: int,
    data: int,
    size: int,
    refcount: int,
    age_ns: int,
    thread: int,
    policy: str,
    kind: int,
    name: str,
) -> LiveBuffer:
    return LiveBuffer(
        serial, size, refcount, name or None, age_ns / 1e9, thread, policy, _KINDS[kind], data
    )


class tracking:  # noqa: N801 - reads as a verb where it is used
    """Context manager: buffers born inside, on any thread, are listed by :func:`live`.

    They stay listed until they die, also after the block. May be nested; tracking ends with the
    outermost block, unless it was on before.
    """

    def __init__(self) -> None:
        self._before: list[bool] = []

    def __enter__(self) -> tracking:
        self._before.append(True)  # first: what is turned on must be turned off
        self._before[-1] = _memrt.set_tracking(True)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None = None,
        error: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None:
        _memrt.set_tracking(self._before.pop())
