"""Environments that foreign tests run in: packages at fixed versions, and a wheel of memrt."""

from __future__ import annotations

import hashlib
import json
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LOGS = ROOT / "build" / "log"

# Asked in an interpreter: versions of packages, and a name for the build of memrt that it has.
_DESCRIBE = """
import hashlib, importlib.metadata, importlib.util, json, pathlib, platform, sys
found = {name: importlib.metadata.version(name) for name in (*sys.argv[1:], "memrt")}
folder = pathlib.Path(importlib.util.find_spec("memrt").submodule_search_locations[0])
digest = hashlib.sha256()
for file in sorted(folder.rglob("*")):
    if file.is_file() and file.suffix != ".pyc":
        digest.update(file.read_bytes())
print(json.dumps({**found, "python": platform.python_version(), "build": digest.hexdigest()[:8]}))
"""


class StepError(Exception):
    """A step that did not work; the text says which and where its log is."""


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


def ensure(
    folder: Path, base: str | Path, requirements: Sequence[str], wheel: Path, name: str = ""
) -> Path:
    """The Python of an environment with these packages and that wheel, made if need be.

    `name` is what its logs are called by, the folder's own name unless given.
    """
    name = name or folder.name
    python = folder / "bin" / "python"
    packages = _Stamp(folder / "packages.stamp", f"{base} {' '.join(requirements)}")
    if not packages.holds():
        print(f"→ making {folder.relative_to(ROOT)} with {requirements[0]}", flush=True)
        logged(f"{name}-make", base, "-m", "venv", "--clear", folder)
        pip = (python, "-m", "pip", "install", "--only-binary=:all:")
        logged(f"{name}-packages", *pip, *requirements)
        packages.write()
    memrt = _Stamp(folder / "memrt.stamp", hashlib.sha256(wheel.read_bytes()).hexdigest())
    if not memrt.holds():
        pip = (python, "-m", "pip", "install", "--force-reinstall", "--no-deps")
        logged(f"{name}-memrt", *pip, wheel)
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


def versions(python: Path, packages: Sequence[str]) -> dict[str, str]:
    """Versions of these packages, of Python and memrt, and of memrt's `build` a name."""
    return json.loads(subprocess.check_output([python, "-c", _DESCRIBE, *packages], text=True))
