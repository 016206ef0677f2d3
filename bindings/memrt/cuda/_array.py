"""Arrays in memory of CUDA, and the CUDA Array Interface in both directions."""

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

_MOST_EXTRA = 4  # bytes for each of an array's that are copied with it to make fewer copies

_Keep = list[object]  # what has to live as long as the memory; views share it


def available() -> bool:
    """Whether CUDA can be used: the driver is there, starts, and knows a device.

    Loads the driver. As long as there is none, it is looked for again at each call.
    """
    return why_not() is None


def why_not() -> str | None:
    """Why CUDA cannot be used, in a sentence; None: it can."""
    return _memrt.cuda_why_not()


class Array:
    """An array in CUDA memory: a layout of elements over a MemInfo.

    Comes from :func:`memrt.cuda.empty` and :func:`memrt.from_cuda_array_interface`. Other
    libraries take it by ``__cuda_array_interface__``. The memory lives as long as this array, a
    view of it, or anybody else who holds the MemInfo.

    All work on it is done in the order of one stream, :attr:`stream`. Who puts work on it into
    another stream calls :meth:`make_ready` before and :meth:`used` after.

    Threads: any may use it; two that change the same elements take turns by themselves.
    """

    __slots__ = ("__weakref__", "_keep", "_layout", "_meminfo", "_offset", "_readonly")

    _meminfo: MemInfo | None
    _offset: int
    _layout: Layout
    _readonly: bool
    _keep: _Keep

    def __new__(cls) -> Array:
        raise TypeError(
            "memrt.cuda.Array cannot be built by hand: memrt.cuda.empty() allocates, "
            "memrt.from_cuda_array_interface() takes over what others allocated"
        )

    @classmethod
    def _over(
        cls, meminfo: MemInfo, offset: int, layout: Layout, readonly: bool, keep: _Keep
    ) -> Array:
        """The first element is `offset` bytes into the data of `meminfo`."""
        array: Array = object.__new__(cls)
        array._meminfo = meminfo
        array._offset = offset
        array._layout = layout
        array._readonly = readonly
        array._keep = keep
        return array

    @property
    def meminfo(self) -> MemInfo:
        """The MemInfo; its data is at a device's address, which the host must not touch.

        Raises:
            ReferenceError: the array was released.
        """
        if self._meminfo is None:
            raise ReferenceError("this array was released: its memory may be gone")
        return self._meminfo

    def __memrt_meminfo__(self) -> Any:
        """A capsule with the MemInfo: what :func:`memrt.meminfo` and :func:`memrt.holders` ask for.

        Raises:
            ReferenceError: the array was released.
        """
        return self.meminfo.__memrt_meminfo__()

    def __array__(self, *_: Any, **__: Any) -> np.ndarray:
        """NumPy must not take it for a list of arrays.

        Raises:
            TypeError: always.
        """
        raise TypeError("an array of CUDA is copied to the host by copy_to_host()")

    @property
    def shape(self) -> tuple[int, ...]:
        """Its extents."""
        return self._layout.shape

    @property
    def strides(self) -> tuple[int, ...]:
        """Bytes from one element to the next, for each dimension."""
        return self._layout.strides

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of its elements."""
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
        """Bytes of all elements."""
        return self._layout.nbytes

    @property
    def readonly(self) -> bool:
        """Whether it, and what is made of it, must not be written."""
        return self._readonly

    @property
    def kind(self) -> str:
        """ "device", "managed" or "pinned"."""
        return KINDS[self._info()[0] - 1]

    @property
    def device(self) -> int:
        """Ordinal of the device that its work is done on."""
        return self._info()[1]

    @property
    def stream(self) -> int | None:
        """Handle of the stream that all work on it is in the order of; None: no work waits."""
        return self._info()[2] or None

    def _info(self) -> tuple[int, int, int, bool]:
        info = _memrt.cuda_info(self.meminfo)
        assert info is not None  # it is made over no other memory
        return info

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """Version 3 of the interface, a new dict each time.

        Reading it does not keep the memory: hold the array as long as the address is used. A stream
        is in it when work may wait in one, unless MEMRT_CUDA_SYNC is 0; it lives as long as the
        memory.

        Raises:
            ReferenceError: the array was released.
            CudaError: the process was made by fork, where the address means nothing.
        """
        meminfo = self.meminfo
        stream = self._info()[2]
        _need_driver()
        layout = self._layout
        entries: dict[str, Any] = {
            "shape": layout.shape,
            "typestr": layout.dtype.str,
            "data": (meminfo.data + self._offset if layout.size else 0, self._readonly),
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
        """The memory as a DLPack tensor, for another library, which takes it out of the capsule.

        The library's work has to come after all work on the array:

        - `stream` 1, 2 or a handle, and None for 1: that stream waits. Of managed and pinned memory
          the host may be the reader, so without a stream it is the caller who waits.
        - -1: nobody waits.

        Its later work memrt does not know of: :meth:`used` tells it, before the library lets go.

        Args:
            stream: the one that the library works in.
            max_version: (major, minor) that it knows; None: from before version 1.0.
            dl_device: (type, id) of the memory, or (1, 0), the CPU, for which that of a device is
                copied.
            copy: True: into new memory on the device that is asked for. False: never.

        Raises:
            BufferError: what cannot be exported so.
            ValueError: a bad argument, stream 0 among it.
            ReferenceError: the array was released.
            CudaError: the driver refused, or the process was made by fork.
        """
        return self._tensor().__dlpack__(
            stream=stream, max_version=max_version, dl_device=dl_device, copy=copy
        )

    def __dlpack_device__(self) -> tuple[int, int]:
        """DLPack's type of the memory, and the number of the device; 0 for what no device owns.

        Raises:
            ReferenceError: the array was released.
        """
        return self.meminfo.__dlpack_device__()

    def _tensor(self) -> _memrt.Tensor:
        meminfo = self.meminfo
        _need_driver()
        shape, strides, dtype = self._layout
        return _memrt.tensor_over(meminfo, dtype, shape, strides, self._offset, self._readonly)

    def used(self, stream: Any) -> None:
        """Work on the array was put into `stream`: all that comes waits for it, and the memory is
        not given back before. Where the array has no stream, this one becomes its own.

        Args:
            stream: a :class:`Stream`, a handle, or a stream of another library, which is kept as
                long as the memory.

        Raises:
            ValueError, TypeError: for what is no stream.
            CudaError: the driver refused.
        """
        handle = stream_handle(stream)
        meminfo = self.meminfo
        if not isinstance(stream, int):
            self._keep.append(stream)
        _memrt.cuda_used(meminfo, handle)

    def make_ready(self, stream: Any) -> None:
        """Have `stream` wait for all work on the array; the caller does not wait.

        Raises:
            ValueError, TypeError, CudaError: as :meth:`used`.
        """
        _memrt.cuda_wait(self.meminfo, stream_handle(stream))

    def synchronize(self) -> None:
        """Wait until all work on the array is done; the GIL is let go.

        Raises:
            CudaError: the driver refused, as after an error in a kernel.
        """
        _, device, stream, _ = self._info()
        if stream != NONE:
            _memrt.cuda_stream_synchronize(device, stream)

    def copy_to_host(self, out: np.ndarray | None = None, stream: Any = None) -> np.ndarray:
        """Copy the elements to an array of NumPy's, after all work on them; done at the return.

        Args:
            out: an array of the same shape and dtype; None: a new one in C order.
            stream: the copy is made in it; None: in the array's own.

        Raises:
            ValueError: `out` does not fit, or may not be written.
            CudaError: the driver refused.
        """
        handle = stream_handle(stream)
        if out is None:
            out = np.empty(self.shape, self.dtype)
        elif out.shape != self.shape or out.dtype != self.dtype:
            raise ValueError(
                f"an array of {self.dtype} {self.shape} does not fit {out.dtype} {out.shape}"
            )
        elif not out.flags.writeable:
            raise ValueError("the array to copy to is read-only")
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
        """A view of a copy of all bytes from the first to the last element: one copy, not many."""
        low, high = self._layout.extent
        lump = np.empty(high - low, np.uint8)
        _memrt.cuda_read(self.meminfo, self._offset + low, lump.data, stream)
        return np.ndarray(self.shape, self.dtype, lump, -low, self.strides)

    def copy_from_host(self, values: ArrayLike, stream: Any = None) -> None:
        """Copy values of the host to the elements, after all work on them; done at the return.

        Args:
            values: anything that NumPy can make an array of this shape and dtype of.
            stream: the copy is made in it; None: in the array's own.

        Raises:
            ValueError: the array is read-only, or the values do not fit.
            CudaError: the driver refused.
        """
        handle = stream_handle(stream)
        if self._readonly:
            raise ValueError("this array is read-only")
        source = np.broadcast_to(np.asarray(values, self.dtype), self.shape)
        self._transfer(np.ascontiguousarray(source), handle, _memrt.cuda_write)

    def _transfer(self, dense: np.ndarray, stream: int, copy: Any) -> None:
        """Between the elements and an array of the host that has no gaps, piece by piece."""
        meminfo = self.meminfo
        if self.size == 0:
            return
        host = dense.reshape(self.shape)  # of no dimension it would have one
        for distance, index in self._layout.runs():
            place: Any = (*index, ...)
            piece = host[place].reshape(-1).view(np.uint8)
            copy(meminfo, self._offset + distance, piece.data, stream)

    def as_numpy(self) -> np.ndarray:
        """An array of NumPy's over the same memory, once all work on it is done; for managed and
        pinned memory. The host must not use it while the device does.

        Raises:
            BufferError: for memory of a device.
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
        """Give up the memory now; it is gone once nobody else holds it. Twice does no harm."""
        self._meminfo = None
        self._keep = []

    @property
    def T(self) -> Array:  # noqa: N802
        """The same elements with the dimensions in reverse order."""
        shape, strides, dtype = self._layout
        return self._view(0, Layout(shape[::-1], strides[::-1], dtype))

    def __getitem__(self, index: Any) -> Array:
        """A view: integers, slices, ``...``, None, or the name of a field. Always an Array.

        Raises:
            IndexError: as NumPy does, and for any other index.
        """
        return self._view(*self._layout.view(index))

    def _view(self, distance: int, layout: Layout) -> Array:
        offset = self._offset + distance
        return Array._over(self.meminfo, offset, layout, self._readonly, self._keep)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("an array of no dimension has no length")
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
        raise ValueError(f"shape {numbers} has a negative extent")
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
    """New array in CUDA memory, in C order, contents undefined.

    Args:
        shape: extents; 0 is one, and then no memory is asked for.
        dtype: of the elements; no objects.
        stream: that it is made and used in: a :class:`Stream`, a handle, or a stream of another
            library, which lives as long as the memory. Where the device has memory pools, memory
            comes from them and goes back in the order of the stream, without waiting. None: any
            stream may use it at once, and its end waits for the device.
        kind: "device"; "managed", which moves between host and devices as it is used; or "pinned",
            host memory that devices reach.
        device: ordinal; None: the device of the thread's current context, else the first.
        name: for reports, at most 63 bytes.

    Raises:
        ValueError, TypeError: for a bad argument.
        MemoryError: the driver has no memory, or :func:`set_limit` allows no more.
        CudaError: there is no driver, or it refused.
    """
    handle = stream_handle(stream)
    type_ = np.dtype(dtype)
    if type_.hasobject or not type_.isnative:
        raise TypeError(f"elements of {type_} mean nothing on a device")
    extents = _shape_of(shape)
    layout = Layout(extents, dense_strides(extents, type_.itemsize), type_)
    keep: _Keep = [stream]
    meminfo = _memrt.cuda_alloc(
        layout.nbytes, kind_number(kind), device_number(device), handle, keep, name
    )
    return Array._over(meminfo, 0, layout, False, keep)


