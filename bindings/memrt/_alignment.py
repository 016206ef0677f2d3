"""Alignment: what NumPy asks of the addresses of an array, and what they give.

The two alignments of a dtype, and what follows from each, are those of NumPy's page "Memory
alignment"; the functions named here are of its sources (common.h, lowlevel_strided_loops.c).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from memrt import _memrt
from memrt._arrays import array as copy_of
from memrt._policy import Policy

SPECIAL = (16, 32, 64, 4096)  # SSE and NEON, AVX, AVX-512 and cache lines, pages

_UINTS = {size: np.dtype(f"u{min(size, 8)}").alignment for size in (1, 2, 4, 8, 16)}


def uint_alignment(dtype: np.dtype) -> int:
    """Alignment with which NumPy copies items as unsigned integers; 0: never (npy_uint_alignment).

    Items of 16 bytes are copied as two of 8.
    """
    return _UINTS.get(dtype.itemsize, 0)


@dataclass(frozen=True, slots=True)
class Alignment:
    """What alignment an array, or a field of a structured one, has and needs."""

    dtype: np.dtype
    """Of the array or field."""
    path: str
    """Names of fields joined by dots; empty for the array itself."""
    address: int
    """Of the first element."""
    items: int
    """Elements."""
    pointer: int
    """The largest power of two that divides the address; of none, of no bytes, 1 << 63."""
    strides: int
    """The same of all strides along which there is more than one element."""
    true: int
    """What the C type needs ("true" alignment), in bytes: ``dtype.alignment``."""
    uint: int
    """What copies by unsigned integers need ("uint" alignment); 0 where NumPy never makes any."""
    fields: tuple[Alignment, ...]
    """Of the fields of a structured dtype."""

    @property
    def actual(self) -> int:
        """What every element has: the smaller of `pointer` and `strides`."""
        return min(self.pointer, self.strides)

    @property
    def is_true_aligned(self) -> bool:
        """Whether every element has what its C type needs: NumPy's flag ``ALIGNED``."""
        return self.items == 0 or self.actual >= self.true

    @property
    def is_uint_aligned(self) -> bool:
        """Whether NumPy may copy elements as unsigned integers."""
        return self.uint != 0 and (self.items == 0 or self.actual >= self.uint)

    @property
    def copies(self) -> str:
        """How NumPy copies elements to or from another place of the same dtype."""
        if self.is_uint_aligned:
            size = self.dtype.itemsize
            return "as 2 uint64" if size == 16 else f"as uint{8 * size}"
        return f"by memmove of {self.dtype.itemsize} bytes"

    @property
    def casts(self) -> str:
        """How casts, and functions of whole arrays, get at the elements."""
        return "directly" if self.is_true_aligned else "through an aligned buffer"

    @property
    def _flag(self) -> str:
        return "ALIGNED" if self.is_true_aligned else "not ALIGNED"

    def meets(self, alignment: int) -> bool:
        """Whether the first element is at a multiple of `alignment`, a power of two."""
        return self.pointer >= _power_of_two(alignment)

    @property
    def advice(self) -> list[str]:
        """What would make access quicker, one sentence each; empty where nothing would."""
        return [each for part in self._parts() for each in part._own_advice()]

    def _parts(self) -> Iterator[Alignment]:
        yield self
        for field in self.fields:
            yield from field._parts()

    def _own_advice(self) -> Iterator[str]:
        what = f"field {self.path}" if self.path else "the array"
        if not self.is_true_aligned:
            cure = (
                "align=True in its dtype gives it an offset that does"
                if self.path
                else f"memrt.aligned(array, {self.true}) makes a copy that does"
            )
            yield f"{what} does not meet the {self.true} bytes of {self.dtype}: {cure}"
        elif self.uint and not self.is_uint_aligned:
            yield (
                f"{what} is copied byte by byte: at a multiple of {self.uint} it would be copied "
                "as integers"
            )

    def __repr__(self) -> str:
        lines = [f"memrt.Alignment of {_name(self.dtype)} at {self.address:#x}:"]
        lines += [f"  {line}" for line in self._rows()]
        lines += [f"  {sentence}" for sentence in self.advice]
        return "\n".join(lines)

    def _rows(self) -> Iterator[str]:
        yield f"address      a multiple of {_amount(self.pointer)}"
        yield f"strides      multiples of {_amount(self.strides)}"
        met = ", ".join(f"{size} {'yes' if self.meets(size) else 'no'}" for size in SPECIAL)
        yield f"meets        {met}"
        yield f"true         {self.true}: {self._flag}, casts {self.casts}"
        yield f"uint         {self.uint or 'none'}: copies {self.copies}"
        for field in self.fields:
            yield from field._field_rows()

    def _field_rows(self) -> Iterator[str]:
        yield (
            f"{'.' + self.path:12} {_name(self.dtype)}, true {self.true}, "
            f"uint {self.uint or 'none'}, has {_amount(self.actual)}: {self._flag}, "
            f"copies {self.copies}, casts {self.casts}"
        )
        for field in self.fields:
            yield from field._field_rows()


