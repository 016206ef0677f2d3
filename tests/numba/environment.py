"""Environments with Numba and memrt: one for the newest row of the matrix, one for each other."""

from __future__ import annotations

import hashlib
import json
import subprocess
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MATRIX = ROOT / "bindings" / "memrt" / "numba" / "matrix.json"
LOGS = ROOT / "build" / "log"

# Beside Numba and memrt: what runs the tests, and what tests of Numba and of ours need.
TOOLS = ("pytest==9.2.0", "cffi", "setuptools<81", "scipy")


class StepError(Exception):
    """A step that did not work; the text says which and where its log is."""


@dataclass(frozen=True)
class Row:
    """Versions that go together."""

    numba: str
    numpy: str
    python: str

    def requirements(self) -> list[str]:
        return [f"numba=={self.numba}", f"numpy=={self.numpy}", *TOOLS]


def rows() -> list[Row]:
    """The rows of the matrix, oldest first."""
    return [Row(**row) for row in json.loads(MATRIX.read_text(encoding="utf-8"))]


def logged(name: str, *command: str | Path) -> None:
    """Run a command with its output in a log."""
    LOGS.mkdir(parents=True, exist_ok=True)
    log = LOGS / f"{name}.log"
    with log.open("w") as output:
        done = subprocess.run(
            [str(part) for part in command], stdout=output, stderr=subprocess.STDOUT, check=False
        )
    if done.returncode != 0:
        raise StepError(f"{name} failed, see {log.relative_to(ROOT)}")


def ensure(folder: Path, row: Row, base: str | Path, wheel: Path) -> Path:
    """The Python of an environment with the row's versions and that wheel, made if need be."""
    python = folder / "bin" / "python"
    packages = _Stamp(folder / "packages.stamp", f"{base} {row}")
    if not packages.holds():
        print(f"→ making {folder.relative_to(ROOT)} with Numba {row.numba}", flush=True)
        logged(f"{folder.name}-make", base, "-m", "venv", "--clear", folder)
        pip = (python, "-m", "pip", "install", "--only-binary=:all:")
        logged(f"{folder.name}-packages", *pip, *row.requirements())
        packages.write()
    memrt = _Stamp(folder / "memrt.stamp", hashlib.sha256(wheel.read_bytes()).hexdigest())
    if not memrt.holds():
        pip = (python, "-m", "pip", "install", "--force-reinstall", "--no-deps")
        logged(f"{folder.name}-memrt", *pip, wheel)
        memrt.write()
    return python


@dataclass(frozen=True)
class _Stamp:
    """A file that says what a step was last done with."""

    file: Path
    text: str

    def holds(self) -> bool:
        return self.file.exists() and self.file.read_text() == self.text

    def write(self) -> None:
        self.file.write_text(self.text)


def newest(folder: Path) -> Path:
    """The wheel in a folder that `./dev` or pip put there."""
    wheels = sorted(folder.glob("memrt-*.whl"), key=lambda file: file.stat().st_mtime)
    if not wheels:
        raise StepError(f"there is no wheel of memrt in {folder}: run ./dev setup")
    return wheels[-1]
