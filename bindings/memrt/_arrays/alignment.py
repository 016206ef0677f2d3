"""Compare the alignment of an array's addresses with the alignment that NumPy needs.

NumPy's page "Memory alignment" defines the two alignments of a dtype and their effects. The
functions named here come from NumPy's sources (common.h, lowlevel_strided_loops.c).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from memrt import _memrt
from memrt._arrays.creation import array as copy_of
from memrt._policy.policy import Policy
from memrt._support.public import public

SPECIAL = (16, 32, 64, 4096)  # SSE and NEON, AVX, AVX-512 and cache lines, pages

_UINTS = {size: np.dtype(f"u{min(size, 8)}").alignment for size in (1, 2, 4, 8, 16)}


def uint_alignment(dtype: np.dtype) -> int:
    """Return the alignment at which NumPy copies items as unsigned integers (npy_uint_alignment).

    The value 0 means that NumPy never copies such items as integers. NumPy copies an item of
    16 bytes as two integers of 8 bytes.
    """
    return _UINTS.get(dtype.itemsize, 0)


@public("memrt.types")
@dataclass(frozen=True, slots=True)
class Alignment:
    """Actual and required alignment of an array, or of a field of a structured array.

    :func:`memrt.alignment` returns the object. The object prints as a report.

    Examples
    --------
    >>> import memrt
    >>> import numpy as np
    >>> record = np.zeros(2, [("flag", "u1"), ("value", "f8")])
    >>> [field.is_true_aligned for field in memrt.alignment(record).fields]
    [True, False]
    """

    dtype: np.dtype
    """dtype of the array or field."""
    path: str
    """Field names joined by dots; empty for the array itself."""
    address: int
    """Address of the first element."""
    items: int
    """Number of elements."""
    pointer: int
    """Largest power of two that divides the address; 1 << 63 for a null address (no bytes)."""
    strides: int
    """Largest power of two that divides all strides of axes with more than one element; 1 << 63
    without such axes."""
    true: int
    """Alignment that the C type needs ("true" alignment), in bytes: ``dtype.alignment``."""
    uint: int
    """Alignment that copies as unsigned integers need ("uint" alignment); 0 where NumPy never
    copies as integers."""
    fields: tuple[Alignment, ...]
    """Alignment of each field of a structured dtype."""

    @property
    def actual(self) -> int:
        """Alignment that every element has: the smaller of `pointer` and `strides`."""
        return min(self.pointer, self.strides)

    @property
    def is_true_aligned(self) -> bool:
        """Whether every element has the alignment of its C type: NumPy's flag ``ALIGNED``."""
        return self.items == 0 or self.actual >= self.true

    @property
    def is_uint_aligned(self) -> bool:
        """Whether NumPy may copy elements as unsigned integers."""
        return self.uint != 0 and (self.items == 0 or self.actual >= self.uint)

    @property
    def copies(self) -> str:
        """How NumPy copies elements to or from another array of the same dtype."""
        if self.is_uint_aligned:
            size = self.dtype.itemsize
            return "as 2 uint64" if size == 16 else f"as uint{8 * size}"
        return f"by memmove of {self.dtype.itemsize} bytes"

    @property
    def casts(self) -> str:
        """How casts and universal functions access the elements."""
        return "directly" if self.is_true_aligned else "through an aligned buffer"

    @property
    def _flag(self) -> str:
        return "ALIGNED" if self.is_true_aligned else "not ALIGNED"

    def meets(self, alignment: int) -> bool:
        """Return whether the address of the first element is a multiple of an alignment.

        Parameters
        ----------
        alignment : int
            Bytes, a power of two.

        Returns
        -------
        bool
            True if the address is a multiple of `alignment`.
        """
        return self.pointer >= _power_of_two(alignment)

    @property
    def advice(self) -> list[str]:
        """Changes that would make access faster, one sentence each; empty if no change would."""
        return [each for part in self._parts() for each in part._own_advice()]

    def _parts(self) -> Iterator[Alignment]:
        yield self
        for field in self.fields:
            yield from field._parts()

    def _own_advice(self) -> Iterator[str]:
        what = f"field {self.path}" if self.path else "the array"
        if not self.is_true_aligned:
            cure = (
                "create the dtype with align=True"
                if self.path
                else f"memrt.aligned(array, {self.true}) returns an aligned copy"
            )
            yield f"{what} is not aligned to the {self.true} bytes of {self.dtype}: {cure}"
        elif self.uint and not self.is_uint_aligned:
            yield (
                f"{what} is copied byte by byte: NumPy copies as integers at multiples of "
                f"{self.uint} bytes"
            )

    def __repr__(self) -> str:
        lines = [f"memrt.types.Alignment of {_name(self.dtype)} at {self.address:#x}:"]
        lines += [f"  {line}" for line in self._rows()]
        lines += [f"  {sentence}" for sentence in self.advice]
        return "\n".join(lines)

    def _rows(self) -> Iterator[str]:
        yield f"address      a multiple of {_power_text(self.pointer)}"
        yield f"strides      multiples of {_power_text(self.strides)}"
        met = ", ".join(f"{size} {'yes' if self.meets(size) else 'no'}" for size in SPECIAL)
        yield f"meets        {met}"
        yield f"true         {self.true}: {self._flag}, casts {self.casts}"
        yield f"uint         {self.uint or 'none'}: copies {self.copies}"
        for field in self.fields:
            yield from field._field_rows()

    def _field_rows(self) -> Iterator[str]:
        yield (
            f"{'.' + self.path:12} {_name(self.dtype)}, true {self.true}, "
            f"uint {self.uint or 'none'}, has {_power_text(self.actual)}: {self._flag}, "
            f"copies {self.copies}, casts {self.casts}"
        )
        for field in self.fields:
            yield from field._field_rows()


