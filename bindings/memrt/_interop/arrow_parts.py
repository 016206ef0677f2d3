"""Parts of an Arrow array: buffers as MemInfos, children and dictionary."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from memrt import _memrt
from memrt._interop.arrow_formats import VIEW, Layout, layout_of, stored_dtype
from memrt._policy.policy import Policy


class Part(NamedTuple):
    """Buffer of an array: bytes from `offset` of a MemInfo on."""

    mi: _memrt.MemInfo
    offset: int

    def bytes(self) -> np.ndarray:
        """Return the bytes of the buffer."""
        return _memrt.as_array(self.mi, offset=self.offset)


@dataclass(frozen=True, eq=False)
class Node:
    """Array of any Arrow type, with the buffers of the producer.

    `offset` and `length` select elements of the buffers. A struct selects the same elements of its
    children. `buffers` has None for a buffer without bytes.
    """

    format: str
    name: str
    is_bool8: bool
    flags: int
    length: int
    nulls: int
    offset: int
    buffers: tuple[Part | None, ...]
    children: tuple[Node, ...]
    dictionary: Node | None

    @property
    def layout(self) -> Layout:
        return layout_of(self.format)

    @property
    def validity(self) -> Part | None:
        return self.buffers[0] if self.buffers else None

    def view(self, index: int, dtype: np.dtype, start: int, count: int) -> np.ndarray:
        """Return an array over elements of a buffer."""
        part = self.buffers[index] if index < len(self.buffers) else None
        if part is None or count == 0:
            return np.empty(0, dtype)
        mi, first = part
        shape = (count, *dtype.shape)
        return _memrt.as_array(mi, shape, dtype.base, offset=first + start * dtype.itemsize)

    def mask(self) -> np.ndarray | np.bool_:
        """Return a new array that is true for nulls, or numpy.ma.nomask."""
        if self.layout.kind == "null":
            return np.ones(self.length, bool)
        if self.validity is None or self.nulls == 0 or self.length == 0:
            return np.ma.nomask
        valid = np.unpackbits(self.bits(0), bitorder="little")
        first = self.offset % 8
        mask = valid[first : first + self.length] == 0
        return mask if mask.any() else np.ma.nomask

    def bits(self, index: int) -> np.ndarray:
        """Return the bytes of a bitmap from the byte of the first element on."""
        first, end = self.offset // 8, _bitmap_bytes(self.offset + self.length)
        return self.view(index, np.dtype(np.uint8), first, end - first)

    def stored(self) -> np.ndarray:
        """Return the numbers or bytes of an array of a fixed-width format, without a copy."""
        dtype = stored_dtype(self.format, self.is_bool8)
        assert dtype is not None, "as the layout is fixed"
        return self.view(1, dtype, self.offset, self.length)

    def part(self, start: int, length: int) -> Node:
        """Return a part of the elements."""
        nulls = 0 if self.nulls == 0 else -1
        return replace(self, offset=self.offset + start, length=length, nulls=nulls)

    def offsets(self) -> np.ndarray:
        """Return the ``length + 1`` offsets of texts or lists."""
        if self.length == 0:
            return np.zeros(1, f"i{self.layout.width}")
        dtype = np.dtype(f"i{self.layout.width}")
        return self.view(1, dtype, self.offset, self.length + 1)

    def exported(self) -> tuple[Any, ...]:
        """Return the argument of `_memrt.export_arrow_parts`."""
        return (
            self.format,
            self.name,
            self.is_bool8,
            self.flags,
            self.length,
            self.nulls,
            self.offset,
            self.buffers,
            tuple([child.exported() for child in self.children]),
            None if self.dictionary is None else self.dictionary.exported(),
        )


def check_copy(copy: object) -> None:
    """Check the parameter `copy` of a public function."""
    if copy is not None and not isinstance(copy, (bool, np.bool_)):
        raise TypeError(f"copy must be None, True or False, got {copy!r}")


def request(x: Any) -> tuple[Any, list[Any]]:
    """Return the capsule of the schema, and the capsules of all arrays that `x` exports."""
    for method in ("__arrow_c_array__", "__arrow_c_device_array__"):
        export = getattr(x, method, None)
        if export is not None:
            capsules = export()
            if not isinstance(capsules, tuple) or len(capsules) != 2:
                raise ValueError(f"{method}() must return two capsules, got {capsules!r}")
            return capsules[0], [capsules[1]]
    stream = getattr(x, "__arrow_c_stream__", None)
    if stream is not None:
        return _memrt.arrays_of_stream(stream())
    raise TypeError(f"x must be an Arrow array with __arrow_c_array__, got {type(x).__name__}")


def take_all(schema: Any, arrays: list[Any], policy: Policy | None) -> list[Node]:
    """Take arrays out of their capsules."""
    nodes = []
    for array in arrays:  # no comprehension: CPython 3.11 leaks variables in cells without memory
        nodes.append(take(schema, array, policy))
    return nodes


def take(schema: Any, array: Any, policy: Policy | None) -> Node:
    """Take an array out of its capsules. `array`: None for an array without elements."""
    root, description = _memrt.take_arrow_parts(schema, array, policy)
    return _Reader(root, policy).read(description)


def _bitmap_bytes(bits: int) -> int:
    return (bits + 7) // 8


class _Reader:
    """Reader of the parts of an array. Each buffer keeps the array alive through `root`."""

    def __init__(self, root: _memrt.MemInfo | None, policy: Policy | None) -> None:
        self.root, self.policy = root, policy

    def read(self, description: tuple[Any, ...]) -> Node:
        (format, name, is_bool8, flags, length, nulls, offset, addresses, children,
         dictionary) = description  # fmt: skip
        layout = layout_of(format)
        self.check_numbers(format, layout, addresses, children, dictionary)
        nodes = [*map(self.read, children)]  # no tuple(map()), which leaks items without memory
        node = Node(
            format,
            name,
            is_bool8,
            flags,
            length,
            length if layout.kind == "null" else nulls,
            offset,
            (),
            tuple(nodes),
            None if dictionary is None else self.read(dictionary),
        )
        node = replace(node, buffers=self.buffers(node, layout, addresses))
        _check_children(node, layout)
        return node

    def check_numbers(
        self,
        format: str,
        layout: Layout,
        addresses: tuple[int, ...],
        children: tuple[object, ...],
        dictionary: object,
    ) -> None:
        """Check the number of buffers and children. An array that does not exist has no buffers."""
        count = len(addresses)
        more = layout.kind == "views" and count > layout.buffers
        if self.root is not None and count != layout.buffers and not more:
            raise _malformed(f"format {format!r} must have {layout.buffers} buffers, got {count}")
        if layout.children is not None and len(children) != layout.children:
            raise _malformed(
                f"format {format!r} must have {layout.children} children, got {len(children)}"
            )
        if dictionary is not None and format not in tuple("cCsSiIlL"):
            raise _malformed(f"indices of a dictionary must be integers, got format {format!r}")

    def buffers(
        self, node: Node, layout: Layout, addresses: tuple[int, ...]
    ) -> tuple[Part | None, ...]:
        if not addresses or node.length == 0:
            return (None,) * layout.buffers
        end = node.offset + node.length
        validity = self.validity(node, addresses[0], end)
        if layout.kind == "fixed":
            return validity, self.wrap(addresses[1], end * layout.width)
        if layout.kind == "bits":
            return validity, self.wrap(addresses[1], _bitmap_bytes(end))
        if layout.kind == "list":
            return validity, self.wrap(addresses[1], (end + 1) * layout.width)
        if layout.kind == "list views":
            nbytes = end * layout.width
            return validity, self.wrap(addresses[1], nbytes), self.wrap(addresses[2], nbytes)
        if layout.kind == "text":
            return self.text(node, validity, layout, addresses)
        if layout.kind == "views":
            return self.views(validity, end, addresses)
        return (validity,)

    def validity(self, node: Node, address: int, end: int) -> Part | None:
        if node.nulls == 0:
            return None
        if address == 0:
            if node.nulls > 0:
                raise _malformed("an array with nulls must have a validity bitmap")
            return None
        return self.wrap(address, _bitmap_bytes(end))

    def text(
        self, node: Node, validity: Part | None, layout: Layout, addresses: tuple[int, ...]
    ) -> tuple[Part | None, ...]:
        offsets = self.wrap(addresses[1], (node.offset + node.length + 1) * layout.width)
        last = int(replace(node, buffers=(None, offsets)).offsets()[-1])
        if last < 0:
            raise _malformed(f"offsets must not be negative, got {last}")
        return validity, offsets, self.wrap(addresses[2], last)

    def views(
        self, validity: Part | None, end: int, addresses: tuple[int, ...]
    ) -> tuple[Part | None, ...]:
        count = len(addresses) - 3
        sizes: list[int] = []
        table = self.wrap(addresses[-1], count * 8)
        if table is not None:
            sizes = _memrt.as_array(table.mi, count, "i8").tolist()
        if any(size < 0 for size in sizes):
            raise _malformed("sizes of data buffers must not be negative")
        data = [self.wrap(*each) for each in zip(addresses[2:-1], sizes, strict=True)]
        return validity, self.wrap(addresses[1], end * 16), *data, table

    def wrap(self, address: int, nbytes: int) -> Part | None:
        if nbytes == 0:
            return None
        if address == 0:
            raise _malformed("an array with elements must have data")
        if nbytes > sys.maxsize or address + nbytes > 2 * sys.maxsize + 1:
            raise _malformed("elements would lie outside of the address space")
        mi = _memrt.wrap(address, nbytes, None, self.root, readonly=True, policy=self.policy)
        return Part(mi, 0)


def _check_children(node: Node, layout: Layout) -> None:
    """Check that the children have all elements that the array refers to."""
    if node.length == 0 or not node.children:
        return
    end = node.offset + node.length
    wanted = 0
    if layout.kind == "struct":
        wanted = end
    elif layout.kind == "rows":
        wanted = end * layout.width
    elif layout.kind == "list":
        wanted = int(node.offsets()[-1])
    shortest = min([child.length for child in node.children])
    if shortest < wanted:
        raise _malformed(f"children must have at least {wanted} elements, got {shortest}")


def _malformed(rule: str) -> BufferError:
    return BufferError(f"cannot take the memory of an Arrow array: {rule}")


def _bytes_of(part: Part | None) -> np.ndarray:
    return part.bytes() if part is not None else np.empty(0, "u1")


def parts_of(node: Node, column_of: Any) -> dict[str, Any]:
    """Return the arrays of `Column.parts`. `column_of` returns a Column for a Node."""
    kind, width = node.layout.kind, node.layout.width
    parts: dict[str, Any] = {
        "validity": node.bits(0) if node.validity is not None else None,
        "first_bit": node.offset % 8,
    }
    if kind == "fixed":
        parts["values"] = node.stored()
    elif kind == "bits":
        parts["bits"] = node.bits(1)
    elif kind == "struct":
        parts["fields"] = fields = []
        for child in node.children:
            fields.append(column_of(child.part(node.offset, node.length)))
    elif kind == "rows":
        items = node.children[0].part(node.offset * width, node.length * width)
        parts["items"] = column_of(items)
    elif kind == "views":
        parts["views"] = node.view(1, VIEW, node.offset, node.length)
        parts["data"] = [_bytes_of(part) for part in node.buffers[2:-1]]
    elif kind == "list views":
        dtype = np.dtype(f"i{width}")
        parts["offsets"] = node.view(1, dtype, node.offset, node.length)
        parts["sizes"] = node.view(2, dtype, node.offset, node.length)
    elif kind in ("text", "list"):
        parts["offsets"] = node.offsets()
    if kind == "text":
        parts["data"] = node.view(2, np.dtype("u1"), 0, int(node.offsets()[-1]))
    elif kind in ("list", "list views"):
        parts["items"] = column_of(node.children[0])
    if node.dictionary is not None:
        parts["dictionary"] = column_of(node.dictionary)
    return parts
