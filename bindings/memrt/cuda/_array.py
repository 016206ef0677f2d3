"""Allocate arrays in CUDA memory; export and import the CUDA Array Interface."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from memrt import _memrt
from memrt._memrt import MemInfo
from memrt.cuda._accounts import KINDS, kind_number
from memrt.cuda._interface import read_interface
from memrt.cuda._layout import Layout, dense_strides
from memrt.cuda._stream import NONE, device_number, stream_handle

_MOST_EXTRA = 4  # one copy of the whole extent, if the extent is at most 4 times nbytes

_Keep = list[object]  # kept alive as long as the memory; shared by the memory and all views


def available() -> bool:
    """Return whether CUDA can be used: the driver is installed, starts, and finds a device.

    Loads the driver. While no driver is found, each call searches again.

    Returns
    -------
    bool
        True if CUDA can be used.

    Examples
    --------
    >>> import memrt
    >>> memrt.cuda.available() == (memrt.cuda.why_not() is None)
    True
    """
    return why_not() is None


def why_not() -> str | None:
    """Return the reason why CUDA cannot be used.

    Returns
    -------
    str or None
        Reason as a sentence; None if CUDA can be used.

    Examples
    --------
    >>> import memrt
    >>> reason = memrt.cuda.why_not()
    >>> reason is None or len(reason) > 0
    True
    """
    return _memrt.cuda_why_not()


class Array:
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

    __slots__ = ("__weakref__", "_keep", "_layout", "_meminfo", "_offset", "_readonly")

    _meminfo: MemInfo | None
    _offset: int
    _layout: Layout
    _readonly: bool
    _keep: _Keep

    def __new__(cls) -> Array:
        raise TypeError(
            "memrt.cuda.Array has no constructor: call memrt.cuda.empty() to allocate, or "
            "memrt.from_cuda_array_interface() to import an array"
        )

    @classmethod
    def _over(
        cls, meminfo: MemInfo, offset: int, layout: Layout, readonly: bool, keep: _Keep
    ) -> Array:
        """Return an array whose first element is `offset` bytes into the data of `meminfo`."""
        array: Array = object.__new__(cls)
        array._meminfo = meminfo
        array._offset = offset
        array._layout = layout
        array._readonly = readonly
        array._keep = keep
        return array

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
        _need_driver()
        layout = self._layout
        entries: dict[str, Any] = {
            "shape": layout.shape,
            "typestr": layout.dtype.str,
            "data": (meminfo.address + self._offset if layout.size else 0, self._readonly),
            "version": 3,
            "strides": None if layout.is_contiguous else layout.strides,
        }
        if layout.dtype.names is not None:
            entries["descr"] = layout.dtype.descr
        if stream != NONE and _memrt.cuda_sync():
            entries["stream"] = stream
        return entries

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

    def _tensor(self) -> _memrt.Tensor:
        meminfo = self.meminfo
        _need_driver()
        shape, strides, dtype = self._layout
        return _memrt.tensor_over(meminfo, dtype, shape, strides, self._offset, self._readonly)

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
        low, high = self._layout.extent
        if not self._layout.is_contiguous and high - low <= _MOST_EXTRA * self.nbytes:
            out[...] = self._extent_on_host(handle)
            return out
        dense = out if out.flags.c_contiguous else np.empty(self.shape, self.dtype)
        self._transfer(dense, handle, _memrt.cuda_read)
        if dense is not out:
            out[...] = dense
        return out

    def _extent_on_host(self, stream: int) -> np.ndarray:
        """Return a view of a host copy of all bytes from the first to the last element.

        A single copy is faster than one copy for each contiguous piece.
        """
        low, high = self._layout.extent
        lump = np.empty(high - low, np.uint8)
        _memrt.cuda_read(self.meminfo, self._offset + low, lump.data, stream)
        return np.ndarray(self.shape, self.dtype, lump, -low, self.strides)

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
        self._transfer(np.ascontiguousarray(source), handle, _memrt.cuda_write)

    def _transfer(self, dense: np.ndarray, stream: int, copy: Any) -> None:
        """Copy between the elements and a contiguous host array, one contiguous piece at a time."""
        meminfo = self.meminfo
        if self.size == 0:
            return
        host = dense.reshape(self.shape)  # ascontiguousarray gives a 0-d array one dimension
        for distance, index in self._layout.runs():
            place: Any = (*index, ...)
            piece = host[place].reshape(-1).view(np.uint8)
            copy(meminfo, self._offset + distance, piece.data, stream)

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

    def release(self) -> None:
        """Release this array's reference to the memory now. A second call has no effect.

        The memory is freed unless other references exist.
        """
        self._meminfo = None
        self._keep = []

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


def _need_driver() -> None:
    if (reason := _memrt.cuda_why_not()) is not None:
        raise _memrt.CudaError(reason)


def _shape_of(shape: int | Sequence[int]) -> tuple[int, ...]:
    given = shape if isinstance(shape, Sequence) else (shape,)
    numbers = tuple(map(operator.index, given))
    if any(extent < 0 for extent in numbers):
        raise ValueError(f"shape must have no negative extent, got {numbers}")
    return numbers


def empty(
    shape: int | Sequence[int],
    dtype: DTypeLike = float,
    *,
    stream: Any = None,
    kind: str = "device",
    device: int | None = None,
    name: str | None = None,
) -> Array:
    """Allocate an array in CUDA memory, in C order, with undefined contents.

    Parameters
    ----------
    shape : int or sequence of int
        Elements along each axis. With an extent of 0, no memory is allocated.
    dtype : dtype_like, default float
        Data type of the elements. Object types are refused.
    stream : Stream, int or object, optional
        Stream that allocates and uses the array: a :class:`Stream`, a handle, or a stream object of
        another library. If the device has memory pools, the memory is allocated and freed in stream
        order, without waiting. None: any stream may use the array at once, and the free waits for
        the device.
    kind : {'device', 'managed', 'pinned'}, default 'device'
        Kind of memory. 'managed' memory moves between host and devices on access. 'pinned' is host
        memory that devices can access.
    device : int, optional
        Ordinal of the device. None: the device of the thread's current context, else the first
        device.
    name : str, optional
        Name in reports, at most 63 bytes in UTF-8.

    Returns
    -------
    Array
        New array.

    Raises
    ------
    ValueError
        An argument is out of range.
    TypeError
        An argument has the wrong type.
    MemoryError
        The driver has no memory, or the limit of :func:`set_limit` is reached.
    CudaError
        No driver is installed, or the driver reported an error.

    Notes
    -----
    Ownership: a stream object is kept alive as long as the memory.

    Examples
    --------
    >>> import memrt
    >>> array = memrt.cuda.empty((2, 3), "f4", kind="managed", name="grid")
    >>> array.shape, array.nbytes, array.kind
    ((2, 3), 24, 'managed')
    """
    handle = stream_handle(stream)
    type_ = np.dtype(dtype)
    if type_.hasobject or not type_.isnative:
        raise TypeError(f"dtype must have native byte order and no Python objects, got {type_}")
    extents = _shape_of(shape)
    layout = Layout(extents, dense_strides(extents, type_.itemsize), type_)
    keep: _Keep = [stream]
    meminfo = _memrt.cuda_alloc(
        layout.nbytes, kind_number(kind), device_number(device), handle, keep, name
    )
    return Array._over(meminfo, 0, layout, False, keep)


def of_tensor(tensor: _memrt.Tensor) -> Array:
    """Return an array over device memory imported through DLPack."""
    meminfo, dtype, shape, strides, offset, readonly, keep = _memrt.tensor_layout(tensor)
    assert keep is not None  # the tensor is in device memory
    return Array._over(meminfo, offset, Layout(shape, strides, dtype), readonly, keep)


def copied(array: Array) -> Array:
    """Return a copy of the elements in new memory of the same kind and device."""
    low, high = array._layout.extent
    keep: _Keep = []
    meminfo = _memrt.cuda_copy(array.meminfo, array._offset + low, high - low, keep)
    return Array._over(meminfo, -low, array._layout, False, keep)


def from_cuda_array_interface(obj: Any, sync: bool = True, owner: Any = ...) -> Array:
    """Import the memory of an object with ``__cuda_array_interface__``, without a copy.

    Parameters
    ----------
    obj : object
        Array of another library, the producer. Versions 0 to 3 of the interface are supported, with
        arbitrary strides. A read-only array stays read-only.
    sync : bool, default True
        True: wait for the producer's stream before the return. False: do not wait; all work on the
        array is ordered after the work in the producer's stream. In both cases the producer's
        stream becomes the array's stream. If MEMRT_CUDA_SYNC is 0, the producer's stream is
        ignored.
    owner : object, optional
        Object that keeps the memory alive. Default: `obj`. None: the caller must keep the memory
        alive.

    Returns
    -------
    memrt.cuda.Array
        Array over the memory of the producer.

    Raises
    ------
    TypeError
        The attribute is missing, or an entry has the wrong type.
    ValueError
        An entry is missing or invalid, for example stream 0.
    NotImplementedError
        The producer has a mask.
    CudaError
        The driver does not know the address, reported an error, or is missing.
    MemoryError
        An allocation failed. Nothing was imported.

    Notes
    -----
    Ownership: memrt holds one reference to `owner`, and drops the reference after the last release
    of the array's MemInfo. Statistics count the memory as `adopted`, in the account of the policy
    "cuda foreign". The address is resolved for the device's primary context.

    Examples
    --------
    >>> import memrt
    >>> theirs = memrt.cuda.empty(3, "i4")  # stands for an array of another library
    >>> theirs.copy_from_host([1, 2, 3])
    >>> memrt.from_cuda_array_interface(theirs).copy_to_host()
    array([1, 2, 3], dtype=int32)
    """
    interface = read_interface(obj)
    layout = interface.layout
    low, high = layout.extent
    stream = interface.stream if _memrt.cuda_sync() else NONE
    keep: _Keep = [obj if owner is ... else owner]
    start = interface.address + low if layout.size else 0
    meminfo = _memrt.cuda_wrap(start, high - low, interface.readonly, stream, keep)
    array = Array._over(meminfo, -low, layout, interface.readonly, keep)
    if sync:
        array.synchronize()
    return array
