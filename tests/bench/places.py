"""Paths that the benchmark reads and writes, and compilation of its C files."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
WORKERS = HERE / "workers"
OUT = ROOT / "build" / "bench"
PAGE = ROOT / "docs" / "benchmarks.md"
FIGURES = ROOT / "docs" / "benchmarks"  # JSON and charts of the page
UNCOUNTED = ROOT / "build" / "uncounted" / "libmemrt.so"  # built by ./dev bench


def compiled(source: Path, *flags: str, folder: Path = OUT) -> Path:
    """Return the shared library of one C file. Build the library if it is missing or outdated."""
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / f"{source.stem}.so"
    if not target.exists() or target.stat().st_mtime < source.stat().st_mtime:
        command = ["cc", "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-pthread", "-shared"]
        fresh = target.with_suffix(f".{os.getpid()}")
        subprocess.run([*command, *flags, "-fPIC", "-o", fresh, source], check=True)
        fresh.replace(target)
    return target
