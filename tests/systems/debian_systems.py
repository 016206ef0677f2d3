"""Bare Debian systems, made once by debootstrap, for tests on other systems.

A system for the processor of the machine is a folder for chroot, which needs root. A system for
another processor is only unpacked, and QEMU's user emulation runs the programs.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SYSTEMS = ROOT / "build" / "systems"
MIRROR = "http://deb.debian.org/debian"
SCRIPT = "sid"
"""Script of debootstrap for all releases: older versions of debootstrap lack newer releases."""
CERTIFICATES = Path("etc/ssl/certs/ca-certificates.crt")
ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LANG": "C.UTF-8"}
NATIVE = os.uname().machine
NAMES = {"x86_64": "amd64", "aarch64": "arm64"}
"""Names of processors in Debian."""


def make(name: str, suite: str, packages: str, processor: str = NATIVE) -> Path:
    """Return the folder of a system with some packages. The first call makes the system.

    A system with other packages is made anew.

    Raises subprocess.CalledProcessError; the log lies beside the folder.
    """
    root = SYSTEMS / name
    ready = root / "ready"
    if ready.exists() and ready.read_text() == packages:
        return root
    print(f"→ making a bare system of Debian {suite} for {processor} in {root}", flush=True)
    shutil.rmtree(root, ignore_errors=True)
    root.parent.mkdir(parents=True, exist_ok=True)
    options = ["--variant=minbase", f"--include={','.join(packages.split())}"]
    if processor != NATIVE:
        options += ["--foreign", f"--arch={NAMES[processor]}"]
    with root.with_suffix(".log").open("w") as log:
        command = ["debootstrap", *options, suite, str(root), MIRROR, SCRIPT]
        subprocess.run(command, stdout=log, stderr=log, check=True)
        if processor != NATIVE:
            for package in (root / "var/cache/apt/archives").glob("*.deb"):
                subprocess.run(["dpkg-deb", "-x", package, root], stderr=log, check=True)
    if (root / CERTIFICATES).exists():  # the network may need certificates of the machine
        shutil.copy(Path("/") / CERTIFICATES, root / CERTIFICATES)
    # The mirror may keep the index of a release for longer than the index states.
    settings = root / "etc/apt/apt.conf.d"
    settings.mkdir(parents=True, exist_ok=True)
    (settings / "90index").write_text('Acquire::Check-Valid-Until "false";\n')
    ready.write_text(packages)
    return root


@contextmanager
def mounted(root: Path, *folders: Path) -> Iterator[None]:
    """Show /proc, /dev and some folders of the machine inside a system, at the same paths."""
    places = [Path("/proc"), Path("/dev"), Path("/dev/pts"), Path("/dev/shm"), *folders]
    done: list[Path] = []
    shutil.copy("/etc/resolv.conf", root / "etc/resolv.conf")
    try:
        for place in places:
            target = root / place.relative_to("/")
            target.mkdir(parents=True, exist_ok=True)
            subprocess.run(["mount", "--bind", place, target], check=True)
            done.append(target)
        yield
    finally:
        for target in reversed(done):
            subprocess.run(["umount", "--lazy", target], check=False)


def inside(root: Path, command: Sequence[object], **environment: str) -> list[str]:
    """Return the command that runs a command inside a system, with few variables."""
    pip = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
    variables = {**ENVIRONMENT, **pip, **environment}
    assignments = [f"{name}={value}" for name, value in variables.items()]
    return ["env", "-i", *assignments, "chroot", str(root), *map(str, command)]
