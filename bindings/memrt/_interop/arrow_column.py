"""Columns of Arrow data: export of arrays, and access to the parts of imported data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from memrt import _memrt
from memrt._interop.arrow_encoding import (
    NULLABLE,
    ChunkStream,
    bitmap_of,
    encode,
    lists_of,
    struct_of,
    with_dictionary,
)
from memrt._interop.arrow_formats import plain_format
from memrt._interop.arrow_parts import Node, Part, check_copy, parts_of, request, take_all
from memrt._interop.arrow_values import join
from memrt._policy.policy import Policy
from memrt._support.public import public


@public("memrt.types")
class Column:
    """Arrow data: an array in memory of memrt for other libraries, or data of another library.

    Pass the Column to a library that accepts objects with ``__arrow_c_array__`` or
    ``__arrow_c_stream__``, such as ``pyarrow.array``, ``nanoarrow.Array`` or ``polars.Series``.
    :func:`memrt.holders` lists the references of the library until the library releases the
    references. No code may write to the array until then. The Column keeps the present layout and
    mask of the array. :meth:`chunks` makes Columns of the data of another library.

    Parameters
    ----------
    array : numpy.ndarray or dict
        Array with contiguous elements. Masked elements of a numpy.ma.MaskedArray become nulls.
        Each axis after the first becomes a fixed-size list. A dict of arrays or Columns by name,
        all of the same length: the columns of a table.
    name : str, default ''
        Name of the column.
    copy : bool or None, default False
        False: refuse an array that needs a copy for Arrow. None: copy such an array into memory of
        memrt. True: always copy.
    dictionary : numpy.ndarray or Column, optional
        Values that the elements of `array` select by index.
    offsets : numpy.ndarray, optional
        Ascending array of int32 or int64: list i has the elements of `array` from ``offsets[i]`` to
        ``offsets[i + 1]``.

    Raises
    ------
    TypeError
        `array` is not an array, or `copy` is not None, True or False.
    ValueError
        memrt does not manage the memory. :func:`memrt.adopt` puts such memory under memrt. Or the
        columns of a table differ in length.
    BufferError
        Arrow does not support the dtype, byte order, shape or strides, or only with a copy; or an
        index or offset is out of range.
    MemoryError
        The allocation of a copy, or of the bitmap of a masked array, failed.

    Notes
    -----
    Ownership: the Column holds a reference to the MemInfo of each buffer. Threads: any.

    Examples
    --------
    >>> import memrt
    >>> column = memrt.types.Column(memrt.array([1.5, 2.5]), "price")
    >>> column, len(column), column.name
    (<memrt.types.Column of 2 float64>, 2, 'price')
    >>> memrt.from_arrow(column)
    array([1.5, 2.5])
    """

    __slots__ = ("_array", "_length", "_name", "_node", "_view")

    _array: np.ndarray | None

    def __init__(
        self,
        array: np.ndarray | Mapping[str, np.ndarray | Column],
        name: str = "",
        *,
        copy: bool | None = False,
        dictionary: np.ndarray | Column | None = None,
        offsets: np.ndarray | None = None,
    ) -> None:
        self._array, self._name = None, str(name)
        self._node: Node | None = None
        self._view: tuple[Any, ...] | None = None
        if isinstance(array, np.ndarray):
            self._array = array
            if dictionary is None and offsets is None and copy is False:
                format = plain_format(array)
                if format is not None:
                    self._view = _view_of(array, format, self._name)
                    self._length = len(array)
                    return
        check_copy(copy)
        node = _node_of(array, self._name, copy)
        if dictionary is not None:
            node = with_dictionary(node, _node_of(dictionary, "", copy))
        if offsets is not None:
            node = lists_of(node, offsets, self._name)
        self._node, self._length = node, node.length

    @classmethod
    def _of(cls, node: Node) -> Column:
        self: Column = object.__new__(cls)
        self._array, self._view, self._node = None, None, node
        self._name, self._length = node.name, node.length
        return self

    @classmethod
    def chunks(cls, x: Any, /, *, policy: Policy | None = None) -> list[Column]:
        """Import all chunks of the data of another library, without a copy.

        Parameters
        ----------
        x : object
            Arrow data: an object with ``__arrow_c_array__``, ``__arrow_c_device_array__`` or
            ``__arrow_c_stream__``, in memory that the CPU can read.
        policy : Policy, optional
            Policy that accounts for the memory. None: the policy in force in this context, else
            the default policy.

        Returns
        -------
        list of Column
            One Column for each chunk. An object without chunks gives an empty list.

        Raises
        ------
        BufferError
            The array is malformed, on another device, a union or run-end encoded; or the stream
            fails.
        TypeError
            `x` has none of the three methods.
        ValueError
            A method of `x` does not return Arrow capsules.
        MemoryError
            The allocation of a MemInfo failed.

        Notes
        -----
        Ownership: each buffer is a MemInfo of kind 'adopted'. The last release of all buffers of a
        chunk gives the chunk back to the library. After an exception the library has all chunks
        back. Threads: as :func:`memrt.from_arrow`.

        Examples
        --------
        >>> import memrt
        >>> theirs = memrt.types.Column(memrt.array([b"spam", b"eggs"]))  # stands for pyarrow's
        >>> [chunk] = memrt.types.Column.chunks(theirs)
        >>> chunk.format, len(chunk)
        ('w:4', 2)
        """
        schema, arrays = request(x)
        return list(map(cls._of, take_all(schema, arrays, policy)))

    @staticmethod
    def stream(columns: Iterable[Column]) -> Any:
        """Return an object that exports Columns as one stream, a chunk for each Column.

        Parameters
        ----------
        columns : iterable of Column
            At least one Column. All must have the same Arrow type.

        Returns
        -------
        object
            Object with ``__arrow_c_stream__``, for ``pyarrow.chunked_array``, ``pyarrow.table``,
            ``polars.Series`` and others. Each call of the method exports all chunks.

        Raises
        ------
        TypeError
            An object is not a Column.
        ValueError
            No Column was given, or the Arrow types differ.

        Examples
        --------
        >>> import memrt
        >>> parts = [memrt.types.Column(memrt.array(part)) for part in ([1, 2], [3])]
        >>> memrt.from_arrow(memrt.types.Column.stream(parts), copy=None)
        array([1, 2, 3])
        """
        nodes = []
        for column in columns:
            if not isinstance(column, Column):
                raise TypeError(
                    f"columns must be memrt.types.Column objects, got {type(column).__name__}"
                )
            nodes.append(column._tree())
        return ChunkStream(nodes)

    @property
    def array(self) -> np.ndarray:
        """Exported array, or an array over imported elements, masked if an element is null.

        BufferError if the elements need a copy: see :meth:`to_numpy`.
        """
        if self._array is not None:
            return self._array
        node = self._tree()
        return join([node], node.mask() is not np.ma.nomask, False, None)

    @property
    def name(self) -> str:
        """Name of the column."""
        return self._name

    @property
    def format(self) -> str:
        """Type of the elements in Arrow's notation: 'u' for text."""
        return self._view[2] if self._view is not None else self._tree().format

    @property
    def parts(self) -> dict[str, Any]:
        """Parts of the data, without a copy, as a new dict.

        All types: ``validity`` (uint8 array with the bits of a bitmap, 0 for null; None without
        nulls) and ``first_bit`` (bit of the first element). Further keys, arrays unless stated:

        - fixed width: ``values``; decimals of 128 and 256 bits are rows of uint64, lowest first
        - booleans: ``bits``, a bitmap like the validity
        - texts and bytes: ``offsets`` and ``data``; views: ``views`` and ``data``, a list of arrays
        - lists: ``offsets``, for list views also ``sizes``, and ``items``, a Column
        - fixed-size lists: ``items``, a Column
        - structs: ``fields``, a list of Columns
        - dictionaries: ``values``, the indices, and ``dictionary``, a Column
        """
        return parts_of(self._tree(), type(self)._of)

    def to_numpy(
        self, *, masked: bool = False, copy: bool | None = False, policy: Policy | None = None
    ) -> np.ndarray:
        """Return the elements as an array.

        Parameters
        ----------
        masked : bool, default False
            True: return a numpy.ma.MaskedArray, in which nulls are masked.
        copy : bool or None, default False
            As in :func:`memrt.from_arrow`.
        policy : Policy, optional
            Policy that allocates copies. None: the policy in force in this context, else the
            default policy.

        Returns
        -------
        numpy.ndarray
            Array over the elements, or a copy of the elements in memory of memrt.

        Raises
        ------
        BufferError
            The elements have no dtype, need a copy that `copy` forbids, or are null without
            `masked`; or the data is malformed.
        TypeError
            `copy` is not None, True or False.
        MemoryError
            The allocation of the array failed.

        Examples
        --------
        >>> import memrt
        >>> words = memrt.types.Column(memrt.array(["spam", "eggs"]), copy=None)
        >>> words.format, words.to_numpy(copy=None).tolist()
        ('u', ['spam', 'eggs'])
        """
        check_copy(copy)
        return join([self._tree()], masked, copy, policy)

    def __len__(self) -> int:
        return self._length

    def __repr__(self) -> str:
        if self._view is not None and self._array is not None:
            return f"<memrt.types.Column of {len(self)} {self._array.dtype.name}>"
        return f"<memrt.types.Column of {len(self)} elements of Arrow's format {self.format!r}>"

    def __arrow_c_schema__(self) -> Any:
        """Return the type of the elements.

        Returns
        -------
        PyCapsule
            Capsule 'arrow_schema'.
        """
        return self._export(False)[0]

    def __arrow_c_array__(self, requested_schema: Any = None) -> tuple[Any, Any]:
        """Return the type and the elements.

        Parameters
        ----------
        requested_schema : PyCapsule, optional
            Without effect: the elements are never converted.

        Returns
        -------
        tuple of PyCapsule
            Capsules 'arrow_schema' and 'arrow_array'.
        """
        return self._export(False)

    def __arrow_c_device_array__(
        self, requested_schema: Any = None, **kwargs: Any
    ) -> tuple[Any, Any]:
        """Return the type and the elements, with the device: the CPU.

        Parameters
        ----------
        requested_schema : PyCapsule, optional
            Without effect: the elements are never converted.
        **kwargs : None
            Further keywords of Arrow's protocol. Only None is supported.

        Returns
        -------
        tuple of PyCapsule
            Capsules 'arrow_schema' and 'arrow_device_array'.

        Raises
        ------
        NotImplementedError
            A keyword is not None, as Arrow's specification requires.
        """
        for name in kwargs:  # kwargs.items() crashes CPython 3.11 when out of memory
            if kwargs[name] is not None:
                raise NotImplementedError(
                    f"__arrow_c_device_array__() does not support the keyword {name!r}"
                )
        return self._export(True)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """Return a stream of one chunk with the elements.

        Parameters
        ----------
        requested_schema : PyCapsule, optional
            Without effect: the elements are never converted.

        Returns
        -------
        PyCapsule
            Capsule 'arrow_array_stream'.
        """
        return _memrt.export_arrow_stream((self._tree().exported(),))

    def _export(self, device: bool) -> tuple[Any, Any]:
        if self._view is not None:
            return _memrt.export_arrow(self._view, device)
        return _memrt.export_arrow_parts(self._tree().exported(), device)

    def _tree(self) -> Node:
        if self._node is None:
            assert self._view is not None, "as the constructor sets one of both"
            mi, offset, format, length, is_bool8, name, bitmap, nulls = self._view
            validity = Part(bitmap, 0) if bitmap is not None else None
            self._node = Node(
                format, name, is_bool8, NULLABLE if nulls else 0, length, nulls, 0,
                (validity, Part(mi, offset)), (), None,
            )  # fmt: skip
        return self._node


def _view_of(array: np.ndarray, format: str, name: str) -> tuple[Any, ...]:
    """Return the argument of `_memrt.export_arrow` for an array without a copy."""
    mi = _memrt.meminfo(array)
    offset = _memrt.address(array) - mi.address if array.size else 0
    bitmap, nulls = bitmap_of(np.ma.getmask(array))
    return (mi, offset, format, len(array), array.dtype.kind == "b", name, bitmap, nulls)


def _node_of(array: Any, name: str, copy: bool | None) -> Node:
    if isinstance(array, Column):
        return replace(array._tree(), name=name)
    if isinstance(array, Mapping):
        nodes = []
        for key in array:
            nodes.append(_node_of(array[key], str(key), copy))
        return struct_of(nodes, name)
    if not isinstance(array, np.ndarray):
        raise TypeError(
            f"Column() argument 'array' must be a numpy.ndarray, got {type(array).__name__}"
        )
    return encode(array, name, copy)
