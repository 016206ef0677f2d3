"""Array in CUDA memory: a layout of elements over a MemInfo."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from memrt import _memrt
from memrt._memrt import MemInfo
from memrt._support.public import public
from memrt.cuda._driver import require_driver
from memrt.cuda._host_copy import read_elements, write_elements
from memrt.cuda._interface import interface_of
from memrt.cuda._layout import Layout
from memrt.cuda._memory import Keep, StreamOrderedMemory
from memrt.cuda._stream import NONE, stream_handle


@public("memrt.cuda")
class Array(StreamOrderedMemory):
    """Array in CUDA memory: a layout of elements over a MemInfo.

    :func:`memrt.cuda.empty` and :func:`memrt.from_cuda_array_interface` create arrays. Other
    libraries import an array through ``__cuda_array_interface__`` or DLPack.

    Notes
    -----
    Ownership: the memory lives as long as this array, any view, or any other reference to the
    MemInfo.

    All work on the array is ordered by one stream, :attr:`stream`. Code that queues work on the
    array in another stream must call :meth:`make_ready` before and :meth:`used` after.

    Threads: any thread may use the array. Threads that change the same elements must synchronize
    with each other.

    Examples
    --------
    >>> import memrt
    >>> array = memrt.cuda.empty((2, 3), "f4")
    >>> array.copy_from_host(1.5)
    >>> array[0].copy_to_host()
    array([1.5, 1.5, 1.5], dtype=float32)
    """

    __slots__ = ("__weakref__", "_layout", "_offset", "_readonly")

    _offset: int
    _layout: Layout
    _readonly: bool

    def __new__(cls) -> Array:
        raise TypeError(
            "memrt.cuda.Array has no constructor: call memrt.cuda.empty() to allocate, or "
            "memrt.from_cuda_array_interface() to import an array"
        )

    @classmethod
    def _over(
        cls, meminfo: MemInfo, offset: int, layout: Layout, readonly: bool, keep: Keep
    ) -> Array:
        """Return an array whose first element is `offset` bytes into the data of `meminfo`."""
        array: Array = object.__new__(cls)
        array._meminfo = meminfo
        array._offset = offset
        array._layout = layout
        array._readonly = readonly
        array._keep = keep
        return array

    def __array__(self, *_: Any, **__: Any) -> np.ndarray:
        """Refuse the conversion, so that NumPy does not treat the array as a list of arrays.

        Parameters
        ----------
        *_ : object
            Ignored.
        **__ : object
            Ignored.

        Raises
        ------
        TypeError
            Always.
        """
        raise TypeError("memrt.cuda.Array cannot become a NumPy array: call copy_to_host()")

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents, one for each dimension."""
        return self._layout.shape

    @property
    def strides(self) -> tuple[int, ...]:
        """Bytes from one element to the next, for each dimension."""
        return self._layout.strides

    @property
    def dtype(self) -> np.dtype[Any]:
        """Data type of the elements."""
        return self._layout.dtype

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self._layout.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return self._layout.size

    @property
    def nbytes(self) -> int:
        """Size of all elements in bytes."""
        return self._layout.nbytes

    @property
    def readonly(self) -> bool:
        """Whether writing to the array and to its views is forbidden."""
        return self._readonly

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """Interface dict of version 3, a new dict at each access.

        Raises
        ------
        ReferenceError
            The array was released.
        CudaError
            This is a forked child process, where the address is not valid.

        Notes
        -----
        Ownership: the dict does not keep the memory alive. Hold the array as long as the address is
        in use. The dict has a stream if work may be pending in a stream, unless MEMRT_CUDA_SYNC is
        0. The stream lives as long as the memory.
        """
        meminfo = self.meminfo
        stream = self._info()[2]
        require_driver()
        layout = self._layout
        address = meminfo.address + self._offset if layout.size else 0
        pending = stream != NONE and _memrt.cuda_sync()
        return interface_of(layout, address, self._readonly, stream if pending else None)

    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """Export the memory as a DLPack tensor, for import by another library.

        Parameters
        ----------
        stream : int, optional
            Stream that the importing library works in. 1, 2 or a handle: the given stream waits for
            all earlier work on the array. None: stream 1 waits; for managed and pinned memory,
            where the host may read the data, the calling thread waits. -1: no stream and no thread
            waits.
        max_version : tuple of int, optional
            Newest (major, minor) that the library supports. None: a version before 1.0.
        dl_device : tuple of int, optional
            (type, id) of the memory; or (1, 0), the CPU, which copies device memory.
        copy : bool, optional
            True: copy into new memory on the requested device. False: never copy.

        Returns
        -------
        PyCapsule
            Capsule with the tensor. The tensor holds a reference until the call of the deleter.

        Raises
        ------
        BufferError
            The array cannot be exported with the given arguments.
        ValueError
            An argument is invalid, for example stream 0.
        ReferenceError
            The array was released.
        CudaError
            The driver reported an error, or this is a forked child process.

        Notes
        -----
        memrt does not see later work of the importing library. Call :meth:`used` with the stream of
        that work before the library releases the tensor.
        """
        return self._tensor().__dlpack__(
            stream=stream, max_version=max_version, dl_device=dl_device, copy=copy
        )

    def _tensor(self) -> _memrt.Tensor:
        meminfo = self.meminfo
        require_driver()
        shape, strides, dtype = self._layout
        return _memrt.tensor_over(meminfo, dtype, shape, strides, self._offset, self._readonly)

    def copy_to_host(self, out: np.ndarray | None = None, stream: Any = None) -> np.ndarray:
        """Copy the elements to a NumPy array after all work on the array, and wait for the copy.

        Parameters
        ----------
        out : numpy.ndarray, optional
            Array of the same shape and dtype. None: a new array in C order.
        stream : Stream, int or object, optional
            Stream for the copy. None: the array's stream.

        Returns
        -------
        numpy.ndarray
            `out`, or the new array.

        Raises
        ------
        ValueError
            `out` has another shape or dtype, or is read-only.
        CudaError
            The driver reported an error.
        """
        handle = stream_handle(stream)
        if out is None:
            out = np.empty(self.shape, self.dtype)
        elif out.shape != self.shape or out.dtype != self.dtype:
            raise ValueError(
                f"out must be an array of {self.dtype} {self.shape}, got {out.dtype} {out.shape}"
            )
        elif not out.flags.writeable:
            raise ValueError("out must be writeable, got a read-only array")
        read_elements(self.meminfo, self._offset, self._layout, out, handle)
        return out

    def copy_from_host(self, values: ArrayLike, stream: Any = None) -> None:
        """Copy host values to the elements after all work on the array, and wait for the copy.

        Parameters
        ----------
        values : array_like
            Values that NumPy can convert to this dtype and broadcast to this shape.
        stream : Stream, int or object, optional
            Stream for the copy. None: the array's stream.

        Raises
        ------
        ValueError
            The array is read-only, or the values do not fit.
        CudaError
            The driver reported an error.
        """
        handle = stream_handle(stream)
        if self._readonly:
            raise ValueError("array must be writeable, got a read-only array")
        source = np.broadcast_to(np.asarray(values, self.dtype), self.shape)
        write_elements(self.meminfo, self._offset, self._layout, source, handle)

    def as_numpy(self) -> np.ndarray:
        """Wait for all work on the array, and return a NumPy array over the same memory.

        Returns
        -------
        numpy.ndarray
            Array over managed or pinned memory. The host must not use the array while the device
            does.

        Raises
        ------
        BufferError
            The memory is device memory.
        """
        self.synchronize()
        return _memrt.as_array(
            self.meminfo,
            self.shape,
            self.dtype,
            self.strides,
            self._offset,
            writeable=not self._readonly,
        )

    @property
    def T(self) -> Array:  # noqa: N802
        """View of the same elements with the dimensions in reverse order."""
        shape, strides, dtype = self._layout
        return self._view(0, Layout(shape[::-1], strides[::-1], dtype))

    def __getitem__(self, index: Any) -> Array:
        """Return a view, always as an Array.

        Parameters
        ----------
        index : int, slice, str or tuple
            Integers, slices, ``...`` and None, or the name of a field.

        Returns
        -------
        Array
            View of the same memory.

        Raises
        ------
        IndexError
            NumPy would raise IndexError, or the index has any other type.
        """
        return self._view(*self._layout.view(index))

    def _view(self, distance: int, layout: Layout) -> Array:
        offset = self._offset + distance
        return Array._over(self.meminfo, offset, layout, self._readonly, self._keep)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("array without dimensions has no length")
        return self.shape[0]

    def __repr__(self) -> str:
        what = f"{self.dtype} {self.shape}"
        if self._meminfo is None:
            return f"<memrt.cuda.Array {what}, released>"
        stream = "" if self.stream is None else f", stream {self.stream:#x}"
        readonly = ", read-only" if self._readonly else ""
        return f"<memrt.cuda.Array {what}, {self.kind}, device {self.device}{stream}{readonly}>"
