"""Create CUDA streams, and read the handles of streams from other libraries."""

from __future__ import annotations

import operator
from contextlib import suppress
from typing import Any

from memrt import _memrt
from memrt._support.public import public

NONE = 0
LEGACY = 1
_PER_THREAD = 2
_TOP = 2**64


@public("memrt.cuda")
class Stream:
    """CUDA stream of a device. The stream does not wait for the legacy stream.

    Parameters
    ----------
    device : int, optional
        Ordinal of the device. None: the device of the thread's current context, else the first
        device.

    Raises
    ------
    CudaError
        No driver is installed, or the driver reported an error.
    ValueError
        The ordinal is not from 0 to 63.

    Notes
    -----
    Ownership: arrays whose memory is used in the stream hold a reference to the Stream. The stream
    is destroyed after the last reference is gone.

    Examples
    --------
    >>> import memrt
    >>> stream = memrt.cuda.Stream()
    >>> memrt.cuda.empty(1000, stream=stream).stream == stream.handle
    True
    """

    __slots__ = ("__weakref__", "_device", "_handle")

    def __init__(self, device: int | None = None) -> None:
        self._handle = 0
        self._device = device_number(device)
        self._handle = _memrt.cuda_stream_new(self._device)

    @property
    def handle(self) -> int:
        """Handle of the stream in the driver."""
        return self._handle

    def __cuda_stream__(self) -> tuple[int, int]:
        """Return the stream for other libraries, by the CUDA stream protocol.

        Returns
        -------
        tuple of int
            Version of the protocol, 0, and the handle.
        """
        return 0, self._handle

    def synchronize(self) -> None:
        """Wait until all work in the stream is done. Releases the GIL while waiting.

        Raises
        ------
        CudaError
            The driver reported an error, for example an earlier error in a kernel.
        """
        _memrt.cuda_stream_synchronize(self._device, self._handle)

    def __del__(self) -> None:
        if self._handle:
            with suppress(_memrt.CudaError):  # the driver may have shut down already
                _memrt.cuda_stream_free(self._device, self._handle)

    def __repr__(self) -> str:
        return f"<memrt.cuda.Stream {self._handle:#x}>"


def device_number(device: int | None) -> int:
    """Return the ordinal of a device, or -1 for None.

    Raises
    ------
    ValueError
        The ordinal is negative, or 64 or more.
    """
    if device is None:
        return -1
    number = operator.index(device)
    if not 0 <= number < 64:
        raise ValueError(f"device must be a number from 0 to 63, got {device!r}")
    return number


def stream_handle(stream: Any) -> int:
    """Return the handle of a stream argument, or :data:`NONE` for None.

    An integer is a handle: 1 is the legacy stream, 2 the stream of the calling thread. The handle
    of an object comes from ``__cuda_stream__``, or from the attribute that PyTorch, CuPy or Numba
    uses for the handle. A handle of 0 from an object means the legacy stream.

    Raises
    ------
    ValueError
        The integer is 0, which is ambiguous, or is not a valid handle.
    TypeError
        The argument is not a stream.
    """
    if stream is None:
        return NONE
    handle = _handle_of(stream)
    return LEGACY if handle == 0 else handle


def checked_handle(handle: object) -> int:
    """Verify an integer as the handle of a stream and return the integer. 0 is not a handle.

    Raises
    ------
    ValueError, TypeError
        As for :func:`stream_handle`.
    """
    if isinstance(handle, bool) or not isinstance(handle, int):
        raise TypeError(f"stream must be an integer, got {type(handle).__name__}")
    if handle == 0:
        raise ValueError(
            "stream 0 is ambiguous: use 1 for the legacy stream or 2 for the stream of the thread"
        )
    if not 0 < handle < _TOP:
        raise ValueError(f"stream must be a positive number of 64 bits, got {handle}")
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
    raise TypeError(
        f"stream must be an integer or have __cuda_stream__, got {type(stream).__name__}"
    )


def _object_handle(handle: object, stream: object) -> int:
    """Verify the handle from a stream object; 0 and None mean the legacy stream, returned as 0.

    Numba keeps the handle in a ``ctypes.c_void_p``, whose value is None for 0.
    """
    if handle is None or (handle == 0 and type(handle) is int):
        return 0
    try:
        return checked_handle(handle)
    except (TypeError, ValueError) as error:
        kind = type(stream).__name__
        raise type(error)(f"handle of {kind} is invalid: {error}") from None
