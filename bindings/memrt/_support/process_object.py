"""Copying and pickling of objects of one process, such as policies and scopes."""

from __future__ import annotations

from typing import ClassVar, NoReturn, TypeVar

_T = TypeVar("_T", bound="ProcessObject")


class ProcessObject:
    """Named object of one process. A copy is the same object, and pickling raises TypeError."""

    __slots__ = ()

    _kind: ClassVar[str]
    """Noun for the object in messages."""
    _pickle_advice: ClassVar[str]
    """Replacement of pickling, as an instruction."""
    _name: str

    def __copy__(self: _T) -> _T:
        return self

    def __deepcopy__(self: _T, memo: dict[int, object]) -> _T:
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            f"cannot pickle {self._kind} {self._name!r}: a {self._kind} belongs to one process, "
            f"so {self._pickle_advice}"
        )
