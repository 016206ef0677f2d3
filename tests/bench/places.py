"""Paths that the benchmark reads and writes, and compilation of its C files."""

from __future__ import annotations

import os
import subprocess
import threading
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
WORKERS = HERE / "workers"
OUT = ROOT / "build" / "bench"
PAGE = ROOT / "docs" / "benchmarks.md"
FIGURES = ROOT / "docs" / "benchmarks"  # JSON and charts of the page
UNCOUNTED = ROOT / "build" / "uncounted" / "libmemrt.so"  # built by ./dev bench


def compiled(source: Path, *flags: str, folder: Path = OUT, program: bool = False) -> Path:
    """Return the shared library, or the program, of one C file. Build a missing or outdated one."""
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / (source.stem if program else f"{source.stem}.so")
    files = (source, *source.parent.glob("*.h"), Path(__file__))
    newest = max(file.stat().st_mtime for file in files)
    if not target.exists() or target.stat().st_mtime < newest:
        command = ["cc", "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-pthread"]
        command.append("-falign-loops=64")  # a short loop across two lines takes twice as long
        command += [] if program else ["-shared", "-fPIC"]
        fresh = target.with_suffix(f".{os.getpid()}-{threading.get_ident()}")
        subprocess.run([*command, *flags, "-o", fresh, source], check=True)
        fresh.replace(target)
    return target
