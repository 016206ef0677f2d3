"""Reference to CUDA memory, and the order of the work on the memory by one stream."""

from __future__ import annotations

from typing import Any

from memrt import _memrt
from memrt._memrt import MemInfo
from memrt.cuda._accounts import KINDS
from memrt.cuda._stream import NONE, stream_handle

Keep = list[object]  # kept alive as long as the memory; shared by the memory and all views


class StreamOrderedMemory:
    """Part of :class:`memrt.cuda.Array` that does not depend on the layout of the elements."""

    __slots__ = ("_keep", "_meminfo")

    _meminfo: MemInfo | None
    _keep: Keep

    @property
    def meminfo(self) -> MemInfo:
        """MemInfo of the array. The address is a device address that the host must not access.

        Raises
        ------
        ReferenceError
            The array was released.
        """
        if self._meminfo is None:
            raise ReferenceError("array was released: the memory may be freed")
        return self._meminfo

    def __memrt_meminfo__(self) -> Any:
        """Return a capsule with the MemInfo, for :func:`memrt.meminfo` and :func:`memrt.holders`.

        Returns
        -------
        PyCapsule
            Capsule named 'memrt.meminfo', with a reference of its own.

        Raises
        ------
        ReferenceError
            The array was released.
        """
        return self.meminfo.__memrt_meminfo__()

    @property
    def kind(self) -> str:
        """Kind of memory: "device", "managed" or "pinned"."""
        return KINDS[self._info()[0] - 1]

    @property
    def device(self) -> int:
        """Ordinal of the device that executes work on the array."""
        return self._info()[1]

    @property
    def stream(self) -> int | None:
        """Handle of the stream that orders all work on the array; None: no work is pending."""
        return self._info()[2] or None

    def _info(self) -> tuple[int, int, int, bool]:
        info = _memrt.cuda_info(self.meminfo)
        assert info is not None  # every Array is over CUDA memory
        return info

    def __dlpack_device__(self) -> tuple[int, int]:
        """Return the device of the memory, as DLPack numbers.

        Returns
        -------
        tuple of int
            Type and number of the device; the number is 0 without a device.

        Raises
        ------
        ReferenceError
            The array was released.
        """
        return self.meminfo.__dlpack_device__()

    def used(self, stream: Any) -> None:
        """Record that work on the array was queued in a stream.

        Later work on the array waits for the recorded work, and the memory is freed after the
        recorded work. If the array has no stream, `stream` becomes the array's stream.

        Parameters
        ----------
        stream : Stream, int or object
            Stream, handle, or stream object of another library. A stream object is kept alive as
            long as the memory.

        Raises
        ------
        ValueError
            `stream` is 0 or not a valid handle.
        TypeError
            `stream` is not a stream.
        CudaError
            The driver reported an error.
        """
        handle = stream_handle(stream)
        meminfo = self.meminfo
        if not isinstance(stream, int):
            self._keep.append(stream)
        _memrt.cuda_used(meminfo, handle)

    def make_ready(self, stream: Any) -> None:
        """Make a stream wait for all work on the array. The calling thread does not wait.

        Parameters
        ----------
        stream : Stream, int or object
            Stream, handle, or stream object of another library.

        Raises
        ------
        ValueError
            `stream` is 0 or not a valid handle.
        TypeError
            `stream` is not a stream.
        CudaError
            The driver reported an error.
        """
        _memrt.cuda_wait(self.meminfo, stream_handle(stream))

    def synchronize(self) -> None:
        """Wait until all work on the array is done. Releases the GIL while waiting.

        Raises
        ------
        CudaError
            The driver reported an error, for example an earlier error in a kernel.
        """
        _, device, stream, _ = self._info()
        if stream != NONE:
            _memrt.cuda_stream_synchronize(device, stream)

    def release(self) -> None:
        """Release this array's reference to the memory now. A second call has no effect.

        The memory is freed unless other references exist.
        """
        self._meminfo = None
        self._keep = []
