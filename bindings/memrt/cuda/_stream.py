"""Streams: memrt's own, and those of other libraries."""

from __future__ import annotations

import operator
from contextlib import suppress
from typing import Any

from memrt import _memrt

NONE = 0
LEGACY = 1
_PER_THREAD = 2
_TOP = 2**64


class Stream:
    """A stream of a device, which does not wait for the legacy stream.

    It ends when nobody holds it: neither this object, nor an array whose memory is used in it.

    Args:
        device: ordinal of the device; None: that of the thread's current context, else the first.

    Raises:
        CudaError: there is no driver, or it refused.
    """

    __slots__ = ("__weakref__", "_device", "_handle")

    def __init__(self, device: int | None = None) -> None:
        self._handle = 0
        self._device = device_number(device)
        self._handle = _memrt.cuda_stream_new(self._device)

    @property
    def handle(self) -> int:
        """The driver's handle."""
        return self._handle

    def __cuda_stream__(self) -> tuple[int, int]:
        """Version 0 of the protocol, and the handle: what other libraries ask streams for."""
        return 0, self._handle

    def synchronize(self) -> None:
        """Wait until all work in it is done; the GIL is let go.

        Raises:
            CudaError: the driver refused, as after an error in a kernel.
        """
        _memrt.cuda_stream_synchronize(self._device, self._handle)

    def __del__(self) -> None:
        if self._handle:
            with suppress(_memrt.CudaError):  # as when the driver ended first
                _memrt.cuda_stream_free(self._device, self._handle)

    def __repr__(self) -> str:
        return f"<memrt.cuda.Stream {self._handle:#x}>"


def device_number(device: int | None) -> int:
    """The ordinal of a device, -1 for None.

    Raises:
        ValueError: it is negative, or beyond what a device can have.
    """
    if device is None:
        return -1
    number = operator.index(device)
    if not 0 <= number < 64:
        raise ValueError(f"a device is a number from 0 on, got {device!r}")
    return number


def stream_handle(stream: Any) -> int:
    """The handle of a stream that a caller gave; :data:`NONE` for None.

    Integers are handles: 1 the legacy stream, 2 that of the calling thread. An object is asked for
    ``__cuda_stream__``, or for what PyTorch, CuPy and Numba call its handle; with them 0 is the
    legacy stream.

    Raises:
        ValueError: for 0, which may mean either, and for a number that is no handle.
        TypeError: for what is no stream.
    """
    if stream is None:
        return NONE
    handle = _handle_of(stream)
    return LEGACY if handle == 0 else handle


def checked_handle(handle: object) -> int:
    """An integer as the handle of a stream; 0 is none.

    Raises:
        ValueError, TypeError: as :func:`stream_handle`.
    """
    if isinstance(handle, bool) or not isinstance(handle, int):
        raise TypeError(f"a stream is an integer, got {type(handle).__name__}")
    if handle == 0:
        raise ValueError("stream 0 is ambiguous: 1 is the legacy stream, 2 the one of the thread")
    if not 0 < handle < _TOP:
        raise ValueError(f"a stream is a positive number of 64 bits, got {handle}")
    return handle


def _handle_of(stream: Any) -> int:
    if isinstance(stream, int):
        return checked_handle(stream)
    if hasattr(stream, "__cuda_stream__"):
        return _object_handle(stream.__cuda_stream__()[1], stream)
    for name in ("cuda_stream", "ptr", "handle"):
        if hasattr(stream, name):
            handle = getattr(stream, name)
            return _object_handle(getattr(handle, "value", handle), stream)
    raise TypeError(f"{type(stream).__name__} is no stream: it has no __cuda_stream__")


def _object_handle(handle: object, stream: object) -> int:
    """Numba has None for 0, in a ``ctypes.c_void_p``."""
    if handle is None or (handle == 0 and type(handle) is int):
        return 0
    try:
        return checked_handle(handle)
    except (TypeError, ValueError) as error:
        kind = type(stream).__name__
        raise type(error)(f"the handle of {kind} is none: {error}") from None
