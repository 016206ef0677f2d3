"""Amounts as people read them."""

from __future__ import annotations

_STEPS = ("KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


def human_bytes(count: int) -> str:
    """A number of bytes with a binary unit: 1536 is "1.5 KiB"."""
    if abs(count) < 1024:
        return f"{count} B"
    amount = float(count)
    for unit in _STEPS:
        amount /= 1024
        if abs(amount) < 1023.95 or unit == _STEPS[-1]:
            break
    return f"{amount:.1f} {unit}"


def human_seconds(seconds: float) -> str:
    """A time span with a unit: 0.0021 is "2.1 ms"."""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds / 1e-6:.0f} µs"
