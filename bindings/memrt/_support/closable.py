"""Base of registrations that end with ``close`` or with a ``with`` block."""

from __future__ import annotations

from types import TracebackType
from typing import TypeVar

_T = TypeVar("_T", bound="Closable")


class Closable:
    """Object that is a context manager: the end of the block closes the object."""

    __slots__ = ()

    def close(self) -> None:
        """End the registration."""
        raise NotImplementedError

    def __enter__(self: _T) -> _T:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None = None,
        error: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None:
        self.close()
