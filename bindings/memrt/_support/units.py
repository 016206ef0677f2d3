"""Format and parse readable amounts: bytes, seconds and counts."""

from __future__ import annotations

import re

_STEPS = ("KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


def human_bytes(count: int) -> str:
    """Return a number of bytes with a binary unit: 1536 gives "1.5 KiB"."""
    if abs(count) < 1024:
        return f"{count} B"
    amount = float(count)
    for unit in _STEPS:
        amount /= 1024
        if abs(amount) < 1023.95 or unit == _STEPS[-1]:
            break
    return f"{amount:.1f} {unit}"


def human_seconds(seconds: float) -> str:
    """Return a time span with a unit: 0.0021 gives "2.1 ms"."""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds / 1e-6:.0f} µs"


_AMOUNT = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?)(b|ib)?", re.IGNORECASE)


def parse_bytes(amount: int | str, name: str = "size") -> int:
    """Return the bytes of a number, or of a text like "512K", "20 MB" or "1.5 GiB".

    K, M, G, T and KiB, MiB, GiB, TiB are powers of 1024, as in memrt's options. kB, MB, GB, TB are
    powers of 1000.

    Raises
    ------
    ValueError
        The text has another form.
    """
    if isinstance(amount, int):
        return amount
    found = _AMOUNT.fullmatch(amount.strip())
    if found is None:
        raise ValueError(
            f"{name} must be a number of bytes like 20000000, 20 MB or 512K, got {amount!r}"
        )
    number, unit, ending = found.groups()
    base = 1000 if (ending or "").lower() == "b" else 1024
    scale: int = base ** " kmgt".index(unit.lower() or " ")
    return round(float(number) * scale)


_COUNT = re.compile(r"(\d+)\s*([km]?)", re.IGNORECASE)


def parse_count(text: str) -> int:
    """Return the whole number of a text like "20000", "20K" or "1M"; K is 1000 and M 1000**2.

    Raises
    ------
    ValueError
        The text has another form.
    """
    found = _COUNT.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"count must be a whole number like 20000, 20K or 1M, got {text!r}")
    scale: int = 1000 ** " km".index(found[2].lower() or " ")
    return int(found[1]) * scale


def plural(count: int, what: str) -> str:
    """Return a count with a noun: "1 buffer", "2,000 buffers"."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"
