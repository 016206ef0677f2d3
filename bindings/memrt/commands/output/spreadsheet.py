"""Cells of CSV files that people open in a spreadsheet."""

from __future__ import annotations

_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


def text_cell(text: str) -> str:
    """Return a cell that a spreadsheet shows as text: a formula gets an apostrophe in front."""
    return f"'{text}" if text.startswith(_FORMULA_STARTS) else text
