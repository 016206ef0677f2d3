"""Encode messages of Protocol Buffers, as far as the formats of other programs need."""

from __future__ import annotations

from collections.abc import Iterable


def field(number: int, value: int | str | bytes) -> bytes:
    """Encode a field of a message: a number, a text, or a nested message."""
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    content = value.encode("utf-8", "replace") if isinstance(value, str) else value
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def packed(number: int, values: Iterable[int]) -> bytes:
    """Encode a repeated field of numbers."""
    return field(number, b"".join(map(_varint, values)))


def _varint(value: int) -> bytes:
    value &= 2**64 - 1  # as two's complement
    parts = bytearray()
    while value > 127:
        parts.append(value & 127 | 128)
        value >>= 7
    parts.append(value)
    return bytes(parts)
