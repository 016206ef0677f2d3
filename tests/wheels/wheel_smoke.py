"""Use a wheel on a system without a compiler.

No library replaces the module: cibuildwheel tests wheels in containers, not in bare systems.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import debian_systems
import wheel_builder
from steps import StepError
from wheel_targets import ROOT, WORK, Target, step

SUITE = (
    "arrays/test_array.py",
    "policy/test_policy.py",
    "stats/test_stats.py",
    "tracking/test_live.py",
)
"""Test files with high coverage and a short run time."""

FOREIGN_SUITE = ("stats/test_stats.py", "arrays/test_array.py")
# The last two are for pytest on Python 3.10. pip reads conditions for the Python that runs pip.
REQUIREMENTS = (
    "numpy",
    "rich",
    "pytest",
    "pytest-timeout",
    "hypothesis",
    "exceptiongroup",
    "tomli",
)
BARE = "bookworm-bare-libraries"  # the system of Pythons of pyenv
PYENV_NEEDS = (
    "ca-certificates libbz2-1.0 libffi8 liblzma5 libncursesw6 libreadline8 libsqlite3-0 libssl3 "
    "zlib1g"
)
"""Packages of a bare system that a Python of pyenv needs."""

FOREIGN = {"3.11": "bookworm", "3.13": "trixie", "3.14": "forky"}
"""Suites of Debian by version of Python, for systems of another processor."""

THIS_VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"
PROGRAM = "import memrt, numpy; memrt.enable(); print(memrt.is_managed(numpy.ones(9)))"


def for_target(version: str, target: Target) -> list[str]:
    """Return the options of pip that choose wheels for a Python on a processor."""
    manylinux = ("manylinux_2_28", "manylinux_2_27", "manylinux_2_17", "manylinux2014")
    tags = manylinux if target.libc == "gnu" else ("musllinux_1_2", "musllinux_1_1")
    return [
        "--only-binary=:all:",
        f"--python-version={version}",
        "--implementation=cp",
        *(f"--platform={tag}_{target.processor}" for tag in tags),
    ]


def download(version: str, target: Target) -> Path:
    """Download the packages for the tests with a Python on a processor, and return the folder."""
    wanted = hashlib.sha256(" ".join(REQUIREMENTS).encode()).hexdigest()[:8]
    folder = WORK / "packages" / f"{version}-{target.name}-{wanted}"
    if not folder.exists():
        partial = folder.with_name(f"{folder.name}.partial")
        shutil.rmtree(partial, ignore_errors=True)
        pip = [sys.executable, "-m", "pip", "download", "--dest", partial]
        log = WORK / "log" / f"download-{folder.name}.log"
        wheel_builder.run(log, [*pip, *for_target(version, target), *REQUIREMENTS])
        partial.rename(folder)
    return folder


def install(wheel: Path, version: str, target: Target) -> Path:
    """Unpack the wheel and its packages into a folder for PYTHONPATH. Any Python's pip can."""
    site = WORK / "sites" / f"{version}-{target.name}"
    shutil.rmtree(site, ignore_errors=True)
    pip = [sys.executable, "-m", "pip", "install", "--no-index", "--target", site]
    pip += ["--find-links", download(version, target), *for_target(version, target)]
    wheel_builder.run(WORK / "log" / f"install-{site.name}.log", [*pip, wheel, *REQUIREMENTS])
    return site


def commands(python: str, files: Sequence[str]) -> list[list[str]]:
    """Return the commands of the smoke suite."""
    tests = [str(ROOT / "tests/python" / name) for name in files]
    pytest = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-x", *tests]
    return [[python, "-c", PROGRAM], [python, "-m", "memrt", "info"], pytest]


def system_of(python: wheel_builder.Python, target: Target) -> str | None:
    """Return the name of the system with the Python for the target; None: there is none."""
    if target.is_native:
        return f"Debian {python.root.name if python.root else BARE}"
    if python.version not in FOREIGN:
        return None
    return f"Debian {FOREIGN[python.version]}-{target.processor} under QEMU"


def run(wheel: Path, python: wheel_builder.Python, target: Target) -> str:
    """Run the smoke suite in the system of the Python, and return the version of NumPy."""
    site = install(wheel, python.version, target)
    if target.is_native:
        run_native(wheel, site, python)
    else:
        run_foreign(site, python.version, target)
    (numpy,) = site.glob("numpy-*.dist-info")
    return numpy.name.removeprefix("numpy-").removesuffix(".dist-info")


def run_native(wheel: Path, site: Path, python: wheel_builder.Python) -> None:
    root = python.root or debian_systems.make(BARE, "bookworm", PYENV_NEEDS)
    step(f"testing {wheel.name} in Debian {root.name}")
    folders = [ROOT] if python.root else [ROOT, Path(python.command).resolve().parents[1]]
    if shutil.which("cc", path=str(root / "usr/bin")):
        raise StepError(f"{root} has a compiler")
    accepts = [python.command, "-m", "pip", "install", "--dry-run", "--no-index", "--no-deps"]
    accepts += ["--target", "/target", str(wheel)]  # the Python's own pip judges the tags
    for number, command in enumerate([accepts, *commands(python.command, SUITE)]):
        log = WORK / "log" / f"smoke-{site.name}-{number}.log"
        wheel_builder.run(log, debian_systems.inside(root, command, folders, PYTHONPATH=str(site)))


def run_foreign(site: Path, version: str, target: Target) -> None:
    """Run the smoke suite under QEMU."""
    suite = FOREIGN[version]
    root = debian_systems.make(f"{suite}-{target.processor}", suite, "python3", target.processor)
    step(f"testing Python {version} for {target.processor} under QEMU")
    emulator = [shutil.which(f"qemu-{target.processor}-static"), "-L", root]
    inside = str(root / f"usr/bin/python{version}")
    environment = {
        "PYTHONPATH": str(site),
        "PYTHONHOME": str(root / "usr"),
        "PATH": str(WORK / "nothing"),  # without the compilers of this machine
    }
    for number, command in enumerate(commands(inside, FOREIGN_SUITE)):
        log = WORK / "log" / f"smoke-{site.name}-{number}.log"
        wheel_builder.run(log, [*emulator, *command], **environment)


def run_here(wheel: Path) -> str:
    """Run the first commands of the smoke suite on this machine, without a compiler in the path."""
    site = WORK / "sites" / "here"
    shutil.rmtree(site, ignore_errors=True)
    pip = [sys.executable, "-m", "pip", "install", "--no-deps", "--target", site, wheel]
    wheel_builder.run(WORK / "log" / "install-here.log", pip)
    for command in commands(sys.executable, SUITE)[:2]:
        subprocess.run(
            command, env={"PATH": "/nowhere", "PYTHONPATH": str(site)}, check=True, cwd=WORK
        )
    return f"this machine, Python {THIS_VERSION}"
