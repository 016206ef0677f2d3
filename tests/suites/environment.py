"""Make environments for third-party tests: packages at fixed versions, and a wheel of memrt."""

from __future__ import annotations

import fcntl
import hashlib
import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from steps import ROOT, StepError, run

LOGS = ROOT / "build" / "log"
# For the Python tests of memrt, on any Python.
TEST_PACKAGES = ("pytest", "pytest-timeout", "pytest-xdist", "cffi", "coverage", "hypothesis",
                 "Jinja2", "jsonschema", "matplotlib", "opentelemetry-sdk", "perfetto",
                 "prometheus-client", "protobuf", "rich", "shtab")  # fmt: skip

# Script for an interpreter: prints versions of packages, and a hash of the installed memrt.
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


def logged(name: str, *command: str | Path) -> None:
    """Run a command with its output in a log. Raise StepError if the command fails."""
    run(LOGS / f"{name}.log", *command)


def ensure(
    folder: Path, base: str | Path, requirements: Sequence[str], wheel: Path, name: str = ""
) -> Path:
    """Return the Python of an environment with `requirements` and `wheel`.

    Creates or updates the environment only if its stamps differ. `name` is the prefix of the log
    files; the default is the name of the folder.
    """
    name = name or folder.name
    python = folder / "bin" / "python"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_suffix(".lock").open("w") as lock:  # for commands that run at the same time
        fcntl.flock(lock, fcntl.LOCK_EX)
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
    """A file that records the inputs of the last successful step."""

    file: Path
    text: str

    def holds(self) -> bool:
        return self.file.exists() and self.file.read_text() == self.text

    def write(self) -> None:
        self.file.write_text(self.text)


def newest(folder: Path) -> Path:
    """Return the newest wheel of memrt in a folder. Raise StepError if the folder has no wheel."""
    wheels = sorted(folder.glob("memrt-*.whl"), key=lambda file: file.stat().st_mtime)
    if not wheels:
        raise StepError(f"no wheel of memrt in {folder}: run ./dev setup")
    return wheels[-1]


def clients() -> Path:
    """Return the Python of the environment for tests/clients and tests/clusters."""
    requirements = ROOT / "tests" / "clients" / "requirements.txt"
    return ensure(
        ROOT / "build" / "clients-venv",
        sys.executable,
        requirements.read_text(encoding="utf-8").split(),
        newest(ROOT / "build" / "wheel"),
    )


def versions(python: Path, packages: Sequence[str]) -> dict[str, str]:
    """Return versions of `packages`, Python and memrt, and a hash of memrt's files as `build`."""
    return json.loads(subprocess.check_output([python, "-c", _DESCRIBE, *packages], text=True))
