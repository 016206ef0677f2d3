"""Check finished wheels: symbols of the C library, contents, licences and SBOM."""

from __future__ import annotations

import json
import re
import shutil
import sys
import zipfile
from pathlib import Path

import wheel_builder
from steps import StepError
from wheel_targets import GLIBC, WORK, Target

LICENSES = (
    *("LICENSE", "api/include/memrt/dlpack/LICENSE", "cmake/licenses/libatomic_ops.txt"),
    "bindings/memrt/_profile/vendor/LICENSE",
)
IGNORED = "W002,W004,W009"
"""The licence of dlpack.h is in the metadata and beside the header; gdb finds the script beside the
library, by a file name that is no module name; and pytest loads the plugin from another package."""

DEBUG_FILE = "memrt/lib/.debug/libmemrt.so.1.debug"
COMPONENTS = {"dlpack", "libatomic_ops", "memcheck.h", "sys-sdt.h", "uPlot"}


def repair(wheel: Path, target: Target, python: wheel_builder.Python) -> Path:
    """Check that the wheel runs with the target's C library, and name the platform in the wheel.

    Returns the wheel in dist.
    """
    log = WORK / "log" / f"audit-{wheel.stem}.log"
    if target.is_native:
        command = ["auditwheel", "repair", "--plat", target.platform, "--only-plat"]
        # Zig names musl libc.so, Alpine names it libc.musl-x86_64.so.1, and musl knows both names.
        command += ["--exclude", "libc.so"] if target.libc == "musl" else []
        command += ["--wheel-dir", str(WORK / "dist"), str(wheel)]
    else:  # auditwheel judges wheels of its own processor and C library only
        expect_old_symbols(wheel)
        shutil.copy(wheel, WORK / "dist")
        command = ["wheel", "tags", "--remove", "--platform-tag", target.platform]
        command += [str(WORK / "dist" / wheel.name)]
    if python.site is None:
        wheel_builder.run(log, [sys.executable, "-m", *command])
    else:
        python.run(log, "-m", *command, PYTHONPATH=str(python.site))
    tags = "-".join(wheel.stem.split("-")[:-1])
    return next((WORK / "dist").glob(f"{tags}-{target.platform}*.whl"))


def expect_old_symbols(wheel: Path) -> None:
    """Raise StepError if a library of the wheel needs a newer glibc than GLIBC."""
    newest = tuple(map(int, GLIBC.split(".")))
    with zipfile.ZipFile(wheel) as archive:
        libraries = [name for name in archive.namelist() if re.search(r"\.so(\.\d+)?$", name)]
        for name in libraries:
            text = archive.read(name).decode("latin-1")
            versions = re.findall(r"\bGLIBC_(\d+)\.(\d+)", text)
            if max((tuple(map(int, each)) for each in versions), default=(0, 0)) > newest:
                raise StepError(f"{name} needs a newer glibc than {GLIBC}")
    if not libraries:
        raise StepError(f"{wheel} has no library")


def faults(wheel: Path) -> list[str]:
    """Return a sentence for each licence, component or debug file that the wheel lacks."""
    found = []
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        info = next(name for name in names if name.endswith(".dist-info/METADATA")).rpartition("/")[
            0
        ]
        found += [
            f"{each} is missing" for each in LICENSES if f"{info}/licenses/{each}" not in names
        ]
        bom = json.loads(archive.read(f"{info}/sboms/memrt.cdx.json"))
        listed = {component["name"] for component in bom["components"]}
        if listed != COMPONENTS:
            found.append(f"the SBOM must list {sorted(COMPONENTS)}, got {sorted(listed)}")
        found += [f"{name} is outside of memrt" for name in names if not is_ours(name)]
        if DEBUG_FILE not in names and "aarch64" not in wheel.name:  # objcopy is of this processor
            found.append(f"{DEBUG_FILE} is missing")
    return found


def is_ours(name: str) -> bool:
    return re.match(r"(memrt|pytest_memrt)/|memrt-[^/]+\.dist-info/", name) is not None


def check(wheel: Path) -> None:
    """Raise StepError for a wheel with bad contents."""
    log = WORK / "log" / f"contents-{wheel.stem}.log"
    wheel_builder.run(
        log, [Path(sys.executable).parent / "check-wheel-contents", "--ignore", IGNORED, wheel]
    )
    if found := faults(wheel):
        raise StepError(f"{wheel.name}: " + "; ".join(found))
