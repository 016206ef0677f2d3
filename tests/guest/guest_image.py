"""The file system of the guest: Debian with Python and NumPy, made once, and memrt for each run.

No library replaces the module: mkosi makes disks with a whole system, and virtme-ng shows the files
of the machine to the guest.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import shutil
import stat
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import debian_systems
import initramfs

ROOT = debian_systems.ROOT
GUEST = ROOT / "build" / "guest"
CASES = ROOT / "tests" / "guest" / "cases"
INIT = ROOT / "tests" / "guest" / "guest_init.py"
SUPPORT = ROOT / "tests" / "python" / "support"
SHARED = ("full_group.py", "limited_group.py")  # with the tests of Python

RELEASE = "bookworm"
PYTHON = (3, 11)  # of the release
PACKAGES = "python3 kmod linux-image-cloud-amd64"
SITE = "usr/lib/python3/dist-packages"
MODULES = ("zram", "lzo-rle")
"""Modules of the kernel that cases load. The image also has the modules that these need."""
LEFT_OUT = (
    *("boot", "dev", "media", "mnt", "opt", "proc", "srv", "sys", "var/cache", "var/lib/apt"),
    *("var/log", "var/lib/dpkg", "usr/share/doc", "usr/share/info", "usr/share/locale"),
    *("usr/share/man", "usr/share/perl5", "usr/share/zoneinfo", "usr/share/bash-completion"),
    *("usr/lib/udev", "usr/lib/systemd", "usr/lib/x86_64-linux-gnu/perl-base", "usr/lib/modules"),
)
MOUNTED = ("dev", "proc", "sys", "tmp", "mnt")


@dataclass(frozen=True)
class Image:
    """A kernel and the archive of its first file system."""

    kernel: Path
    archive: Path


def digest() -> str:
    """Return a name for the content of the image: its rules, and the version of NumPy."""
    rules = b"".join(Path(name).read_bytes() for name in (__file__, initramfs.__file__))
    numpy = importlib.metadata.version("numpy")
    return hashlib.sha256(rules + numpy.encode() + RELEASE.encode()).hexdigest()[:16]


def is_left_out(name: str) -> bool:
    """Return whether a file of the system is missing in the image."""
    return any(name == each or name.startswith(f"{each}/") for each in LEFT_OUT)


def system_files(root: Path) -> Iterator[str]:
    """Yield the names of the files and folders of a system, outer folders first."""
    for folder, folders, files in os.walk(root):
        relative = Path(folder).relative_to(root)
        folders[:] = sorted(name for name in folders if not is_left_out(str(relative / name)))
        for name in (*folders, *sorted(files)):
            yield str(relative / name)


def needed_modules(dependencies: str, wanted: tuple[str, ...]) -> set[str]:
    """Return the files of modules and of the modules that these need.

    The dependencies are the text of modules.dep. Raises LookupError for a missing module.
    """
    found = set()
    for name in wanted:
        lines = [line for line in dependencies.splitlines() if f"/{name}.ko:" in line]
        if len(lines) != 1:
            raise LookupError(f"the kernel must have one module {name!r}, got {len(lines)}")
        found.update(lines[0].replace(":", " ").split())
    return found


def package_files(distribution: str) -> dict[str, Path]:
    """Return the files of an installed package by their names in the guest, without its tests."""
    found = {}
    for file in importlib.metadata.files(distribution) or ():
        if ".." not in file.parts and "tests" not in file.parts:
            found[f"{SITE}/{file}"] = Path(str(file.locate()))
    return found


def add_packages(out: initramfs.Archive, *distributions: str) -> None:
    """Add installed packages to an archive."""
    files = {}
    for distribution in distributions:
        files.update(package_files(distribution))
    out.add_folders(files)
    for name, path in files.items():
        if path.exists():
            out.add_path(name, path)


def add_modules(out: initramfs.Archive, root: Path) -> None:
    """Add the modules of the kernel that cases load, and the lists that modprobe reads."""
    (folder,) = (root / "usr/lib/modules").iterdir()
    needed = needed_modules((folder / "modules.dep").read_text(), MODULES)
    names = [*needed, *(path.name for path in folder.glob("modules.*"))]
    names = [f"usr/lib/modules/{folder.name}/{name}" for name in sorted(names)]
    out.add_folders(names)
    for name in names:
        out.add_path(name, root / name)


def write_base(root: Path, path: Path) -> None:
    """Write the part of the image that stays: the system, modules and NumPy."""
    with path.open("wb") as file:
        out = initramfs.Archive(file)
        for name in system_files(root):
            out.add_path(name, root / name)
        for name in MOUNTED:
            out.add(name, stat.S_IFDIR | 0o755)
        out.add("dev/console", stat.S_IFCHR | 0o600, rdev=initramfs.CONSOLE)
        add_modules(out, root)
        add_packages(out, "numpy")
        out.end()


def make() -> Image:
    """Return the kernel and the base of the image. The first call makes both, in some minutes."""
    if sys.version_info[:2] != PYTHON:
        ours, wanted = (".".join(map(str, each[:2])) for each in (sys.version_info, PYTHON))
        sys.exit(f"the Python of .venv must be {wanted}, as in the guest, got {ours}: set PYTHON")
    folder = GUEST / digest()
    image = Image(folder / "kernel", folder / "base.cpio")
    if image.kernel.exists():
        return image
    packages = hashlib.sha256(PACKAGES.encode()).hexdigest()[:8]
    root = debian_systems.make(f"guest-{RELEASE}-{packages}", RELEASE, PACKAGES)
    print(f"→ writing the image of the guest into {folder}", flush=True)
    shutil.rmtree(GUEST, ignore_errors=True)
    folder.mkdir(parents=True)
    write_base(root, image.archive)
    (kernel,) = (root / "boot").glob("vmlinuz-*")
    shutil.copy(kernel, image.kernel)
    return image


def write_run(image: Image, cases: list[str], path: Path) -> None:
    """Write the archive of a run: the base, memrt as installed, and the cases."""
    shutil.copy(image.archive, path)
    with path.open("ab") as file:
        out = initramfs.Archive(file)
        add_packages(out, "memrt")
        out.add("init", stat.S_IFREG | 0o755, INIT.read_bytes())
        out.add("cases", stat.S_IFDIR | 0o755)
        for case in cases:
            out.add_path(f"cases/{case}.py", CASES / f"{case}.py")
        for name in SHARED:
            out.add_path(f"cases/{name}", SUPPORT / name)
        out.add("cases/list", stat.S_IFREG | 0o644, "\n".join(cases).encode())
        out.end()