def of_tensor(tensor: _memrt.Tensor) -> Array:
    """An array over the memory of a device that came by DLPack."""
    meminfo, dtype, shape, strides, offset, readonly = _memrt.tensor_layout(tensor)
    return Array._over(meminfo, offset, Layout(shape, strides, dtype), readonly, [])


def copied(array: Array) -> Array:
    """The same elements in new memory of the same kind and device."""
    low, high = array._layout.extent
    meminfo = _memrt.cuda_copy(array.meminfo, array._offset + low, high - low)
    return Array._over(meminfo, -low, array._layout, False, [])


def from_cuda_array_interface(obj: Any, sync: bool = True, owner: Any = ...) -> Array:
    """An array over the memory of an object with ``__cuda_array_interface__``, without a copy.

    Versions 0 to 3 are taken, with strides of any kind. A read-only array stays so. The address is
    resolved for the device's primary context. The memory is on memrt's books as `adopted`, on the
    account of the policy "cuda foreign".

    Args:
        obj: the producer.
        sync: wait for the stream that the producer names, before the return. With False nobody
            waits, but all work by the array comes after what is in it. Either way the array is used
            in the order of that stream. With MEMRT_CUDA_SYNC at 0 the stream is passed over.
        owner: what keeps the memory alive, held until the last reference to the array's MemInfo
            goes and then let go once. `obj` unless given; None: the caller sees to it that the
            memory stays.

    Raises:
        TypeError: it has no such attribute, or something in that has the wrong type.
        ValueError: something in it is missing or makes no sense, stream 0 among it.
        NotImplementedError: it has a mask.
        CudaError: the driver does not know the address, refused, or is not there.
        MemoryError: then nothing was taken over.
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
