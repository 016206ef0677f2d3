"""Versions of Numba that memrt is tested with, each with a NumPy and a Python version."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
MATRIX = ROOT / "bindings" / "memrt" / "numba" / "matrix.json"

# Packages besides Numba and memrt: pytest, and requirements of Numba's tests and of our tests and
# examples. TBB is one of Numba's threading layers.
TOOLS = ("pytest==9.2.0", "pytest-xdist==3.8.0", "cffi", "Jinja2", "setuptools<81", "scipy",
         "tbb; platform_machine == 'x86_64'")  # fmt: skip


@dataclass(frozen=True)
class Row:
    """Versions that are tested together."""

    numba: str
    numpy: str
    python: str

    def requirements(self) -> list[str]:
        return [f"numba=={self.numba}", f"numpy=={self.numpy}", *TOOLS]


def rows() -> list[Row]:
    """Return the rows of the matrix, oldest first."""
    return [Row(**row) for row in json.loads(MATRIX.read_text(encoding="utf-8"))]
