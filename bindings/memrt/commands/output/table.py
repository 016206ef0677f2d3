"""Format tables as text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


def text_table(rows: Iterable[Sequence[str]], right: Iterable[int] = ()) -> str:
    """Return rows with aligned columns. The last column is not padded.

    Parameters
    ----------
    right : Iterable[int]
        Indices of right-aligned columns.
    """
    lines = [tuple(row) for row in rows]
    if not lines:
        return ""
    widths = [max(len(row[i]) for row in lines) for i in range(len(lines[0]))]
    aligned = set(right)
    return "\n".join(_line(row, widths, aligned) for row in lines)


def _line(row: Sequence[str], widths: list[int], right: set[int]) -> str:
    cells = [
        cell.rjust(width) if i in right else cell.ljust(width)
        for i, (cell, width) in enumerate(zip(row, widths, strict=True))
    ]
    return ("  " + "  ".join(cells)).rstrip()


def text_cell(text: str) -> str:
    """Return a cell that a spreadsheet shows as text: a formula gets an apostrophe in front."""
    return f"'{text}" if text.startswith(_FORMULA_STARTS) else text