_ANY = 1 << 63


def _name(dtype: np.dtype) -> str:
    if dtype.names is None:
        return str(dtype)
    return f"{len(dtype.names)} fields in {dtype.itemsize} bytes"


def _power_text(power: int) -> str:
    return "anything" if power == _ANY else f"{power:,}"


def _divisor(number: int) -> int:
    """Return the largest power of two that divides `number`, or _ANY for 0."""
    return number & -number or _ANY


def _power_of_two(alignment: int) -> int:
    if not isinstance(alignment, (int, np.integer)) or isinstance(alignment, bool):
        raise TypeError(f"alignment must be a whole number of bytes, got {alignment!r}")
    if alignment <= 0 or alignment & (alignment - 1):
        raise ValueError(f"alignment must be a power of two, got {alignment}")
    return int(alignment)


def _measure_array(array: np.ndarray, path: str) -> Alignment:
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
        yield _measure_array(array[name], prefix + name)


@public("memrt")
def alignment(array: np.ndarray) -> Alignment:
    """Report the alignment of an array, the alignment that the dtype needs, and how NumPy copies.

    Parameters
    ----------
    array : numpy.ndarray
        Array of any dtype. The contents are not read.

    Returns
    -------
    memrt.types.Alignment
        Report with the actual and required alignments, and advice.

    Raises
    ------
    TypeError
        `array` is not a numpy.ndarray.

    Notes
    -----
    Source: NumPy's page "Memory alignment". ``Alignment.is_true_aligned`` follows NumPy's rules for
    the flag ``ALIGNED``, under which strides along axes of one element do not count.

    Examples
    --------
    >>> import memrt
    >>> report = memrt.alignment(memrt.zeros(8, alignment=64))
    >>> report.meets(64), report.true, report.advice
    (True, 8, [])
    """
    if not isinstance(array, np.ndarray):
        raise TypeError(
            f"alignment() argument 'array' must be a numpy.ndarray, got {type(array).__name__}"
        )
    return _measure_array(array, "")


@public("memrt")
def aligned(array: np.ndarray, alignment: int) -> np.ndarray:
    """Return an array whose data has an alignment: the array itself, or a copy in memory of memrt.

    Parameters
    ----------
    array : numpy.ndarray
        Any array.
    alignment : int
        Bytes, a power of two.

    Returns
    -------
    numpy.ndarray
        `array`, if the address is a multiple of `alignment` and the flag ``ALIGNED`` is set.
        Otherwise a contiguous, writeable copy of the base class, in Fortran order if `array` is.

    Raises
    ------
    TypeError
        `array` is not a numpy.ndarray, or `alignment` is not a whole number.
    ValueError
        `alignment` is not a power of two.
    MemoryError
        The allocation of the copy failed.

    Examples
    --------
    >>> import memrt
    >>> import numpy as np
    >>> a = memrt.aligned(np.arange(5), 4096)
    >>> a, a.ctypes.data % 4096
    (array([0, 1, 2, 3, 4]), 0)
    """
    if not isinstance(array, np.ndarray):
        raise TypeError(
            f"aligned() argument 'array' must be a numpy.ndarray, got {type(array).__name__}"
        )
    wanted = _power_of_two(alignment)
    if _memrt.address(array) % wanted == 0 and array.flags.aligned:
        return array
    needed = max(wanted, array.dtype.alignment)
    if array.dtype.hasobject:  # NumPy allocates such memory through the handler of the policy
        return copy_of(array, policy=Policy(alignment=needed))
    return copy_of(array, alignment=needed)
