"""Declare Numba's types in C. Each declaration has the memory layout of compiled code."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from numba import types

from memrt.numba._objects.errors import ObjectError

DIMENSIONS_MAX = 8  # MEMRT_NRT_DIMENSIONS_MAX of memrt/nrt.h
_FLOATS = {32: "float", 64: "double"}


@dataclass(frozen=True)
class CType:
    """A type in C.

    Arrays, strings, tuples and complex numbers are passed by address, since LLVM and C compilers
    pass structs by value in different registers.
    """

    name: str
    is_scalar: bool
    count: int = 1  # number of values: 2 for the parts of a complex number

    def declare_argument(self, name: str) -> str:
        if self.is_scalar:
            return f"{self.name} {name}"
        return f"const {self.declare_result(name)}"

    def declare_result(self, name: str) -> str:
        return f"{self.name} {name}[{self.count}]" if self.count > 1 else f"{self.name} *{name}"

    def declare_member(self, name: str) -> str:
        return f"{self.name} {name}[{self.count}]" if self.count > 1 else f"{self.name} {name}"


@dataclass
class Declarations:
    """The C types of a header. `structs` has the definitions of the structs for tuples."""

    structs: list[str] = field(default_factory=list)

    def declare(self, numba_type: Any, name: str) -> CType:
        """Return the C type of a Numba type.

        Parameters
        ----------
        name : str
            Name for the struct of a tuple, without the suffix ``_t``.

        Raises
        ------
        ObjectError
            If the type has no declaration in C.
        """
        plain = types.unliteral(numba_type)
        number = _declare_number(plain)
        if number is not None:
            return number
        if isinstance(plain, types.Array):
            return _declare_array(plain)
        if isinstance(plain, types.UnicodeType):
            return CType("memrt_nrt_string_t", is_scalar=False)
        if isinstance(plain, types.BaseTuple) and len(plain) > 0:
            return self._declare_tuple(plain, name)
        raise ObjectError(
            "argument and result types must be numbers, arrays of numbers, strings or tuples, "
            f"got {plain}"
        )

    def _declare_tuple(self, plain: Any, name: str) -> CType:
        members = [
            self.declare(each, f"{name}_f{index}").declare_member(f"f{index}")
            for index, each in enumerate(plain)
        ]
        body = "".join(f"    {member};\n" for member in members)
        self.structs.append(f"/// {plain}\ntypedef struct {name} {{\n{body}}} {name}_t;\n")
        return CType(f"{name}_t", is_scalar=False)


def is_scalar(numba_type: Any) -> bool:
    """Return whether a type is passed by value."""
    return isinstance(types.unliteral(numba_type), types.Boolean | types.Integer | types.Float)


def _declare_number(plain: Any) -> CType | None:
    by_value = is_scalar(plain)
    if isinstance(plain, types.Boolean):
        return CType("bool", by_value)
    if isinstance(plain, types.Integer):
        return CType(f"{'' if plain.signed else 'u'}int{plain.bitwidth}_t", by_value)
    if isinstance(plain, types.Float) and plain.bitwidth in _FLOATS:
        return CType(_FLOATS[plain.bitwidth], by_value)
    if isinstance(plain, types.Complex):
        return CType(_FLOATS[plain.bitwidth // 2], by_value, count=2)
    return None


def _declare_array(plain: Any) -> CType:
    if not 1 <= plain.ndim <= DIMENSIONS_MAX:
        raise ObjectError(f"arrays must have 1 to {DIMENSIONS_MAX} dimensions, got {plain}")
    if _declare_number(plain.dtype) is None:
        raise ObjectError(f"elements of arrays must be numbers, got {plain}")
    return CType(f"memrt_nrt_array{plain.ndim}_t", is_scalar=False)
