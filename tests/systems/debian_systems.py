"""Bare Debian systems, made once by debootstrap, for tests on other systems.

A system for the processor of the machine is a folder for chroot, which needs root. A system for
another processor is only unpacked, and QEMU's user emulation runs the programs.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
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
MOUNTS = Path("/proc/self/mountinfo")
SHARED = ("/proc", "/dev", "/sys")

# Show folders of the machine inside a system, and run a command. The command has a mount namespace
# of its own, so that the mounts end with the command, even with a killed one.
ENTER = """
root=$1
shift
cp /etc/resolv.conf "$root/etc/resolv.conf" || exit
while [ "$1" != -- ]; do
    mkdir -p "$root$1" && mount --rbind "$1" "$root$1" || exit
    shift
done
shift
exec "$@"
"""


def make(name: str, suite: str, packages: str, processor: str = NATIVE) -> Path:
    """Return the folder of a system with some packages. The first call makes the system.

    A system with other packages is made anew.

    Raises subprocess.CalledProcessError, and the log lies beside the folder; or OSError, if
    something is mounted inside the old system.
    """
    root = SYSTEMS / name
    ready = root / "ready"
    if ready.exists() and ready.read_text() == packages:
        return root
    print(f"→ making a bare system of Debian {suite} for {processor} in {root}", flush=True)
    remove(root)
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


def remove(root: Path) -> None:
    """Remove a system. Raises OSError if something is mounted inside, whose files would be lost."""
    for line in MOUNTS.read_text().splitlines():
        place = Path(line.split()[4])
        if place.is_relative_to(root):
            raise OSError(f"cannot remove {root}: unmount {place} first, by `umount --lazy`")
    shutil.rmtree(root, ignore_errors=True)


def inside(
    root: Path, command: Sequence[object], folders: Sequence[Path] = (), **environment: str
) -> list[str]:
    """Return the command that runs a command inside a system, with few variables.

    The command finds /proc, /dev, /sys and `folders` of the machine at the same paths.
    """
    pip = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
    variables = {**ENVIRONMENT, **pip, **environment}
    assignments = [f"{name}={value}" for name, value in variables.items()]
    enter = ["unshare", "--mount", "--propagation", "private", "sh", "-c", ENTER, "sh", str(root)]
    started = ["env", "-i", *assignments, "chroot", str(root), *map(str, command)]
    return [*enter, *SHARED, *map(str, folders), "--", *started]