_ANY = 1 << 63


def _name(dtype: np.dtype) -> str:
    if dtype.names is None:
        return str(dtype)
    return f"{len(dtype.names)} fields in {dtype.itemsize} bytes"


def _amount(power: int) -> str:
    return "anything" if power == _ANY else f"{power:,}"


def _divisor(number: int) -> int:
    """The largest power of two that divides it."""
    return number & -number or _ANY


def _power_of_two(alignment: int) -> int:
    if not isinstance(alignment, (int, np.integer)) or isinstance(alignment, bool):
        raise TypeError(f"an alignment is a number of bytes, got {alignment!r}")
    if alignment <= 0 or alignment & (alignment - 1):
        raise ValueError(f"an alignment is a power of two, got {alignment}")
    return int(alignment)


def _of(array: np.ndarray, path: str) -> Alignment:
    steps = (step for step, length in zip(array.strides, array.shape, strict=True) if length > 1)
    address = _memrt.address(array)
    return Alignment(
        array.dtype,
        path,
        address,
        array.size,
        _divisor(address),
        min(map(_divisor, steps), default=_ANY),
        array.dtype.alignment,
        uint_alignment(array.dtype),
        tuple(_fields(array, f"{path}." if path else "")),
    )


def _fields(array: np.ndarray, prefix: str) -> Iterator[Alignment]:
    for name in array.dtype.names or ():
        yield _of(array[name], prefix + name)


def alignment(array: np.ndarray) -> Alignment:
    """What alignment an array has, what its dtype needs, and how NumPy will therefore get at it.

    Sources: NumPy's page "Memory alignment"; ``Alignment.is_true_aligned`` is the flag ``ALIGNED``
    by its rules, in which strides along axes of one element do not count.

    Args:
        array: any array of any dtype; its contents are not looked at.

    Raises:
        TypeError: when it is no ``numpy.ndarray``.
    """
    if not isinstance(array, np.ndarray):
        raise TypeError(f"alignment() takes a numpy.ndarray, got {type(array).__name__}")
    return _of(array, "")


def aligned(array: np.ndarray, alignment: int) -> np.ndarray:
    """The array itself if its data is at a multiple of `alignment`, else a copy in memrt's memory.

    Besides, every element has what its C type needs, so that the flag ``ALIGNED`` is set in what is
    returned. A copy is a plain, writeable ndarray, contiguous, in Fortran's order where `array` is.

    Args:
        array: any array.
        alignment: bytes, a power of two.

    Raises:
        TypeError, ValueError: when they are something else.
        MemoryError: when there is none for a copy.
    """
    if not isinstance(array, np.ndarray):
        raise TypeError(f"aligned() takes a numpy.ndarray, got {type(array).__name__}")
    wanted = _power_of_two(alignment)
    if _memrt.address(array) % wanted == 0 and array.flags.aligned:
        return array
    needed = max(wanted, array.dtype.alignment)
    if array.dtype.hasobject:  # whose memory is the handler's
        return copy_of(array, policy=Policy(alignment=needed))
    return copy_of(array, align=needed)
