"""Select the parts of third-party test suites, and pack the test files into pieces."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

NUMPY = tuple(
    f"numpy/{name}"
    for name in ("_core", "lib", "ma", "linalg", "fft", "random", "polynomial", "matrixlib")
)
PROJECTS = ("xarray", "skimage", "scipy", "sklearn", "pandas")  # shortest first

# Files that cover each way of allocating in about a minute, in all configurations of the gate.
QUICK = (
    "numpy/linalg/tests/test_deprecations.py",
    "numpy/lib/tests/test_io.py",
    "numpy/lib/tests/test_shape_base.py",
    "numpy/_core/tests/test_mem_overlap.py",
    "numpy/_core/tests/test_mem_policy.py",
    "numpy/_core/tests/test_records.py",
    "numpy/_core/tests/test_indexing.py",
    "numpy/ma/tests/test_old_ma.py",
)

PACKED = 300_000  # bytes of source per piece; a larger file is a piece by itself


@dataclass(frozen=True)
class Piece:
    """Test files that one process runs, by path relative to site-packages."""

    part: str
    files: tuple[str, ...]
    size: int

    def label(self) -> str:
        """Return a label: the first file, and the number of further files."""
        more = f" and {len(self.files) - 1} more" if len(self.files) > 1 else ""
        return f"{self.files[0]}{more}"

    def file_name(self) -> str:
        digest = hashlib.sha256("\n".join(self.files).encode()).hexdigest()[:8]
        return f"{self.part.replace('/', '-')}-{digest}.json"


def files_of(site: Path, part: str) -> list[Path]:
    """Return the test files below a part, sorted by path."""
    found = (site / part).rglob("test_*.py")
    return sorted(file for file in found if "tests" in file.relative_to(site).parts)


def packed(site: Path, part: str, files: Sequence[Path]) -> Iterator[Piece]:
    """Pack small files into shared pieces, because a process takes seconds to start."""
    pack: list[Path] = []
    for file in files:
        if pack and _size([*pack, file]) > PACKED:
            yield _piece(site, part, pack)
            pack = []
        pack.append(file)
    if pack:
        yield _piece(site, part, pack)


def _size(files: Sequence[Path]) -> int:
    return sum(file.stat().st_size for file in files)


def _piece(site: Path, part: str, files: Sequence[Path]) -> Piece:
    return Piece(part, tuple(str(file.relative_to(site)) for file in files), _size(files))


def pieces(site: Path, parts: Sequence[str], pattern: str = "") -> list[Piece]:
    """Return the pieces of the parts, limited to files with `pattern` in their paths."""
    found: list[Piece] = []
    for part in parts:
        files = [f for f in files_of(site, part) if pattern in str(f.relative_to(site))]
        found.extend(packed(site, part, files))
    return found


def quick_pieces(site: Path) -> list[Piece]:
    """Return the pieces of the quick part, for the gate."""
    return list(packed(site, "quick", [site / file for file in QUICK]))
